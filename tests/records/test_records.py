"""Records as callers use them: what is taken, what is refused, and that what is refused leaves no trace."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from tickler.client import Tickler
from tickler.clock import ManualClock
from tickler.connect import connect
from tickler.errors import InvalidInput, InvalidSchedule, VersionConflict
from tickler.model.record import Record
from tickler.records.records import MAX_VALUE_BYTES

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
NOW = datetime(2030, 11, 20, 12, tzinfo=UTC)

CYCLE: list[object] = []
CYCLE.append(CYCLE)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
async def t(any_url: str, clock: ManualClock) -> AsyncIterator[Tickler]:
    """On each of the stores."""
    async with connect(any_url, clock=clock) as tickler:
        yield tickler


@pytest.fixture
async def in_memory(clock: ManualClock) -> AsyncIterator[Tickler]:
    """Where the store does not matter."""
    async with connect("memory://", clock=clock) as tickler:
        yield tickler


VALUES: list[object] = [None, True, 0, 1.5, "ä\u0000🐌", [], {}, {"a": [1, None, {"b": "c"}]}, 2**70]


@pytest.mark.parametrize("value", VALUES, ids=str)
async def test_a_value_comes_back_as_it_was_put(t: Tickler, value: object) -> None:
    put = await t.records.put("setting", "a b/ä", value)
    assert put == Record("setting", "a b/ä", value, 1)
    assert await t.records.get("setting", "a b/ä") == put
    assert await t.records.list("setting") == [put]
    assert await t.records.delete("setting", "a b/ä") is True
    assert await t.records.get("setting", "a b/ä") is None


@pytest.mark.parametrize(
    "value",
    [
        object(),
        print,
        1j,
        "\ud800",
        {None: 1},
        CYCLE,
        float("nan"),
        float("inf"),
        {"a": float("nan")},
        (1, 2),
        {1: 2},
        {1, 2},
        b"bytes",
        NOW,
        timedelta(1),
    ],
    ids=lambda value: f"{type(value).__name__} {str(value)[:20]!r}",
)
async def test_a_value_that_would_not_come_back_as_it_was_is_refused_and_nothing_written(
    in_memory: Tickler, value: object
) -> None:
    await in_memory.records.put("setting", "a", "before")
    with pytest.raises(InvalidInput, match=r"^value: "):
        await in_memory.records.put("setting", "a", value)
    assert await in_memory.records.get("setting", "a") == Record("setting", "a", "before", 1)


async def test_a_value_has_up_to_64_kilobytes_as_json(t: Tickler) -> None:
    fits = "ä" * (MAX_VALUE_BYTES // 2 - 1)
    await t.records.put("setting", "a", fits)
    with pytest.raises(InvalidInput, match=r"^value: has 65537 bytes: at most 65536 are allowed"):
        await t.records.put("setting", "a", fits + "x")
    got = await t.records.get("setting", "a")
    assert got is not None
    assert (got.value, got.version) == (fits, 1)


@pytest.mark.parametrize(
    "name", ["", "x" * 513, "a\nb", "a\x85b", "\ud800", None, 5, True, b"a"], ids=lambda name: repr(name)[:30]
)
async def test_a_kind_or_name_that_is_none_is_refused_by_what_it_was_given_for(in_memory: Tickler, name: str) -> None:
    records = in_memory.records
    for call in (
        lambda kind, named: records.get(kind, named),
        lambda kind, named: records.put(kind, named, 1),
        lambda kind, named: records.delete(kind, named),
    ):
        with pytest.raises(InvalidSchedule, match=r"^kind: "):
            await call(name, "a")
        with pytest.raises(InvalidSchedule, match=r"^name: "):
            await call("setting", name)
    with pytest.raises(InvalidSchedule, match=r"^kind: "):
        await records.list(name)


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "10", None, 2**64], ids=repr)
async def test_a_limit_that_is_no_number_of_records_is_refused(in_memory: Tickler, limit: object) -> None:
    with pytest.raises(InvalidInput, match=r"^limit: "):
        await in_memory.records.list("setting", limit=limit)  # type: ignore[arg-type]  # wrong types are the point


@pytest.mark.parametrize("after", [None, 5, b"a", "\ud800", "a\x00"], ids=repr)
async def test_a_place_to_go_on_after_that_is_no_name_is_refused(in_memory: Tickler, after: object) -> None:
    with pytest.raises(InvalidInput, match=r"^after: "):
        await in_memory.records.list("setting", after=after)  # type: ignore[arg-type]  # wrong types are the point


@pytest.mark.parametrize(
    "expires_at", [NOW_MS // 1000, NOW_MS * 1000, 0, -1, True, float(NOW_MS), "soon", NOW.replace(tzinfo=None), 2**64], ids=repr
)
async def test_an_expiry_that_is_no_instant_is_refused_and_nothing_written(in_memory: Tickler, expires_at: object) -> None:
    """One in seconds would have expired when it was written, and nobody would know."""
    with pytest.raises(InvalidInput, match=r"^expires_at: "):
        await in_memory.records.put("setting", "a", 1, expires_at=expires_at)  # type: ignore[arg-type]  # that is the point
    assert await in_memory.records.list("setting") == []


async def test_an_expiry_as_an_aware_datetime_is_taken_as_its_instant_or_refused(t: Tickler) -> None:
    try:
        await t.records.put("setting", "a", 1, expires_at=NOW + timedelta(hours=1))
    except InvalidInput:
        assert await t.records.list("setting") == []
        return
    assert await t.records.get("setting", "a") == Record("setting", "a", 1, 1, NOW_MS + 3_600_000)


@pytest.mark.parametrize("expected", [-1, True, 1.0, "1", 2**64], ids=repr)
async def test_an_expected_version_that_is_none_is_refused(in_memory: Tickler, expected: object) -> None:
    await in_memory.records.put("setting", "a", "before")
    with pytest.raises(InvalidInput, match=r"^expected: "):
        await in_memory.records.put("setting", "a", "after", expected=expected)  # type: ignore[arg-type]  # that is the point
    assert await in_memory.records.get("setting", "a") == Record("setting", "a", "before", 1)


async def test_a_conflict_names_the_record_and_leaves_it(t: Tickler) -> None:
    await t.records.put("setting", "a", "first")
    for expected, says in ((0, "already exists at version 1"), (2, "is at version 1, not at version 2")):
        with pytest.raises(VersionConflict, match=f"record setting/a {says}") as conflict:
            await t.records.put("setting", "a", "second", expected=expected)
        assert (conflict.value.expected, conflict.value.found) == (expected, 1)
    with pytest.raises(VersionConflict, match="record setting/b does not exist"):
        await t.records.put("setting", "b", "second", expected=1)
    assert await t.records.list("setting") == [Record("setting", "a", "first", 1)]


async def test_the_clock_decides_what_has_expired(t: Tickler, clock: ManualClock) -> None:
    put = await t.records.put("setting", "a", 1, expires_at=NOW_MS + 1_000)
    assert put.expires_at == NOW_MS + 1_000
    assert await t.records.get("setting", "a") == put
    assert await t.records.prune() == 0
    clock.advance(1)
    assert await t.records.get("setting", "a") is None
    assert await t.records.list("setting") == []
    assert await t.records.prune() == 1
    assert await t.records.prune() == 0
    assert (await t.records.put("setting", "a", 2)).version == 1


async def test_what_the_caller_does_to_a_value_later_does_not_reach_the_store(t: Tickler) -> None:
    value = {"a": [1]}
    put = await t.records.put("setting", "a", value)
    value["a"].append(2)
    assert isinstance(put.value, dict)
    put.value["b"] = 3
    got = await t.records.get("setting", "a")
    assert got is not None
    assert got.value == {"a": [1]}
