"""The wording of *why*: the sentence, and the facts behind it. Pure. The reasons of fires that it quotes come from `deliver/`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from shlex import quote

import msgspec

from tickler.model.fire import POSTPONED, RELEASED, Entry, Fire, fire_id
from tickler.model.schedule import Id, StoredSchedule
from tickler.model.target import label_of
from tickler.observe.checks.abilities import requirement
from tickler.observe.human_format import count, instant, some, span
from tickler.observe.why_evidence import MAX_FIRES, Evidence
from tickler.records.worker_status import STOPPED, WORKING
from tickler.when import When

MAX_FACTS = 10  # about unsettled fires
CLAIM_TIMEOUT_MS = 5_000  # a schedule that is due for less is about to be claimed


class Fact(msgspec.Struct, frozen=True):
    """One link of the chain. `good` is False where the schedule fails to fire against its owner's intent.

    `idle` marks a schedule that does not fire on purpose: it is paused or finished.
    """

    about: str
    says: str
    good: bool = True
    idle: bool = False


def sentence_and_facts(evidence: Evidence, at: int | None) -> tuple[str, list[Fact]]:
    return _of_now(evidence) if at is None else _of_an_instant(evidence, at)


def _of_now(evidence: Evidence) -> tuple[str, list[Fact]]:
    schedule = evidence.schedule
    if schedule is None:
        return _gone(evidence)
    facts = [
        _definition(schedule),
        _indexed(schedule, evidence.now_ms),
        *_unsettled(evidence),
        *_last(evidence),
        *_workers(evidence),
    ]
    return _now_in_one_sentence(evidence, schedule), facts


def _now_in_one_sentence(evidence: Evidence, schedule: StoredSchedule) -> str:
    """Put dead fires first: they stay dead until a person acts, however healthy the rest is."""
    state = _present_state(evidence, schedule)
    dead = [fire for fire in evidence.fires if fire.state == "dead"]
    if not dead:
        return state
    state = state.removeprefix(f"{evidence.id} is not due yet: ")
    for name, pronoun in ((f"{evidence.id}'s ", "its "), (f"{evidence.id} ", "it ")):
        state = f"{pronoun}{state.removeprefix(name)}" if state.startswith(name) else state
    return f"{_dead_fires(evidence.id, dead, schedule.when)}; {state}"


def _dead_fires(id: Id, dead: Sequence[Fire], when: When) -> str:
    last = dead[-1]
    if len(dead) == 1:
        return f"{id}'s fire of {instant(last.nominal_at, when)} {_state_of(last, when, last.nominal_at)}"
    many = f"{len(dead)}{' or more' if len(dead) == MAX_FIRES else ''} fires of {id} are dead"
    because = f" ({last.reason})" if last.reason else ""
    return f"{many}, the last of {instant(last.nominal_at, when)}{because}: retry them with `{_retry_all(id)}`"


def _present_state(evidence: Evidence, schedule: StoredSchedule) -> str:
    id, now_ms, next_at = evidence.id, evidence.now_ms, schedule.next_fire_at
    if schedule.state == "finished":
        return _finished(evidence, schedule)
    if schedule.state != "active" or next_at is None:
        return f"{id} {_why_not_active(schedule)}"
    if schedule.target is None:
        return f"{id} has no target, so no worker delivers it: put it with one, or claim it from the index yourself"
    stuck = _no_worker(evidence)
    if next_at <= now_ms:
        late_ms = now_ms - next_at
        since = f"{id} has been due for {span(late_ms)}"
        if stuck:
            return f"{since}, and {stuck}"
        if late_ms < CLAIM_TIMEOUT_MS:
            return f"{id} is due now, and about to be claimed"
        return f"{since}{_workers_meanwhile(evidence, next_at)}"
    if (fire := _oldest_undelivered(evidence)) is not None:
        return _of_fire(evidence, fire)
    following = f"{id} is not due yet: it fires next at {instant(next_at, schedule.when)}, in {span(next_at - now_ms)}"
    return f"{following}, but {stuck}" if stuck else following


def _workers_meanwhile(evidence: Evidence, next_at: int) -> str:
    """Say what workers reported since the schedule was due."""
    working = [worker for worker in evidence.alive if worker.doing == WORKING]
    if queued := sum(worker.queued for worker in working):
        return f": {some(len(working), 'worker has', 'workers have')} {queued:,} fires queued before it"
    searched = sum(worker.last_round_at is not None and worker.last_round_at >= next_at for worker in working)
    if searched:
        return f" although {count(searched, 'worker')} looked for due fires: see `tickler doctor`"
    running = some(len(working), "worker is running but has not", "workers are running but none has")
    return f", and {running} looked for due fires since: see `tickler doctor`"


def _finished(evidence: Evidence, schedule: StoredSchedule) -> str:
    """Say what became of the last fire, if that is known."""
    if (fire := _oldest_undelivered(evidence)) is not None:
        return _of_fire(evidence, fire)
    delivered = next((entry for entry in evidence.history if entry.happened == "delivered"), None)
    if delivered is not None:
        return f"{evidence.id} was delivered at {instant(delivered.at, schedule.when)} and is finished: it will not fire again"
    return f"{evidence.id} {_why_not_active(schedule)}"


def _of_an_instant(evidence: Evidence, at: int) -> tuple[str, list[Fact]]:
    schedule, now_ms = evidence.schedule, evidence.now_ms
    entries = [entry for entry in evidence.history if _covers(entry, at)]
    unsettled = [fire for fire in evidence.fires if fire.nominal_at == at]
    facts: list[Fact] = []
    if schedule is not None:
        facts += [_definition(schedule), _instant_fact(schedule, at, [*entries, *unsettled])]
    facts += [_history_fact(entry, evidence.when) for entry in reversed(entries)]
    facts += [_fire_fact(fire, evidence.when, now_ms) for fire in unsettled]
    moment = instant(at, evidence.when)
    if unsettled:
        return _of_fire(evidence, unsettled[0]), [*facts, *_workers(evidence)]
    if entries:
        return _outcome(evidence.id, moment, entries, evidence.when), facts
    if schedule is None:
        sentence, facts = _gone(evidence)
        return f"no history of {moment}: {sentence}", facts
    return _no_history(evidence, schedule, at, moment), [*facts, *_workers(evidence)]


def _no_history(evidence: Evidence, schedule: StoredSchedule, at: int, moment: str) -> str:
    id, next_at = evidence.id, schedule.next_fire_at
    if schedule.state == "unreadable":
        return f"{id} {_why_not_active(schedule)}"
    if (mismatch := _not_scheduled(schedule, at, moment)) is not None:
        return mismatch
    if at > evidence.now_ms:
        if schedule.state != "active":
            return f"{moment} is in the future, but {id} {_why_not_active(schedule)}"
        return f"{moment} is in the future: {id} will fire then unless it is changed"
    if schedule.state == "active" and next_at is not None and next_at - schedule.offset_ms() <= at:
        return _present_state(evidence, schedule)
    if not evidence.is_complete:
        return f"no history of {moment} found: the history of {id} is longer than what was searched"
    if schedule.target is None:
        return f"{id} has no target: Tickler does not know what became of {moment}, your code claims it from the index"
    since = "changed since" if schedule.state == "active" else f"changed since (it {_why_not_active(schedule)})"
    return f"no history of {moment}: {id} was paused then, was {since}, or its history has been pruned"


def _not_scheduled(schedule: StoredSchedule, at: int, moment: str) -> str | None:
    """Say why the present definition does not fire at an instant; None if it does."""
    id, when = schedule.id, schedule.when
    if when.last_before(at) != at:
        around = [instant(each, when) for each in (when.last_before(at), when.next_after(at)) if each is not None]
        return f"{id} is not scheduled for {moment}: its instants around that are {' and '.join(around) or 'none'}"
    if schedule.starts_at is not None and at < schedule.starts_at:
        return f"{id} starts at {instant(schedule.starts_at, when)}, after {moment}"
    if schedule.ends_at is not None and at > schedule.ends_at:
        return f"{id} ended at {instant(schedule.ends_at, when)}, before {moment}"
    if at < schedule.created_at:
        return f"{id} did not exist at {moment}: it was created at {instant(schedule.created_at, when)}"
    return None


def _gone(evidence: Evidence) -> tuple[str, list[Fact]]:
    last = _last(evidence)
    if not evidence.history:
        return f"no schedule {evidence.id}, and no history of one: check owner and key", last
    return f"schedule {evidence.id} no longer exists: it was deleted, by someone or after its delivery", last


def _why_not_active(schedule: StoredSchedule) -> str:
    if schedule.state == "paused":
        because = f" ({schedule.reason})" if schedule.reason else ""
        return f"is paused{because}: resume it to fire again"
    if schedule.state == "finished":
        return "is finished: it will not fire again; give it another `when`"
    if schedule.state == "unreadable":
        return f"was set aside because it cannot be read ({schedule.reason}): put it again"
    return "is missing from the index: run `tickler doctor --repair`, or put it again"


def _no_worker(evidence: Evidence) -> str | None:
    """Say why no worker delivers the schedule; None if one does."""
    alive = evidence.alive
    if not alive:
        last = max(evidence.workers, key=lambda worker: worker.seen_at, default=None)
        if last is None:
            return "no worker has run on this store: start one with `tickler work`"
        how = "stopped" if last.doing == STOPPED else "was seen"
        ago = span(max(evidence.now_ms - last.seen_at, 0))
        return f"no worker is running, the last one {how} {ago} ago: start one with `tickler work`, or tick"
    if all(worker.doing != WORKING for worker in alive):
        return f"no worker claims anything: {alive[0].name} is {alive[0].doing}"
    if (missing := _missing(evidence)) is not None:
        return f"no running worker has {missing}: start one that does, or correct its target"
    return None


def _missing(evidence: Evidence) -> str | None:
    """Name what the target needs, if no running worker has it."""
    target = None if evidence.schedule is None else evidence.schedule.target
    if target is None or any(worker.can_deliver_to(label_of(target)) for worker in evidence.alive):
        return None
    return requirement(label_of(target))


def _oldest_undelivered(evidence: Evidence) -> Fire | None:
    return next((fire for fire in evidence.fires if fire.state != "dead"), None)


def _of_fire(evidence: Evidence, fire: Fire) -> str:
    stuck = _no_worker(evidence) if fire.state == "open" and fire.worker is None else None
    state = _state_of(fire, evidence.when, evidence.now_ms)
    return f"{evidence.id}'s fire of {instant(fire.nominal_at, evidence.when)} {state}" + (f", but {stuck}" if stuck else "")


def _state_of(fire: Fire, when: When | None, now_ms: int) -> str:
    because = f" ({fire.reason})" if fire.reason else ""
    if fire.state == "dead":
        return f"is dead{because}: retry it with `tickler retry {fire.id}`"
    if fire.state == "waiting":
        return "waits for the previous fire, because of its overlap policy"
    if fire.worker is not None:
        return f"is being delivered by {fire.worker}, attempt {fire.attempt}"
    if fire.deliver_after is None or fire.deliver_after <= now_ms:
        return f"is about to be attempted{because}"
    then = f"at {instant(fire.deliver_after, when)}, in {span(fire.deliver_after - now_ms)}"
    if fire.reason is not None and fire.was_postponed:
        failed = f"failed {'once' if fire.attempt == 1 else f'{fire.attempt} times'} and " if fire.attempt else ""
        return f"{failed}is postponed until {then.removeprefix('at ')}, because {fire.reason.removeprefix(POSTPONED)}"
    if fire.reason is not None and fire.reason.startswith(RELEASED):
        return f"was released without an attempt ({fire.reason.removeprefix(RELEASED)}), and will be attempted {then}"
    return f"failed at attempt {fire.attempt}{because}, and retries {then}" if fire.attempt else f"will be attempted {then}"


def _outcome(id: Id, moment: str, entries: Sequence[Entry], when: When | None) -> str:
    last = entries[0]
    if last.happened == "delivered":
        attempt = "" if last.attempt <= 1 else f", at attempt {last.attempt}"
        return f"{id}'s fire of {moment} was delivered {span(max(last.late_ms, 0))} after its instant{attempt}"
    if last.happened == "skipped":
        return f"{moment} of {id} was skipped by its {last.rule} policy, with {count(last.count or 1, 'instant')} in all"
    detail = f": {last.detail}" if last.detail else ""
    if last.happened in ("failed", "expired"):
        end = "and is dead" if last.gave_up else "with no later entry in the history"
        return f"{id}'s fire of {moment} failed at attempt {last.attempt}, {end}{detail}"
    until = f" until {instant(last.until_at, when)}" if last.happened == "postponed" and last.until_at is not None else ""
    return f"{id}'s fire of {moment} was {last.happened}{until}{detail}"


# The facts.


def _definition(schedule: StoredSchedule) -> Fact:
    target = "no target" if schedule.target is None else f"a target of type {schedule.target.__struct_config__.tag}"
    says = f"{schedule.when} in {schedule.when.tz}, with {target}, version {schedule.version}"
    return Fact("definition", says if schedule.enabled else f"{says}; it is paused", idle=not schedule.enabled)


def _indexed(schedule: StoredSchedule, now_ms: int) -> Fact:
    if schedule.state != "active" or schedule.next_fire_at is None:
        idle = schedule.state in ("paused", "finished")
        return Fact("index", f"it is not in the index: it {_why_not_active(schedule)}", good=idle, idle=idle)
    due = "due since" if schedule.next_fire_at <= now_ms else "due next at"
    spread = f", including {span(schedule.offset_ms())} of spread" if schedule.offset_ms() else ""
    return Fact("index", f"it is in the index, {due} {instant(schedule.next_fire_at, schedule.when)}{spread}")


def _instant_fact(schedule: StoredSchedule, at: int, found: Sequence[Entry | Fire]) -> Fact:
    when = schedule.when
    is_scheduled = when.last_before(at) == at
    triggered = fire_id(*schedule.id, at, triggered=True)
    if not is_scheduled and any((each.id if isinstance(each, Fire) else each.fire_id) == triggered for each in found):
        return Fact("instant", f"{instant(at, when)} was triggered manually")
    return Fact("instant", f"{instant(at, when)} is {'' if is_scheduled else 'not '}an instant of {when}", is_scheduled)


def _unsettled(evidence: Evidence) -> list[Fact]:
    """Group waiting fires, and dead ones by their reason; open fires get a fact each."""
    groups: dict[tuple[str, str | None], list[Fire]] = {}
    for fire in evidence.fires:
        groups.setdefault(("open", fire.id) if fire.state == "open" else (fire.state, fire.reason), []).append(fire)
    return [_group_fact(fires, evidence) for fires in islice(groups.values(), MAX_FACTS)]


def _group_fact(fires: Sequence[Fire], evidence: Evidence) -> Fact:
    first, last = fires[0], fires[-1]
    if len(fires) == 1:
        return _fire_fact(first, evidence.when, evidence.now_ms)
    when = evidence.when
    many = f"{len(fires)}{' or more' if len(fires) == MAX_FIRES else ''} fires, {instant(first.nominal_at, when)}"
    until = "" if last.nominal_at == first.nominal_at else f" to {instant(last.nominal_at, when)}"
    if first.state == "waiting":
        return Fact("fire", f"{many}{until}, wait for previous fires, because of its overlap policy")
    because = f" ({first.reason})" if first.reason else ""
    return Fact("fire", f"{many}{until}, are dead{because}: retry them with `{_retry_all(evidence.id)}`", good=False)


def _retry_all(id: Id) -> str:
    return f"tickler retry --all --owner {quote(id.owner)} --key {quote(id.key)}"


def _fire_fact(fire: Fire, when: When | None, now_ms: int) -> Fact:
    says = f"the fire of {instant(fire.nominal_at, when)} {_state_of(fire, when, now_ms)}"
    return Fact("fire", says, fire.state != "dead")


def _last(evidence: Evidence) -> list[Fact]:
    if not evidence.history:
        return [Fact("history", "no fire yet")]
    return [_history_fact(evidence.history[0], evidence.when)]


def _history_fact(entry: Entry, when: When | None) -> Fact:
    detail = f": {entry.detail}" if entry.detail else ""
    moment = instant(entry.nominal_at, when)
    if entry.happened == "skipped":
        until = "" if entry.until_at in (None, entry.nominal_at) else f" to {instant(entry.until_at or 0, when)}"
        skipped = f"{count(entry.count or 1, 'instant')} skipped by the {entry.rule} policy"
        return Fact("history", f"{moment}{until}: {skipped}", good=False)
    attempt = f" at attempt {entry.attempt}" if entry.attempt else ""
    by = f" by {entry.worker}" if entry.worker else ""
    status = f", answered {entry.status}" if entry.status else ""
    took = f" in {entry.duration_ms} ms" if entry.duration_ms is not None else ""
    until = "" if entry.until_at is None else f", until {instant(entry.until_at, when)}"
    good = entry.happened in ("delivered", "postponed", "retried")
    says = f"{moment}: {entry.happened}{attempt} at {instant(entry.at, when)}{took}{by}{status}{until}{detail}"
    return Fact("history", says, good)


def _workers(evidence: Evidence) -> list[Fact]:
    alive = evidence.alive
    if not alive:
        return [Fact("workers", _no_worker(evidence) or "", good=False)]
    rounds = [worker.last_round_at for worker in alive if worker.last_round_at is not None]
    searched = f"; one looked for due fires {span(max(evidence.now_ms - max(rounds), 0))} ago" if rounds else ""
    idle = [Fact("workers", f"{worker.name} is {worker.doing}", good=False) for worker in alive if worker.doing != WORKING]
    idle += [Fact("workers", f"{worker.name} claims less: {worker.short_of}", good=False) for worker in alive if worker.short_of]
    if (missing := _missing(evidence)) is not None:
        idle.append(Fact("workers", f"none of them has {missing}", good=False))
    queued = sum(worker.queued for worker in alive)
    backlog = f", with {queued:,} fires queued" if queued else ""
    return [Fact("workers", f"{count(len(alive), 'worker')} running{backlog}{searched}"), *idle]


def _covers(entry: Entry, at: int) -> bool:
    if entry.happened == "skipped" and entry.until_at is not None:
        return entry.nominal_at <= at <= entry.until_at
    return entry.nominal_at == at
