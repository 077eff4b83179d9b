"""Checks a recorded run as Jepsen's checker for Chronos does: each target window has its fire, and no fire is outside one.

A schedule's targets are the instants that its declaration names, worked out here and not by Tickler. The window of a target
lasts from its instant for as long as a fire may be late. A run is what was declared, what arrived, what the history says, and
what killed workers had.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import Literal, NamedTuple

import msgspec

from tickler import Schedule
from tickler.fires import Entry
from tickler.model.fire import fire_id
from tickler.model.schedule import StoredSchedule
from under_fire.sink import Arrival

EARLY_MS = 200  # as exactly as a busy machine tells the time
MAX_COUNTED = 1_000  # a skip of so many or more says no more than that

_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000}

Kind = Literal["missing", "early", "late", "outside", "repeated", "two fires", "two windows", "not delivered", "skipped wrongly"]


class Declared(NamedTuple):
    """What a test put, as text."""

    owner: str
    key: str
    when: str
    at_most_once: bool = False
    ends_at: int | None = None
    put_at: int = 0  # only what comes after it fires


class Target(NamedTuple):
    owner: str
    key: str
    nominal_at: int


class Fault(NamedTuple):
    kind: Kind
    target: Target
    detail: str = ""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is over. Instants up to `until` are to have their fire, no later than `lateness_ms`.

    `lost` are ids of fires that killed workers held. `unheard` is for how many more they had asked the store,
    which may have given them without anybody knowing.
    """

    declared: list[Declared]
    arrivals: list[Arrival]
    entries: list[Entry]
    until: int
    lateness_ms: int
    lost: Collection[str] = ()
    unheard: int = 0


def declared(schedule: Schedule | StoredSchedule) -> Declared:
    once = schedule.policy.delivery == "at-most-once"
    put_at = schedule.created_at if isinstance(schedule, StoredSchedule) else 0
    return Declared(schedule.owner, schedule.key, str(schedule.when), once, schedule.ends_at, put_at)


def check_windows(run: Run) -> None:
    found = faults(run)
    assert not found, f"{len(found)} faults, such as {found[:5]}"


def faults(run: Run) -> list[Fault]:
    once = {(each.owner, each.key): each.at_most_once for each in run.declared}
    targets = {Target(each.owner, each.key, at) for each in run.declared for at in instants(each, run.until)}
    book = _Book(run, targets)
    found = [*_outside(run, targets), *_skips(run, targets)]
    for target in sorted(targets):
        found += _of_target(book, target, run.lateness_ms, at_most_once=once[target.owner, target.key])
    missing = [fault for fault in found if fault.kind == "missing" and once[fault.target.owner, fault.target.key]]
    excused = missing[: run.unheard]
    return [fault for fault in found if fault not in excused]


def instants(schedule: Declared, until: int) -> Iterator[int]:
    """By the text of the declaration alone: `at(…)` and `@every … from …`, which is what these tests put."""
    last = until if schedule.ends_at is None else min(until, schedule.ends_at)
    if once := re.fullmatch(r"at\((.+)\)", schedule.when):
        at = _ms(once[1])
        yield from [at] if schedule.put_at < at <= last else []
        return
    every = re.fullmatch(r"@every (\d+)([smh]) from (\S+)", schedule.when)
    assert every is not None, f"{schedule.when!r} is nothing that is worked out here"
    yield from (at for at in range(_ms(every[3]), last + 1, int(every[1]) * _UNITS_MS[every[2]]) if at > schedule.put_at)


