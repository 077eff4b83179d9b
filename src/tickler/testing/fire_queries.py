"""Queries of the fire kits: what was claimed, what a fire store lists, and what its history says."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tickler.fires.contract import FireStore
from tickler.model.fire import Claim, Entry, Fire, Rule
from tickler.model.schedule import Id


def fires_of(claims: Sequence[Claim]) -> list[Fire]:
    """Return the fires of claims, each of which must have one."""
    fires = [claim.fire for claim in claims if claim.fire is not None]
    assert len(fires) == len(claims), "a claim has no fire, though its schedule is delivered at least once"
    return fires


def keys(claims: Sequence[Claim]) -> list[str]:
    return [claim.schedule.key for claim in claims]


def nominals(claims: Sequence[Claim]) -> list[int]:
    return [claim.nominal_at for claim in claims]


async def entries(fires: FireStore, key: str = "digest", *, owner: str = "u1") -> list[Entry]:
    """Return the history of a schedule, the latest first."""
    return [entry for _, entry in await fires.history(id=Id(owner, key), before=None, limit=1000)]


async def happenings(fires: FireStore, key: str = "digest") -> list[tuple[str, int]]:
    """Return outcomes and occurrences, sorted."""
    return sorted((entry.happened, entry.nominal_at) for entry in await entries(fires, key))


class Skip(msgspec.Struct, frozen=True):
    """A history entry about skipped instants."""

    rule: Rule | None
    first: int
    last: int | None
    count: int | None


async def skips(fires: FireStore, key: str = "digest") -> list[Skip]:
    """Return skips, sorted by their first instant."""
    found = [entry for entry in await entries(fires, key) if entry.happened == "skipped"]
    ordered = sorted(found, key=lambda entry: entry.nominal_at)
    return [Skip(entry.rule, entry.nominal_at, entry.until_at, entry.count) for entry in ordered]


async def listed(fires: FireStore, state: str, key: str | None = None, *, owner: str | None = None) -> list[Fire]:
    id = None if key is None else Id("u1", key)
    return await fires.list(state=state, id=id, owner=owner, after=None, limit=1000)  # type: ignore[arg-type]  # one of the states
