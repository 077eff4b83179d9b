"""What happened, without the names of workers: those are names of machines, and nothing to whoever is let in for one owner."""

from __future__ import annotations

import re

from msgspec.structs import replace

from tickler.model.fire import Entry, Fire

SOMEBODY = "a worker"

# How reasons begin that name whoever had the fire; see `fires/lease.py` and `fires.expired`.
_NAMED = re.compile(r"^.+?(?= went away with it| was not heard of before its lease ended)", re.DOTALL)


def nameless_fire(fire: Fire, worker: str | None = None) -> Fire:
    """`worker` stands for whoever has it, where somebody has."""
    return replace(fire, worker=None if fire.worker is None else worker, reason=_nameless(fire.reason))


def nameless_entry(entry: Entry, worker: str | None = None) -> Entry:
    return replace(entry, worker=None if entry.worker is None else worker, detail=_nameless(entry.detail))


def _nameless(text: str | None) -> str | None:
    return None if text is None else _NAMED.sub(SOMEBODY, text)
