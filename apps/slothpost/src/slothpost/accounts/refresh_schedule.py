"""The schedule that refreshes the tokens of an account where a network wants that done in time."""

from __future__ import annotations

from datetime import timedelta

from slothpost.identifiers import REFRESH
from slothpost.model import Account
from tickler import Every, Policy, PythonTarget, Schedule
from tickler.table import MISSING

LATEST_REFRESH = timedelta(days=30)
EARLIEST_REFRESH = timedelta(hours=25)  # Threads refuses to refresh a token that is younger than a day

# What the network says is handled by `AccessTokens.refresh_due`; what is left are failures of the store.
_POLICY = Policy(attempts=50, backoff=[60, 600, 3600], timeout=120)


def refresh_key(account_id: str) -> str:
    return f"refresh/{account_id}"


def refresh_schedule(account: Account) -> Schedule:
    """Return the schedule of an account that was just connected: at half the lifetime of its tokens, 30 days at most."""
    interval = LATEST_REFRESH
    if account.expires_at is not MISSING:
        interval = max(EARLIEST_REFRESH, min(LATEST_REFRESH, (account.expires_at - account.obtained_at) / 2))
    return Schedule(
        owner=account.user,
        key=refresh_key(account.id),
        when=Every(seconds=int(interval.total_seconds()), start=account.obtained_at + interval),
        target=PythonTarget(REFRESH),
        payload={"user": account.user, "account": account.id},
        policy=_POLICY,
    )
