"""What is wrong with a store, and how to mend it; and, if asked to, mends what can be mended while workers run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from tickler.clock import Clock
from tickler.observe.checks import abilities, clocks, kept, mirror, next_fires, working
from tickler.observe.checks.standing import Standing, look
from tickler.observe.diagnosis import Diagnosis, Finding, OnProgress, unheard, worst_first
from tickler.store import Store

Find = Callable[[Store, Clock, OnProgress], Awaitable[Finding | None]]
Judge = Callable[[Standing], Finding | None]
Repair = Callable[[Store, Clock, OnProgress], Awaitable[tuple[int, int]]]  # how many were mended, and how many are left

# These read the whole store. They come first, since mending what they find may be what the others need.
DEEP: tuple[Find, ...] = (mirror.unindexed, mirror.orphans, next_fires.stale_next_fires, abilities.unserved)
QUICK: tuple[Judge, ...] = (
    working.no_worker,
    working.nothing_claimed,
    working.overdue,
    abilities.no_handler,
    abilities.short_of,
    abilities.abandoned,
    abilities.passed_on,
    clocks.clock,
    clocks.tzdata,
    kept.set_aside,
    working.outdated,
    kept.dead,
    kept.unpruned,
)
REPAIRS: dict[str, Repair] = {
    "unindexed": mirror.reindex,
    "orphans": mirror.drop_orphans,
    "stale-next-fire": next_fires.recompute,
    "set-aside": kept.take_back,
    "unpruned": kept.prune,
}


async def doctor(
    store: Store, clock: Clock, *, deep: bool = False, repair: bool = False, progress: OnProgress = unheard
) -> Diagnosis:
    """Quick checks are a bounded number of bounded queries; deep ones read everything. Nothing is changed but by `repair`."""
    found: dict[str, Finding] = {}
    for find in DEEP if deep else ():
        finding = await find(store, clock, progress)
        if finding is not None:
            found[finding.check] = await _mended(finding, store, clock, progress) if repair else finding
    standing = await look(store, clock)
    for judge in QUICK:
        finding = judge(standing)
        if finding is not None and finding.check not in found:
            found[finding.check] = await _mended(finding, store, clock, progress) if repair else finding
    return Diagnosis(at=standing.now_ms, deep=deep, findings=worst_first(list(found.values())))


async def _mended(finding: Finding, store: Store, clock: Clock, progress: OnProgress) -> Finding:
    if not finding.repairable:
        return finding
    repaired, left = await REPAIRS[finding.check](store, clock, progress)
    return replace(finding, repaired=repaired, left=left)
