"""Checks that due fires are claimed: a worker runs, finds them, keeps up, and is not outdated."""

from __future__ import annotations

from tickler.distribution import DISTRIBUTION
from tickler.observe.checks.snapshot import CLAIM_TIMEOUT_MS, MAX_COUNTED, StoreSnapshot
from tickler.observe.diagnosis import Finding, Severity
from tickler.observe.human_format import count, instant, some, span
from tickler.records.worker_status import STOPPED

OVERDUE_MS = 60_000
TICK_INTERVAL_MS = 3_600_000
TICK_GRACE_MS = 5 * 60_000  # how long a fire may wait for the next tick


def no_worker(snapshot: StoreSnapshot) -> Finding | None:
    """Report a missing worker if there is something to deliver. After a recent tick, expect another one."""
    if snapshot.working or snapshot.next_at is None:
        return None
    now_ms, alive = snapshot.now_ms, snapshot.alive
    last = max(snapshot.workers, key=lambda worker: worker.seen_at, default=None)
    if alive:
        says = f"no worker claims anything: {alive[0].name} is {alive[0].doing}"
    elif last is None:
        says = "no worker has run on this store"
    else:
        how = "stopped" if last.doing == STOPPED else "was last seen"
        says = f"no worker is running: {last.name} {how} {span(max(now_ms - last.seen_at, 0))} ago"
    stopped_at = last.seen_at if last is not None and last.doing == STOPPED and not alive else None
    ticked = stopped_at is not None and now_ms - stopped_at < TICK_INTERVAL_MS
    if snapshot.due:
        between = ticked and snapshot.due[0].at >= (stopped_at or 0) and snapshot.late_ms < TICK_GRACE_MS
        remedy = "`tickler work`, or `tickler tick`" if between else "`tickler work`"
        says = f"{says}, and {_late(snapshot)}"
        return _about_due_fires(snapshot, "no-worker", "info" if between else "critical", says, remedy)
    return Finding(
        check="no-worker",
        severity="info" if ticked else "warning",
        count=1,
        says=f"{says}; the next fire is due at {instant(snapshot.next_at, None)}",
        example=None if last is None else last.name,
        remedy="`tickler work`, or `tickler tick` before then",
    )


def nothing_claimed(snapshot: StoreSnapshot) -> Finding | None:
    """Find workers that seem healthy but claim nothing: a worker seen after the fire was due should have claimed it."""
    working = snapshot.working
    if not working or not snapshot.due or any(worker.queued for worker in working):
        return None
    since = snapshot.due[0].at
    latest = max(working, key=lambda worker: worker.seen_at)
    claimed_at = max((worker.last_claim_at or 0 for worker in working), default=0)
    if claimed_at >= since or latest.seen_at < since + CLAIM_TIMEOUT_MS:
        return None
    has_searched = any((worker.last_round_at or 0) >= since for worker in working)
    idle = "is running but has not looked for due fires", "are running but none has looked for due fires"
    how = "looked for due fires and found none" if has_searched else idle[len(working) > 1]
    says = f"{count(len(working), 'worker')} {how}, although {_late(snapshot)}"
    remedy = f"`tickler doctor --repair`; if that does not help, see the log of {latest.name}"
    return _about_due_fires(snapshot, "nothing-claimed", "critical", says, remedy)


def overdue(snapshot: StoreSnapshot) -> Finding | None:
    working = snapshot.working
    if not working or snapshot.late_ms < OVERDUE_MS or nothing_claimed(snapshot) is not None:
        return None
    owner, key = snapshot.due[0][:2]
    says = f"{_late(snapshot)}, although {some(len(working), 'worker is running', 'workers are running')}"
    remedy = f"start more workers with `tickler work`; `tickler why {owner} {key}` explains the first one"
    return _about_due_fires(snapshot, "overdue", "warning", says, remedy)


def outdated(snapshot: StoreSnapshot) -> Finding | None:
    if not snapshot.outdated:
        return None
    number = min(len(snapshot.outdated), MAX_COUNTED)
    return Finding(
        check="outdated",
        severity="warning",
        count=number,
        at_least=len(snapshot.outdated) > number,
        says=f"{some(number, 'worker is', 'workers are')} older than some rows and skipped them: they do not fire there",
        example=snapshot.outdated[0],
        remedy=f"upgrade Tickler there (`pip install --upgrade {DISTRIBUTION}`), and restart it",
    )


def _about_due_fires(snapshot: StoreSnapshot, check: str, severity: Severity, says: str, remedy: str) -> Finding:
    number, more = min(len(snapshot.due), MAX_COUNTED), len(snapshot.due) > MAX_COUNTED
    return Finding(
        check=check, severity=severity, count=number, at_least=more, says=says, example=_first(snapshot), remedy=remedy
    )


def _late(snapshot: StoreSnapshot) -> str:
    late = span(snapshot.late_ms)
    one, many = f"fire has been due for {late}", f"fires have been due, the first for {late}"
    return some(min(len(snapshot.due), MAX_COUNTED), one, many, at_least=len(snapshot.due) > MAX_COUNTED)


def _first(snapshot: StoreSnapshot) -> str:
    first = snapshot.due[0]
    return f"{first.owner}/{first.key}, due since {instant(first.at, None)}"