class _Book:
    """What a run says of each target."""

    def __init__(self, run: Run, targets: Collection[Target]) -> None:
        self.arrivals: dict[Target, list[Arrival]] = defaultdict(list)
        self.entries: dict[Target, list[Entry]] = defaultdict(list)
        self.skipped: set[Target] = set()
        self.lost = frozenset(run.lost)
        skips: dict[tuple[str, str], list[Entry]] = defaultdict(list)
        for arrival in run.arrivals:
            self.arrivals[Target(arrival.owner, arrival.key, arrival.nominal_at)].append(arrival)
        for entry in run.entries:
            if entry.happened == "skipped":
                skips[entry.owner, entry.key].append(entry)
            else:
                self.entries[Target(entry.owner, entry.key, entry.nominal_at)].append(entry)
        for target in targets:
            if any(_covers(skip, target.nominal_at) for skip in skips.get(target[:2], ())):
                self.skipped.add(target)


def _of_target(book: _Book, target: Target, lateness_ms: int, *, at_most_once: bool) -> Iterator[Fault]:
    arrivals = book.arrivals.get(target, [])
    entries = book.entries.get(target, [])
    ids = {each.id for each in arrivals} | {entry.fire_id for entry in entries if entry.fire_id is not None}
    happened = {entry.happened for entry in entries}
    if len(ids) > 1:
        yield Fault("two fires", target, ", ".join(sorted(ids)))
    if target in book.skipped and (arrivals or happened):
        yield Fault("skipped wrongly", target, "and there is a fire of it")
    if not arrivals and not happened and target not in book.skipped and fire_id(*target) not in book.lost:
        yield Fault("missing", target)
    begun = [each.at for each in arrivals] or [entry.at for entry in entries if entry.happened in ("delivered", "failed")]
    if begun and min(begun) < target.nominal_at - EARLY_MS:
        yield Fault("early", target, f"by {target.nominal_at - min(begun)} ms")
    if begun and min(begun) > target.nominal_at + lateness_ms:
        yield Fault("late", target, f"by {min(begun) - target.nominal_at} ms")
    if at_most_once and len(arrivals) > 1:
        yield Fault("repeated", target, f"{len(arrivals)} arrivals")
    settled = "delivered" in happened or "cancelled" in happened or any(entry.gave_up for entry in entries)
    if not at_most_once and (arrivals or happened) and not settled:
        yield Fault("not delivered", target, f"the history has {sorted(happened)}")


def _outside(run: Run, targets: Collection[Target]) -> Iterator[Fault]:
    """Fires of no target, and those that claim to be of two."""
    named: dict[str, set[Target]] = defaultdict(set)
    for each in run.arrivals:
        named[each.id].add(Target(each.owner, each.key, each.nominal_at))
    for entry in run.entries:
        if entry.fire_id is not None:
            named[entry.fire_id].add(Target(entry.owner, entry.key, entry.nominal_at))
    for id, of in named.items():
        for target in of.difference(targets):
            if target.nominal_at <= run.until:
                yield Fault("outside", target, id)
        if len(of) > 1:
            yield Fault("two windows", min(of), f"{id} is also of {max(of)}")


def _skips(run: Run, targets: Iterable[Target]) -> Iterator[Fault]:
    """Each skip covers as many targets as it says."""
    instants_of: dict[tuple[str, str], list[int]] = defaultdict(list)
    for target in targets:
        instants_of[target[:2]].append(target.nominal_at)
    for entry in run.entries:
        if entry.happened == "skipped" and (entry.until_at or entry.nominal_at) <= run.until:
            covered = sum(_covers(entry, at) for at in instants_of[entry.owner, entry.key])
            if covered != entry.count and not (covered >= MAX_COUNTED and entry.count == MAX_COUNTED):
                where = Target(entry.owner, entry.key, entry.nominal_at)
                yield Fault("skipped wrongly", where, f"{entry.count} are said to be, and {covered} are")


def _covers(skip: Entry, at: int) -> bool:
    return skip.nominal_at <= at <= (skip.nominal_at if skip.until_at is None else skip.until_at)


def _ms(text: str) -> int:
    moment = datetime.fromisoformat(text)
    assert moment.tzinfo is not None, f"{text!r} has no offset"
    return round(moment.timestamp() * 1000)
