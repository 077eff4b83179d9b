"""Which schedules a store needs, by its head. Pure.

Each instant at which editions can be settled has one schedule, named for it, however many editions there are. What has no
instant of its own, such as clearing up after an edition that was cancelled before it counted, is done `soon`.
"""

from __future__ import annotations

from datetime import datetime

from pricebook.editions.transitions import due_at, ever_counts
from pricebook.model import Edition, Head

OWNER_PREFIX = "store/"
SOON = "soon"
ENDS = "ends/"

Jobs = dict[str, datetime | None]
"""By the key of its schedule, the instant of each job; None for one that is due."""


def owner_of(store: str) -> str:
    return f"{OWNER_PREFIX}{store}"


def job_of(edition: Edition) -> tuple[str, datetime | None] | None:
    """Return the key and the instant of an edition's job, None while it is open."""
    at = due_at(edition)
    if at is None:
        return None
    return (change_key(at), at) if ever_counts(edition) else (SOON, None)


def jobs_of(head: Head) -> Jobs:
    """Return the jobs of all editions of a store."""
    return dict(job for edition in head.editions.values() if (job := job_of(edition)) is not None)


def changed_jobs(old: Head | None, new: Head) -> set[str]:
    """Return the keys of the jobs that a change of a head may have made or made void.

    An edition that has left the head was settled: its schedule has fired, or will find nothing to do.
    """
    keys: set[str] = set()
    for number, edition in new.editions.items():
        before = None if old is None else old.editions.get(number)
        jobs = {None if before is None else job_of(before), job_of(edition)}
        if len(jobs) > 1:
            keys |= {job[0] for job in jobs if job is not None}
    return keys


def change_key(at: datetime) -> str:
    return f"{at.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def ends_key(at: datetime) -> str:
    """Return the key of the schedule that tells that values have ended, which is not that of changes at the same instant."""
    return f"{ENDS}{change_key(at)}"


def is_change(key: str) -> bool:
    return key != SOON and not key.startswith(ENDS)
