"""The schedule by which a connection is polled."""

from __future__ import annotations

from datetime import timedelta

from slothpost.identifiers import POLL, new_id, poll_key
from slothpost.model import Connection
from tickler import Every, Policy, PythonTarget, Schedule, Tickler
from tickler.table import Transaction

POLL_INTERVAL = timedelta(minutes=15)

# The next poll comes soon anyway, so a failed one is repeated only where the store failed. While one waits for a limit to end,
# the others are skipped.
_POLICY = Policy(attempts=3, backoff=[30, 120], timeout=300, overlap="skip", spread=timedelta(minutes=14))
_AT_ONCE = Policy(attempts=3, backoff=[30, 120], timeout=300)


def poll_schedule(connection: Connection, *, enabled: bool = True) -> Schedule:
    """Return the schedule: at another minute for each connection, so that not all of them ask at once."""
    return Schedule(
        owner=connection.user,
        key=poll_key(connection.product, connection.source),
        when=Every(seconds=POLL_INTERVAL.total_seconds()),
        target=PythonTarget(POLL),
        payload=_payload(connection),
        policy=_POLICY,
        enabled=enabled,
    )


async def start_polling(t: Tickler, tx: Transaction, connection: Connection) -> None:
    """Add the schedule of a connection to a transaction, and a poll at once."""
    await t.schedules.put(poll_schedule(connection), using=tx)
    key = f"{poll_key(connection.product, connection.source)}/at-once/{new_id()}"
    await t.send(connection.user, key, PythonTarget(POLL), _payload(connection), policy=_AT_ONCE, using=tx)


async def stop_polling(t: Tickler, tx: Transaction, connection: Connection) -> None:
    await t.schedules.delete(connection.user, poll_key(connection.product, connection.source), using=tx)


def _payload(connection: Connection) -> dict[str, str]:
    return {"user": connection.user, "product": connection.product, "source": connection.source}
