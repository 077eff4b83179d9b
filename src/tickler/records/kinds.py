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
SEND = "send"  # sends that were made, by a hash of owner and key
COPY = "copy"  # how far a copy into this store has come
WEB = "web"  # with a suffix, what `tickler.web` keeps for one application

OWN_KINDS = frozenset({STORE, ZONE, OUTDATED, SECRET, WORKER, TOKEN, AUDIT, SERVER, IDEMPOTENCY, ACTIVITY, FORECAST, SEND, COPY})


def is_own(kind: str) -> bool:
    return kind in OWN_KINDS or kind.startswith((f"{AUDIT}-", f"{WEB}:"))


def web_kind(application: str, part: str = "") -> str:
    """Return the kind of an application's records, or of a part of them that is listed by itself."""
    return f"{WEB}:{application}:{part}" if part else f"{WEB}:{application}"
