"""Whether what is due is taken: no worker, workers that find nothing, workers that do not keep up, workers that are outdated."""

from __future__ import annotations

from tickler.distribution import DISTRIBUTION
from tickler.observe.checks.snapshot import CLAIM_TIMEOUT_MS, MAX_COUNTED, StoreSnapshot
from tickler.observe.diagnosis import Finding
from tickler.observe.human_format import count, instant, some, span
from tickler.records.worker_status import STOPPED

OVERDUE_MS = 60_000
TICKS_MS = 3_600_000  # whoever is ticked from outside is so at least this often
BETWEEN_TICKS_MS = 5 * 60_000  # for which what came due since the last tick may wait for the next


def no_worker(standing: StoreSnapshot) -> Finding | None:
    """Nothing to deliver needs no worker. One that stopped lately may have been a tick, of which the next will come."""
    if standing.working or standing.next_at is None:
        return None
    now_ms, alive = standing.now_ms, standing.alive
    seen = max(standing.workers, key=lambda worker: worker.seen_at, default=None)
    if alive:
        says = f"no worker claims anything: {alive[0].name} is {alive[0].doing}"
    elif seen is None:
        says = "no worker has been heard of"
    else:
        how = "stopped" if seen.doing == STOPPED else "was heard of"
        says = f"no worker is at work: the last one, {seen.name}, {how} {span(max(now_ms - seen.seen_at, 0))} ago"
    stopped_at = seen.seen_at if seen is not None and seen.doing == STOPPED and not alive else None
    ticked = stopped_at is not None and now_ms - stopped_at < TICKS_MS
    if standing.due:
        between = ticked and standing.due[0].at >= (stopped_at or 0) and standing.late_ms < BETWEEN_TICKS_MS
        return Finding(
            check="no-worker",
            severity="info" if between else "critical",
            count=_number(standing),
            at_least=_is_more(standing),
            says=f"{says}, and {_late(standing)}",
            example=_first(standing),
            remedy="`tickler work`, or let something tick" if between else "`tickler work`",
        )
    return Finding(
        check="no-worker",
        severity="info" if ticked else "warning",
        count=1,
        says=f"{says}; the next fire is due at {instant(standing.next_at, None)}",
        example=None if seen is None else seen.name,
        remedy="`tickler work`, or let something tick before then",
    )


def nothing_claimed(standing: StoreSnapshot) -> Finding | None:
    """The worst there is: all seems well, and nothing happens. A worker that has spoken since it was due would have it."""
    working = standing.working
    if not working or not standing.due or any(worker.queued for worker in working):
        return None
    since = standing.due[0].at
    spoke = max(working, key=lambda worker: worker.seen_at)
    claimed_at = max((worker.last_claim_at or 0 for worker in working), default=0)
    if claimed_at >= since or spoke.seen_at < since + CLAIM_TIMEOUT_MS:
        return None
    looked = any((worker.last_round_at or 0) >= since for worker in working)
    alive = "is alive, and has not looked for what is due", "are alive, and none has looked for what is due"
    how = "looked for what is due and found nothing" if looked else alive[len(working) > 1]
    return Finding(
        check="nothing-claimed",
        severity="critical",
        count=_number(standing),
        at_least=_is_more(standing),
        says=f"{count(len(working), 'worker')} {how}, although {_late(standing)}",
        example=_first(standing),
        remedy=f"`tickler doctor --repair`; if it stays, the log of {spoke.name} says why",
    )


def overdue(standing: StoreSnapshot) -> Finding | None:
    working = standing.working
    if not working or standing.late_ms < OVERDUE_MS or nothing_claimed(standing) is not None:
        return None
    owner, key = standing.due[0][:2]
    return Finding(
        check="overdue",
        severity="warning",
        count=_number(standing),
        at_least=_is_more(standing),
        says=f"{_late(standing)}, while {some(len(working), 'worker claims', 'workers claim')}",
        example=_first(standing),
        remedy=f"start more workers with `tickler work`; of the first, `tickler why {owner} {key}` says more",
    )


def outdated(standing: StoreSnapshot) -> Finding | None:
    if not standing.outdated:
        return None
    number = min(len(standing.outdated), MAX_COUNTED)
    return Finding(
        check="outdated",
        severity="warning",
        count=number,
        at_least=len(standing.outdated) > number,
        says=f"{count(number, 'worker')} met rows of a newer format and left them alone: they do not fire there",
        example=standing.outdated[0],
        remedy=f"upgrade Tickler there (`pip install --upgrade {DISTRIBUTION}`), and start it again",
    )


def _number(standing: StoreSnapshot) -> int:
    return min(len(standing.due), MAX_COUNTED)


def _is_more(standing: StoreSnapshot) -> bool:
    return len(standing.due) > MAX_COUNTED


def _late(standing: StoreSnapshot) -> str:
    late = span(standing.late_ms)
    one, many = f"fire has been due for {late}", f"fires have been due, the first for {late}"
    return some(_number(standing), one, many, at_least=_is_more(standing))


def _first(standing: StoreSnapshot) -> str:
    first = standing.due[0]
    return f"{first.owner}/{first.key}, due since {instant(first.at, None)}"
