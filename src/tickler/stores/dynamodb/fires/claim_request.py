"""What a worker asks for when it claims or leases."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from tickler.model.fire import MAX_CLAIM_BYTES


class ClaimRequest(NamedTuple):
    """Who wants fires, when, for how long, and until when the history keeps what is to say of it; whose are passed over.

    What comes due until `until_ms` is wanted: that is later than now where a claim is made ahead of time. Of schedules, as they
    are stored, no more than `max_bytes` are.
    """

    now_ms: int
    worker: str
    lease_ms: int
    expires_at: int
    until_ms: int
    except_owners: Collection[str] = ()
    max_bytes: int = MAX_CLAIM_BYTES
    head_start_ms: int = 0  # of other workers, for fires that were given back
