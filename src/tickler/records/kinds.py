"""The kinds of records that Tickler keeps for itself."""

from __future__ import annotations

OWN_KINDS = (
    "store",
    "zone",
    "outdated",
    "secret",
    "worker",
    "token",
    "audit",
    "server",
    "idempotency",
    "recent",
    "forecast",
    "copy",
)
