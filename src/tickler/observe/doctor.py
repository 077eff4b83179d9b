"""Checks a store, and repairs it on request, also while workers run.

To add a check: write a function in `checks/`, in the file of its subject, that returns a `Finding` or None. The finding has the
function's name, with hyphens. List it in `DEEP` or `QUICK`, what it proves in `PASSED_MESSAGES`, its repair in
`REPAIRS`, and in `DEPENDS_ON` the checks without which it proves nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from tickler.clock import Clock
from tickler.database.progress import OnProgress, no_progress
from tickler.observe.checks import abilities, backlog, clocks, index_consistency, next_fires, streams, workers
from tickler.observe.checks.snapshot import StoreSnapshot, take_snapshot
from tickler.observe.diagnosis import Diagnosis, Finding, worst_first
from tickler.stores.store import Store

DeepCheck = Callable[[Store, Clock, OnProgress], Awaitable[Finding | None]]
QuickCheck = Callable[[StoreSnapshot], Finding | None]
Repair = Callable[[Store, Clock, OnProgress], Awaitable[tuple[int, int]]]  # the numbers of repaired and remaining cases

# Deep checks read the whole store. They run first, since their repairs may help the quick checks.
DEEP: tuple[DeepCheck, ...] = (
    index_consistency.unindexed,
    index_consistency.orphans,
    next_fires.stale_next_fire,
    abilities.unserved,
)
# Quick checks read a snapshot of bounded size.
QUICK: tuple[QuickCheck, ...] = (
    workers.no_worker,
    workers.nothing_claimed,
    workers.overdue,
    abilities.no_handler,
    abilities.exhausted,
    abilities.abandoned,
    abilities.passed_on,
    clocks.clock,
    clocks.tzdata,
    backlog.set_aside,
    workers.outdated,
    backlog.dead,
    backlog.unpruned,
    backlog.storage,
    streams.stream_stopped,
    streams.stream_lost,
    streams.stream_parked,
)
# What a check proves when it finds nothing.
PASSED_MESSAGES: dict[str, str] = {
    "unindexed": "every enabled schedule is in the index",
    "orphans": "every index row has a schedule",
    "stale-next-fire": "every schedule has the right next fire",
    "unserved": "every schedule can be delivered by a running worker",
    "no-worker": "a worker is running, or nothing is scheduled",
    "nothing-claimed": "workers claim due fires",
    "overdue": "due fires are claimed within a minute",
    "no-handler": "every handler that fires needed exists on a worker",
    "exhausted": "no worker has run out of connections or memory",
    "abandoned": "no attempt runs past its timeout",
    "passed-on": "all workers have the same handlers",
    "clock": "the clocks of this machine and all workers agree with the store's",
    "tzdata": "this machine's time zone database is as new as the store's",
    "set-aside": "every schedule can be read",
    "outdated": "no worker is older than the data it reads",
    "dead": "no fire is dead",
    "unpruned": "the history is pruned",
    "storage": "the store's logs do not grow without bound",
    "stream-stopped": "every consumer of a table gets on",
    "stream-lost": "no consumer of a table has lost changes",
    "stream-parked": "no change of a table is parked",
}
# A check that found nothing has not passed while one of these has a finding.
DEPENDS_ON: dict[str, tuple[str, ...]] = {
    "nothing-claimed": ("no-worker",),
    "overdue": ("no-worker", "nothing-claimed"),
    "no-handler": ("no-worker",),
    "unserved": ("no-worker",),
}

REPAIRS: dict[str, Repair] = {
    "unindexed": index_consistency.reindex,
    "orphans": index_consistency.drop_orphans,
    "stale-next-fire": next_fires.recompute,
    "set-aside": backlog.restore,
    "unpruned": backlog.prune,
}


async def doctor(
    store: Store, clock: Clock, *, deep: bool = False, repair: bool = False, on_progress: OnProgress = no_progress
) -> Diagnosis:
    """Check a store. Quick checks are a bounded number of bounded queries; deep ones read everything. Only `repair` writes."""
    found: dict[str, Finding] = {}
    passed: list[str] = []

    async def keep(check: DeepCheck | QuickCheck, finding: Finding | None) -> None:
        if finding is None:
            passed.append(name_of(check))
        elif finding.check not in found:
            if repair and finding.repairable:
                repaired, left = await REPAIRS[finding.check](store, clock, on_progress)
                finding = replace(finding, repaired=repaired, left=left)
            found[finding.check] = finding

    for deep_check in DEEP if deep else ():
        await keep(deep_check, await deep_check(store, clock, on_progress))
    snapshot = await take_snapshot(store, clock)
    for quick_check in QUICK:
        await keep(quick_check, quick_check(snapshot))
    passed = [name for name in passed if not any(other in found for other in (name, *DEPENDS_ON.get(name, ())))]
    return Diagnosis(at=snapshot.now_ms, deep=deep, findings=worst_first(list(found.values())), passed=passed)


def name_of(check: DeepCheck | QuickCheck) -> str:
    """Return the name that its findings have."""
    return check.__name__.replace("_", "-")
