"""Kinds of records that Tickler keeps for itself. Callers cannot write them."""

from __future__ import annotations

STORE = "store"  # facts about the store: its schema, its newest time zone database
ZONE = "zone"  # time zones that some machine could read
OUTDATED = "outdated"  # workers that met rows of a newer format
SECRET = "secret"  # noqa: S105  # a kind
WORKER = "worker"
TOKEN = "token"  # noqa: S105  # a kind
AUDIT = "audit"  # also, with a suffix, the entries of one owner
SERVER = "server"
IDEMPOTENCY = "idempotency"
ACTIVITY = "recent"
FORECAST = "forecast"
COPY = "copy"  # how far a copy into this store has come

OWN_KINDS = frozenset({STORE, ZONE, OUTDATED, SECRET, WORKER, TOKEN, AUDIT, SERVER, IDEMPOTENCY, ACTIVITY, FORECAST, COPY})
