"""What is wrong with a store, and how to mend it; and, if asked to, mends what can be mended while workers run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from tickler.clock import Clock
from tickler.observe.checks import abilities, clocks, next_fires
from tickler.observe.checks import backlog as kept
from tickler.observe.checks import index_consistency as mirror
from tickler.observe.checks import workers as working
from tickler.observe.checks.snapshot import StoreSnapshot, look
from tickler.observe.diagnosis import Diagnosis, Finding, OnProgress, no_progress, worst_first
from tickler.stores.store import Store

Find = Callable[[Store, Clock, OnProgress], Awaitable[Finding | None]]
Judge = Callable[[StoreSnapshot], Finding | None]
Repair = Callable[[Store, Clock, OnProgress], Awaitable[tuple[int, int]]]  # how many were mended, and how many are left

# These read the whole store. They come first, since mending what they find may be what the others need.
DEEP: tuple[Find, ...] = (mirror.unindexed, mirror.orphans, next_fires.stale_next_fire, abilities.unserved)
QUICK: tuple[Judge, ...] = (
    working.no_worker,
    working.nothing_claimed,
    working.overdue,
    abilities.no_handler,
    abilities.exhausted,
    abilities.abandoned,
    abilities.passed_on,
    clocks.clock,
    clocks.tzdata,
    kept.set_aside,
    working.outdated,
    kept.dead,
    kept.unpruned,
    kept.storage,
)
# What a check that found nothing has shown. A check is named after its function, as its findings are.
SHOWN: dict[str, str] = {
    "unindexed": "every enabled schedule is in the index",
    "orphans": "every row of the index has its schedule",
    "stale-next-fire": "every schedule waits for its next instant",
    "unserved": "some worker can deliver each schedule",
    "no-worker": "a worker claims what is due, or nothing is to be delivered",
    "nothing-claimed": "workers find what is due",
    "overdue": "what is due is claimed within a minute",
    "no-handler": "some worker has each handler that was asked for",
    "exhausted": "no worker has run out of connections or memory",
    "abandoned": "every attempt whose time is over has ended",
    "passed-on": "no worker has to pass fires on to another",
    "clock": "this machine and all workers agree with the clock of the store",
    "tzdata": "this machine's time zone database is as new as the store's",
    "set-aside": "every schedule reads",
    "outdated": "no worker has met rows of a newer format",
    "dead": "no fire was given up",
    "unpruned": "the history is pruned",
    "storage": "what the store keeps beside its data does not grow without bound",
}
# Checks that look no further where another one has found something.
AFTER: dict[str, tuple[str, ...]] = {
    "nothing-claimed": ("no-worker",),
    "overdue": ("no-worker", "nothing-claimed"),
    "no-handler": ("no-worker",),
    "unserved": ("no-worker",),
}

REPAIRS: dict[str, Repair] = {
    "unindexed": mirror.reindex,
    "orphans": mirror.drop_orphans,
    "stale-next-fire": next_fires.recompute,
    "set-aside": kept.take_back,
    "unpruned": kept.prune,
}


async def doctor(
    store: Store, clock: Clock, *, deep: bool = False, repair: bool = False, progress: OnProgress = no_progress
) -> Diagnosis:
    """Quick checks are a bounded number of bounded queries; deep ones read everything. Nothing is changed but by `repair`."""
    found: dict[str, Finding] = {}
    passed: list[str] = []
    for find in DEEP if deep else ():
        finding = await find(store, clock, progress)
        if finding is None:
            passed.append(name_of(find))
        else:
            found[finding.check] = await _mended(finding, store, clock, progress) if repair else finding
    standing = await look(store, clock)
    for judge in QUICK:
        finding = judge(standing)
        if finding is None:
            passed.append(name_of(judge))
        elif finding.check not in found:
            found[finding.check] = await _mended(finding, store, clock, progress) if repair else finding
    passed = [name for name in passed if not any(other in found for other in (name, *AFTER.get(name, ())))]
    return Diagnosis(at=standing.now_ms, deep=deep, findings=worst_first(list(found.values())), passed=passed)


def name_of(check: Find | Judge) -> str:
    """As its findings name it."""
    return check.__name__.replace("_", "-")


async def _mended(finding: Finding, store: Store, clock: Clock, progress: OnProgress) -> Finding:
    if not finding.repairable:
        return finding
    repaired, left = await REPAIRS[finding.check](store, clock, progress)
    return replace(finding, repaired=repaired, left=left)
