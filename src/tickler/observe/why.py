"""Why a schedule fired or did not: the facts that explain it, and the one sentence that they come to."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from shlex import quote

import msgspec
from msgspec.structs import replace

from tickler.fires.contract import FireStore
from tickler.fires.redaction import SOMEBODY, redacted_entry, redacted_fire
from tickler.model.fire import GIVEN_BACK, Entry, Fire, FireState, fire_id
from tickler.model.schedule import Id, StoredSchedule
from tickler.model.target import label_of
from tickler.observe.checks.abilities import needed
from tickler.observe.human_format import count, instant, some, span
from tickler.records.contract import RecordStore
from tickler.records.worker_status import STOPPED, WORKING, WorkerReport, workers
from tickler.schedules.contract import ScheduleStore
from tickler.when import When

PAGE = 200  # entries of the history that are read together
MAX_PAGES = 10  # of them, before the search for an instant ends
MAX_FIRES = 100  # of a schedule, in each state
MAX_FACTS = 10  # about what it owes
CLAIM_TIMEOUT_MS = 5_000  # what is due for less than this is about to be claimed


class Fact(msgspec.Struct, frozen=True):
    """One link of the chain. `good` is False where it keeps the schedule from firing, and nobody meant it to.

    `idle` marks what is as somebody wanted it, and does not fire: it is paused, or finished.
    """

    about: str
    says: str
    good: bool = True
    idle: bool = False


class Why(msgspec.Struct, frozen=True):
    """Begins with one sentence; the facts are what it rests on, in the order in which a fire meets them."""

    owner: str
    key: str
    at: int | None  # the instant that was asked about; None for now
    now: int
    sentence: str
    facts: list[Fact]

    def __str__(self) -> str:
        return self.sentence


class KnownFacts(msgspec.Struct, frozen=True, kw_only=True):
    """All that an explanation is made from."""

    id: Id
    now_ms: int
    schedule: StoredSchedule | None
    fires: Sequence[Fire]  # that are open, waiting or dead, by nominal instant
    past: Sequence[Entry]  # the latest first
    searched: bool  # whether `past` is all that the history could have of what was asked about
    workers: Sequence[WorkerReport]

    @property
    def alive(self) -> list[WorkerReport]:
        return [worker for worker in self.workers if worker.is_alive(self.now_ms)]


async def why(
    schedules: ScheduleStore,
    fires: FireStore,
    records: RecordStore,
    id: Id,
    now_ms: int,
    at: int | None = None,
    *,
    names_workers: bool = True,
) -> Why:
    """Of an instant that has been or will be, or of now."""
    schedule = await schedules.get(id)
    states: tuple[FireState, ...] = ("open", "waiting", "dead")
    owed = [fire for state in states for fire in await fires.list(state=state, id=id, owner=None, after=None, limit=MAX_FIRES)]
    past, searched = await _past(fires, id, at)
    known = KnownFacts(
        id=id,
        now_ms=now_ms,
        schedule=schedule,
        fires=sorted(owed, key=lambda fire: (fire.nominal_at, fire.id)),
        past=past,
        searched=searched,
        workers=await workers(records, now_ms),
    )
    return explain(known if names_workers else _nameless(known), at)


def _nameless(known: KnownFacts) -> KnownFacts:
    return replace(
        known,
        fires=[redacted_fire(fire, SOMEBODY) for fire in known.fires],
        past=[redacted_entry(entry, SOMEBODY) for entry in known.past],
        workers=[replace(worker, name=SOMEBODY, short_of=None) for worker in known.workers],
    )


async def _past(fires: FireStore, id: Id, at: int | None) -> tuple[list[Entry], bool]:
    """The latest entries, and whether there is nothing more to find; for an instant, as many pages as it takes to go past it."""
    past: list[Entry] = []
    before: tuple[int, str] | None = None
    for _ in range(1 if at is None else MAX_PAGES):
        page = await fires.history(id=id, before=before, limit=PAGE)
        past += [entry for _, entry in page]
        if len(page) < PAGE:
            return past, True
        name, last = page[-1]
        before = (last.at, name)
        if at is not None and last.at < at:  # nothing is tried before its instant
            return past, True
    return past, False


def explain(known: KnownFacts, at: int | None = None) -> Why:
    """Pure: what is known in, the reason out."""
    sentence, facts = _of_now(known) if at is None else _of_an_instant(known, at)
    return Why(*known.id, at, known.now_ms, sentence, facts)


def _of_now(known: KnownFacts) -> tuple[str, list[Fact]]:
    schedule = known.schedule
    if schedule is None:
        return _gone(known)
    facts = [_declared(schedule), _indexed(schedule, known.now_ms), *_owed(known), *_last(known), *_working(known)]
    return _now_in_one_sentence(known, schedule), facts


def _now_in_one_sentence(known: KnownFacts, schedule: StoredSchedule) -> str:
    """What is dead comes first: nobody tries it again, whatever else is fine."""
    stands = _as_it_stands(known, schedule)
    dead = [fire for fire in known.fires if fire.state == "dead"]
    if not dead:
        return stands
    stands = stands.removeprefix(f"{known.id} is not due yet: ")
    for name, pronoun in ((f"{known.id}'s ", "its "), (f"{known.id} ", "it ")):
        stands = f"{pronoun}{stands.removeprefix(name)}" if stands.startswith(name) else stands
    return f"{_of_the_dead(known.id, dead, schedule.when)}; {stands}"


def _of_the_dead(id: Id, dead: Sequence[Fire], when: When) -> str:
    last = dead[-1]
    if len(dead) == 1:
        return f"{id}'s fire of {instant(last.nominal_at, when)} {_state_of(last, when, last.nominal_at)}"
    many = f"{len(dead)}{' or more' if len(dead) == MAX_FIRES else ''} fires of {id} are dead"
    because = f" ({last.reason})" if last.reason else ""
    return f"{many}, the last of {instant(last.nominal_at, when)}{because}: send them again with `{_retry_all(id)}`"


def _as_it_stands(known: KnownFacts, schedule: StoredSchedule) -> str:
    id, now_ms, next_at = known.id, known.now_ms, schedule.next_fire_at
    if schedule.state == "finished":
        return _finished(known, schedule)
    if schedule.state != "active" or next_at is None:
        return f"{id} {_why_not_active(schedule)}"
    if schedule.target is None:
        return f"{id} has no target, so no worker delivers it: put it with one, or claim it from the index yourself"
    stuck = _stuck(known)
    if next_at <= now_ms:
        late_ms = now_ms - next_at
        since = f"{id} has been due for {span(late_ms)}"
        if stuck:
            return f"{since}, and {stuck}"
        if late_ms < CLAIM_TIMEOUT_MS:
            return f"{id} is due right now, and about to be claimed"
        return f"{since}{_although(known, next_at)}"
    if (fire := _most_telling(known)) is not None:
        return _of_fire(id, fire, schedule.when, now_ms, stuck)
    coming = f"{id} is not due yet: it fires next at {instant(next_at, schedule.when)}, in {span(next_at - now_ms)}"
    return f"{coming}, but {stuck}" if stuck else coming


def _although(known: KnownFacts, next_at: int) -> str:
    """What workers do meanwhile, as far as they have said."""
    working = [worker for worker in known.alive if worker.doing == WORKING]
    if queued := sum(worker.queued for worker in working):
        return f": {some(len(working), 'worker has', 'workers have')} {queued:,} waiting before it"
    looked = sum(worker.last_round_at is not None and worker.last_round_at >= next_at for worker in working)
    if looked:
        return f" although {count(looked, 'worker')} looked for what is due: see `tickler doctor`"
    alive = some(len(working), "worker is alive and has not", "workers are alive and none has")
    return f", and {alive} said since that it looked for what is due: see `tickler doctor`"


def _finished(known: KnownFacts, schedule: StoredSchedule) -> str:
    """What became of its last fire says more than that there is no other."""
    if (fire := _most_telling(known)) is not None:
        return _of_fire(known.id, fire, schedule.when, known.now_ms, _stuck(known))
    delivered = next((entry for entry in known.past if entry.happened == "delivered"), None)
    if delivered is not None:
        return f"{known.id} was delivered at {instant(delivered.at, schedule.when)} and is finished: it has no instant left"
    return f"{known.id} {_why_not_active(schedule)}"


def _of_an_instant(known: KnownFacts, at: int) -> tuple[str, list[Fact]]:
    schedule, now_ms = known.schedule, known.now_ms
    entries = [entry for entry in known.past if _covers(entry, at)]
    owed = [fire for fire in known.fires if fire.nominal_at == at]
    facts: list[Fact] = []
    if schedule is not None:
        facts += [_declared(schedule), _named(schedule, at, [*entries, *owed])]
    facts += [_happened(entry, schedule) for entry in reversed(entries)]
    facts += [_owing(fire, schedule, now_ms) for fire in owed]
    moment = instant(at, schedule.when if schedule is not None else None)
    if owed:
        when = None if schedule is None else schedule.when
        return _of_fire(known.id, owed[0], when, now_ms, _stuck(known)), [*facts, *_working(known)]
    if entries:
        return _what_came_of_it(known.id, moment, entries), facts
    if schedule is None:
        gone, also = _gone(known)
        return f"nothing is known of {moment}: {gone}", also
    return _why_nothing_happened(known, schedule, at, moment), [*facts, *_working(known)]


def _why_nothing_happened(known: KnownFacts, schedule: StoredSchedule, at: int, moment: str) -> str:
    id, next_at = known.id, schedule.next_fire_at
    if schedule.state == "unreadable":
        return f"{id} {_why_not_active(schedule)}"
    if (not_then := _why_not_then(schedule, at, moment)) is not None:
        return not_then
    if at > known.now_ms:
        if schedule.state != "active":
            return f"{moment} is still to come, but {id} {_why_not_active(schedule)}"
        return f"{moment} is still to come: {id} fires then unless it is changed"
    if schedule.state == "active" and next_at is not None and next_at - schedule.offset_ms() <= at:
        return _as_it_stands(known, schedule)
    if not known.searched:
        return f"nothing is known of {moment}: the history of {id} is longer than what was searched"
    if schedule.target is None:
        return f"{id} has no target: whoever claims it from the index knows what became of {moment}"
    since = "changed since" if schedule.state == "active" else f"changed since (it {_why_not_active(schedule)})"
    return f"nothing is remembered of {moment}: {id} was paused then, was {since}, or its history has been pruned"


def _why_not_then(schedule: StoredSchedule, at: int, moment: str) -> str | None:
    """Of an instant at which it was never to fire, as it is declared now."""
    id, when = schedule.id, schedule.when
    if when.last_before(at) != at:
        around = [instant(each, when) for each in (when.last_before(at), when.next_after(at)) if each is not None]
        return f"{moment} is no instant of {id}: those around it are {' and '.join(around) or 'none'}"
    if schedule.starts_at is not None and at < schedule.starts_at:
        return f"{id} starts at {instant(schedule.starts_at, when)}, after {moment}"
    if schedule.ends_at is not None and at > schedule.ends_at:
        return f"{id} ended at {instant(schedule.ends_at, when)}, before {moment}"
    if at < schedule.created_at:
        return f"{id} did not exist at {moment}: it was put at {instant(schedule.created_at, when)}"
    return None


def _gone(known: KnownFacts) -> tuple[str, list[Fact]]:
    last = _last(known)
    if not known.past:
        return f"there is no schedule {known.id}, and nothing is remembered of one: check owner and key", last
    return f"there is no schedule {known.id} any more: it was deleted, or it was to go after its delivery", last


def _why_not_active(schedule: StoredSchedule) -> str:
    if schedule.state == "paused":
        because = f" ({schedule.reason})" if schedule.reason else ""
        return f"is paused{because}: resume it, and it fires again"
    if schedule.state == "finished":
        return "is finished: it has no instant left; put it with another when"
    if schedule.state == "unreadable":
        return f"was set aside because it does not read ({schedule.reason}): put it again"
    return "should be in the index and is not: run `tickler doctor --repair`, or put it again"


def _stuck(known: KnownFacts) -> str | None:
    """Why nobody delivers it, if nobody does."""
    alive = known.alive
    if not alive:
        seen = max(known.workers, key=lambda worker: worker.seen_at, default=None)
        if seen is None:
            return "no worker has been heard of: start one with `tickler work`"
        how = "stopped" if seen.doing == STOPPED else "was heard of"
        ago = span(max(known.now_ms - seen.seen_at, 0))
        return f"no worker is at work, the last one {how} {ago} ago: start one with `tickler work`, or tick"
    if all(worker.doing != WORKING for worker in alive):
        return f"no worker claims anything: {alive[0].name} is {alive[0].doing}"
    if (lacking := _lacking(known)) is not None:
        return f"no worker at work has {lacking}: start one that does, or correct its target"
    return None


def _lacking(known: KnownFacts) -> str | None:
    """What its target needs, if none of those who are at work has it."""
    target = None if known.schedule is None else known.schedule.target
    if target is None or any(worker.can_deliver_to(label_of(target)) for worker in known.alive):
        return None
    return needed(label_of(target))


def _most_telling(known: KnownFacts) -> Fire | None:
    """The oldest that is still to be delivered."""
    return next((fire for fire in known.fires if fire.state != "dead"), None)


def _of_fire(id: Id, fire: Fire, when: When | None, now_ms: int, stuck: str | None) -> str:
    moment = instant(fire.nominal_at, when)
    says = _state_of(fire, when, now_ms)
    in_vain = stuck is not None and fire.state == "open" and fire.worker is None
    return f"{id}'s fire of {moment} {says}" + (f", but {stuck}" if in_vain else "")


def _state_of(fire: Fire, when: When | None, now_ms: int) -> str:
    because = f" ({fire.reason})" if fire.reason else ""
    if fire.state == "dead":
        return f"is dead{because}: send it again with `tickler retry {fire.id}`"
    if fire.state == "waiting":
        return "waits until the one before it is settled, as its overlap says"
    if fire.worker is not None:
        return f"is with {fire.worker} for its attempt {fire.attempt}"
    if fire.deliver_after is None or fire.deliver_after <= now_ms:
        return f"is to be tried next{because}"
    then = f"at {instant(fire.deliver_after, when)}, in {span(fire.deliver_after - now_ms)}"
    if fire.reason is not None and fire.reason.startswith(GIVEN_BACK):
        return f"was given back without an attempt ({fire.reason.removeprefix(GIVEN_BACK)}), and is tried {then}"
    return f"failed at attempt {fire.attempt}{because}, and is tried again {then}" if fire.attempt else f"is tried {then}"


def _what_came_of_it(id: Id, moment: str, entries: Sequence[Entry]) -> str:
    """The latest of them is what it came to."""
    last = entries[0]
    if last.happened == "delivered":
        tried = "" if last.attempt <= 1 else f", at attempt {last.attempt}"
        return f"{id}'s fire of {moment} was delivered {span(max(last.late_ms, 0))} after its instant{tried}"
    if last.happened == "skipped":
        return f"{moment} of {id} was skipped by its {last.rule} rule, with {count(last.count or 1, 'instant')} in all"
    detail = f": {last.detail}" if last.detail else ""
    if last.happened in ("failed", "expired"):
        end = "and was given up" if last.gave_up else "and what became of it since is not remembered"
        return f"{id}'s fire of {moment} failed at attempt {last.attempt}, {end}{detail}"
    return f"{id}'s fire of {moment} was {'cancelled' if last.happened == 'cancelled' else 'sent again'}{detail}"


# The facts.


def _declared(schedule: StoredSchedule) -> Fact:
    target = "no target" if schedule.target is None else f"a target of type {schedule.target.__struct_config__.tag}"
    says = f"{schedule.when} in {schedule.when.tz}, with {target}, version {schedule.version}"
    return Fact("declared", says if schedule.enabled else f"{says}; it is paused", idle=not schedule.enabled)


def _indexed(schedule: StoredSchedule, now_ms: int) -> Fact:
    if schedule.state != "active" or schedule.next_fire_at is None:
        idle = schedule.state in ("paused", "finished")
        return Fact("index", f"it is not in the index: it {_why_not_active(schedule)}", good=idle, idle=idle)
    due = "due since" if schedule.next_fire_at <= now_ms else "due next at"
    spread = f", {span(schedule.offset_ms())} of it from its spread" if schedule.offset_ms() else ""
    return Fact("index", f"it is in the index, {due} {instant(schedule.next_fire_at, schedule.when)}{spread}")


def _named(schedule: StoredSchedule, at: int, found: Sequence[Entry | Fire]) -> Fact:
    when = schedule.when
    named = when.last_before(at) == at
    triggered = fire_id(*schedule.id, at, triggered=True)
    if not named and any((each.id if isinstance(each, Fire) else each.fire_id) == triggered for each in found):
        return Fact("instant", f"{instant(at, when)} was triggered by hand")
    return Fact("instant", f"{instant(at, when)} is {'an' if named else 'no'} instant of {when}", named)


def _owed(known: KnownFacts) -> list[Fact]:
    """What is dead for the same reason, or waits, is told together; what is to be delivered one by one."""
    alike: dict[tuple[str, str | None], list[Fire]] = {}
    for fire in known.fires:
        alike.setdefault(("open", fire.id) if fire.state == "open" else (fire.state, fire.reason), []).append(fire)
    return [_owing_all(fires, known) for fires in islice(alike.values(), MAX_FACTS)]


def _owing_all(fires: Sequence[Fire], known: KnownFacts) -> Fact:
    first, last = fires[0], fires[-1]
    if len(fires) == 1:
        return _owing(first, known.schedule, known.now_ms)
    when = None if known.schedule is None else known.schedule.when
    many = f"{len(fires)}{' or more' if len(fires) == MAX_FIRES else ''} fires, {instant(first.nominal_at, when)}"
    until = "" if last.nominal_at == first.nominal_at else f" to {instant(last.nominal_at, when)}"
    if first.state == "waiting":
        return Fact("fire", f"{many}{until}, wait until those before them are settled, as its overlap says")
    because = f" ({first.reason})" if first.reason else ""
    return Fact("fire", f"{many}{until}, are dead{because}: send them again with `{_retry_all(known.id)}`", good=False)


def _retry_all(id: Id) -> str:
    return f"tickler retry --all --owner {quote(id.owner)} --key {quote(id.key)}"


def _owing(fire: Fire, schedule: StoredSchedule | None, now_ms: int) -> Fact:
    when = None if schedule is None else schedule.when
    says = f"the fire of {instant(fire.nominal_at, when)} {_state_of(fire, when, now_ms)}"
    return Fact("fire", says, fire.state != "dead")


def _last(known: KnownFacts) -> list[Fact]:
    return [_happened(known.past[0], known.schedule)] if known.past else [Fact("history", "nothing has happened to it yet")]


def _happened(entry: Entry, schedule: StoredSchedule | None) -> Fact:
    when = None if schedule is None else schedule.when
    detail = f": {entry.detail}" if entry.detail else ""
    moment = instant(entry.nominal_at, when)
    if entry.happened == "skipped":
        until = "" if entry.until_at in (None, entry.nominal_at) else f" to {instant(entry.until_at or 0, when)}"
        skipped = f"{count(entry.count or 1, 'instant')} skipped by the {entry.rule} rule"
        return Fact("history", f"{moment}{until}: {skipped}", good=False)
    attempt = f" at attempt {entry.attempt}" if entry.attempt else ""
    by = f" by {entry.worker}" if entry.worker else ""
    status = f", answered {entry.status}" if entry.status else ""
    took = f" in {entry.duration_ms} ms" if entry.duration_ms is not None else ""
    good = entry.happened in ("delivered", "retried")
    return Fact("history", f"{moment}: {entry.happened}{attempt} at {instant(entry.at, when)}{took}{by}{status}{detail}", good)


def _working(known: KnownFacts) -> list[Fact]:
    alive = known.alive
    if not alive:
        return [Fact("workers", _stuck(known) or "", good=False)]
    rounds = [worker.last_round_at for worker in alive if worker.last_round_at is not None]
    looked = f"; one looked for what is due {span(max(known.now_ms - max(rounds), 0))} ago" if rounds else ""
    idle = [Fact("workers", f"{worker.name} is {worker.doing}", good=False) for worker in alive if worker.doing != WORKING]
    idle += [Fact("workers", f"{worker.name} claims less: {worker.short_of}", good=False) for worker in alive if worker.short_of]
    if (lacking := _lacking(known)) is not None:
        idle.append(Fact("workers", f"none of them has {lacking}", good=False))
    queued = sum(worker.queued for worker in alive)
    waiting = f", with {queued:,} waiting" if queued else ""
    return [Fact("workers", f"{count(len(alive), 'worker')} alive{waiting}{looked}"), *idle]


def _covers(entry: Entry, at: int) -> bool:
    if entry.happened == "skipped" and entry.until_at is not None:
        return entry.nominal_at <= at <= entry.until_at
    return entry.nominal_at == at
