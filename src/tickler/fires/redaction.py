"""Hides worker names, which contain host names, from callers that may see one owner only."""

from __future__ import annotations

import re

from msgspec.structs import replace

from tickler.model.fire import Entry, Fire

SOMEBODY = "a worker"

# Matches the worker at the beginning of reasons from `fires/lease.py` and `model.fire.expired`.
_NAMED = re.compile(r"^.+?(?= lost its lease| was not heard of before its lease ended)", re.DOTALL)


def redacted_fire(fire: Fire, worker: str | None = None) -> Fire:
    """Return the fire with `worker` in place of its worker's name, if it has one."""
    return replace(fire, worker=None if fire.worker is None else worker, reason=_redacted(fire.reason))


def redacted_entry(entry: Entry, worker: str | None = None) -> Entry:
    return replace(entry, worker=None if entry.worker is None else worker, detail=_redacted(entry.detail))


def _redacted(text: str | None) -> str | None:
    return None if text is None else _NAMED.sub(SOMEBODY, text)
