"""Kinds of records that Tickler keeps for itself. Callers cannot write them."""

from __future__ import annotations

STORE = "store"  # facts about the store: its schema, its newest time zone database
ZONE = "zone"  # time zones that some machine could read
OUTDATED = "outdated"  # workers that met rows of a newer format
SECRET = "secret"  # noqa: S105  # a kind
WORKER = "worker"
TOKEN = "token"  # noqa: S105  # a kind
AUDIT = "audit"
SERVER = "server"
IDEMPOTENCY = "idempotency"
ACTIVITY = "recent"
FORECAST = "forecast"
COPY = "copy"  # how far a copy into this store has come

OWN_KINDS = frozenset({STORE, ZONE, OUTDATED, SECRET, WORKER, TOKEN, AUDIT, SERVER, IDEMPOTENCY, ACTIVITY, FORECAST, COPY})


def audit_of_owner(digest: str) -> str:
    """Return the kind of audit entries that concern one owner."""
    return f"{AUDIT}-{digest}"


def is_own(kind: str) -> bool:
    return kind in OWN_KINDS or kind.startswith(f"{AUDIT}-")
