"""Many schedules, a line each: in and out of every store, and whatever a line may be."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tracemalloc
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from datetime import timedelta
from typing import TypeVar

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tickler import (
    At,
    Cron,
    Every,
    HttpTarget,
    InvalidInput,
    InvalidSchedule,
    LambdaTarget,
    ManualClock,
    Policy,
    PythonTarget,
    Schedule,
    SqsTarget,
    StoreUnavailable,
    Tickler,
    Weekly,
    connect,
    new_key,
)
from tickler.database import pacing
from tickler.database.pacing import LONG_BYTES, Pace
from tickler.model.schedule_json import schedule_to_json
from tickler.schedules.schedules import Schedules
from tickler.transfer import ndjson
from tickler.transfer.ndjson import MAX_LINE_LENGTH, LineResult, export_lines, import_lines
from tickler.when import zones

T = TypeVar("T")

NOW_MS = 1_893_456_000_000  # 2030-01-01T00:00:00Z
DAILY = {"owner": "u1", "key": "k", "when": "@daily"}

DECLARED = [
    Schedule(owner="u1", key="cron", when=Cron("0 9 * * tue", tz="Europe/Paris"), target="https://example.org/hook"),
    Schedule(
        owner="u1", key="once/ever", when=At("2035-01-01T09:00:00", tz="Asia/Tokyo"), target=PythonTarget("h"), payload=[1, None]
    ),
    Schedule(owner="u1", key="kept", when=At("2035-01-01T09:00:00Z"), delete_after=False, enabled=False),
    Schedule(owner="u1", key="weekly", when=Weekly({"tue": ["09:00", "17:30:15"]}), payload={"a": {"ü": "\u2028"}}),
    Schedule(owner="u2", key="every", when=Every(minutes=5, start=NOW_MS + 1), starts_at=NOW_MS + 5, ends_at=NOW_MS * 2),
    Schedule(owner="u2", key="policy", when="@daily", policy=Policy(missed="skip", spread=1.5, backoff=[1, timedelta(hours=1)])),
    Schedule(owner="u3", key="sqs", when="@daily", target=SqsTarget("arn:aws:sqs:eu-west-1:123456789012:q")),
    Schedule(owner="u3", key="λ", when="@daily", target=LambdaTarget("arn:aws:lambda:eu-west-1:123456789012:function:f")),
]


@pytest.fixture
async def t(any_url: str) -> AsyncIterator[Tickler]:
    async with connect(any_url, clock=ManualClock(NOW_MS), create=True) as tickler:
        yield tickler


@pytest.fixture
async def memory() -> AsyncIterator[Tickler]:
    async with connect("memory://", clock=ManualClock(NOW_MS)) as tickler:
        yield tickler


async def pieces(*of: bytes) -> AsyncIterator[bytes]:
    for piece in of:
        yield piece


def lines(*of: object) -> bytes:
    return b"".join(line + b"\n" if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in of)


async def imported(t: Tickler, *data: bytes, **how: object) -> list[LineResult]:
    return [result async for result in import_lines(t.schedules, pieces(*data), **how)]  # type: ignore[arg-type]


async def exported(t: Tickler, owner: str | None = None) -> bytes:
    return b"".join([piece async for piece in export_lines(t.schedules, owner)])


async def declared(t: Tickler) -> list[Schedule]:
    return [schedule.declared() for schedule in (await t.schedules.list(limit=1000)).items]


# In and out, on every store.


async def test_what_was_exported_is_imported_as_it_was(t: Tickler) -> None:
    await t.schedules.put_many(DECLARED)
    data = await exported(t)
    assert data.count(b"\n") == len(DECLARED)
    async with connect("memory://", clock=ManualClock(NOW_MS)) as other:
        assert [result.error for result in await imported(other, data)] == [None] * len(DECLARED)
        assert await declared(other) == await declared(t) == sorted(DECLARED, key=lambda each: each.id)
        assert await exported(other) == data
    assert [result.error for result in await imported(t, data)] == [None] * len(DECLARED)
    assert {schedule.version for schedule in (await t.schedules.list()).items} == {1}  # nothing changed


async def test_an_export_with_its_bounds_as_text_is_imported_and_exported_in_milliseconds(memory: Tickler) -> None:
    """As exports were written once."""
    bounds = {"starts_at": "2030-01-01T00:00:00.005Z", "ends_at": "2031-01-01T01:00:00+01:00"}
    assert [result.error for result in await imported(memory, lines({**DAILY, **bounds}))] == [None]
    line = json.loads(await exported(memory))
    assert (line["starts_at"], line["ends_at"]) == (NOW_MS + 5, 1_924_992_000_000)


async def test_an_export_may_be_of_one_owner_and_is_read_by_pages(t: Tickler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ndjson, "PAGE", 2)
    await t.schedules.put_many(DECLARED)
    of_one = [piece async for piece in export_lines(t.schedules, "u1")]
    assert [piece.count(b"\n") for piece in of_one] == [2, 2]
    assert [json.loads(line)["key"] for line in b"".join(of_one).splitlines()] == ["cron", "kept", "once/ever", "weekly"]
    assert await exported(t, "nobody") == b""


async def test_a_line_that_is_refused_is_named_and_the_others_are_put(t: Tickler) -> None:
    past = {**DAILY, "key": "past", "when": "at(2001-01-01T00:00:00)"}
    good = [{**DAILY, "key": f"k{number}"} for number in range(3)]
    results = await imported(t, lines(good[0], b"{", past, good[1], {**DAILY, "when": "0 25 * * *"}, good[2]))
    assert [(result.line, result.key, result.error) for result in results] == [
        (1, "k0", None),
        (2, None, "is not JSON: expecting property name enclosed in double quotes at line 1, column 2"),
        (
            3,
            "past",
            "u1/past would never fire: its only instant, 2001-01-01T00:00:00Z, has passed or lies before its start; "
            "set enabled to false to store it paused",
        ),
        (4, "k1", None),
        (5, "k", "in '0 25 * * *', hour '25' is invalid: write 0 to 23"),
        (6, "k2", None),
    ]
    assert [schedule.key for schedule in await declared(t)] == ["k0", "k1", "k2"]


async def test_all_or_none_puts_nothing_when_a_line_is_refused(t: Tickler) -> None:
    past = {**DAILY, "key": "past", "when": "at(2001-01-01T00:00:00)"}
    good = [{**DAILY, "key": f"k{number}"} for number in range(3)]
    for bad, reason in ((b"{", "is not JSON"), (past, "would never fire"), (good[0], "u1/k0 is also on line 1")):
        (refused,) = await imported(t, lines(good[0], bad, good[1], good[2]), all_or_none=True)
        assert refused.line == 2
        assert refused.error is not None
        assert reason in refused.error
        assert await declared(t) == []
    results = await imported(t, lines(*good), all_or_none=True)
    assert results == [LineResult(line=number + 1, owner="u1", key=f"k{number}") for number in range(3)]
    assert len(await declared(t)) == 3


async def test_where_owner_and_key_come_again_the_later_line_counts(t: Tickler) -> None:
    results = await imported(t, lines(DAILY, {**DAILY, "key": "other"}, {**DAILY, "when": "@hourly"}))
    assert [result.error for result in results] == [None] * 3
    assert [(schedule.key, str(schedule.when)) for schedule in await declared(t)] == [("k", "0 * * * *"), ("other", "0 0 * * *")]


# What a line may be.

BAD = {
    b"[1]": "schedule: is a list",
    b"null": "schedule: is a NoneType",
    b'{"owner": "u1", "owner": "u2", "key": "k", "when": "@daily"}': "'owner' occurs twice",
    b'{"owner": "u1", "key": "k", "when": "@daily", "payload": {"a": {"b": 1, "b": 2}}}': "'b' occurs twice",
    b'{"owner": "u1", "key": "k", "when": "@daily", "payload": NaN}': "NaN is not a number",
    b'{"owner": "u1", "key": "k", "when": "@daily", "payload": -Infinity}': "-Infinity is not a number",
    b'{"owner": "u1", "key": "k", "when": "@daily", "payload": 1e999}': "too large",
    b'{"owner": "u1", "key": "k", "when": "@daily", "payload": 123456789012345678901234567890}': "does not fit into 64 bits",
    b'{"owner": "u1", "key": "k", "when": "@daily", "payload": ' + b"9" * 5000 + b"}": "too long",
    b'{"owner": "u1", "key": "k", "when": "@daily", "payload": "\xff"}': "is not UTF-8",
    b'{"owner": "u1", "key": "k", "when": "@daily", "payload": "\\ud800"}': "contains an unpaired surrogate",
    b'{"owner": "\\udfff", "key": "k", "when": "@daily"}': "contains an unpaired surrogate",
    b'{"owner": "u1", "key": "k", "when": "@daily", "payload": ' + b"[" * 150 + b"]" * 150 + b"}": "nested deeper",
    b'{"owner": "u1", "key": "k", "when": ' + b"[" * 900 + b"]" * 900 + b"}": "",
    b'{"owner": "u1", "key": "k", "when": ' + b"[" * 100_000 + b"]" * 100_000 + b"}": "nested",
    b'{"owner": "u1", "key": "k", "when": "@daily"} {}': "is not JSON",
    b'{"owner": "u1\\u0000", "key": "k", "when": "@daily"}': "control characters",
    b'{"owner": "u1", "key": 5, "when": "@daily"}': "key: is a int",
    b'{"owner": "u1", "key": "k", "when": "@daily", "colour": "blue"}': "colour: unknown field",
    b'{"owner": "u1", "key": "k", "when": "@daily", "target": "nowhere"}': "target.url",
    b'{"owner": "u1", "key": "k", "when": "@daily", "payload": "' + b"x" * 300_000 + b'"}': "payload: has 300002 bytes",
    b'{"owner": "u1", "key": "k", "payload": "' + b"x" * MAX_LINE_LENGTH + b'"}': "is longer than 1000000 bytes",
}


@pytest.mark.parametrize(("line", "reason"), BAD.items(), ids=[f"{line[:60]!r} {reason}" for line, reason in BAD.items()])
async def test_a_bad_line_is_an_error_of_that_line(memory: Tickler, line: bytes, reason: str) -> None:
    first, bad, last = await imported(memory, lines(DAILY, line, {**DAILY, "key": "last"}))
    assert (first.error, last.error) == (None, None)
    assert bad.error is not None
    assert reason in bad.error
    assert "\n" not in bad.error
    assert [schedule.key for schedule in await declared(memory)] == ["k", "last"]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
async def test_pieces_may_end_anywhere(memory: Tickler, size: int) -> None:
    data = b"\xef\xbb\xbf" + b"\r\n".join(json.dumps(schedule_to_json(each)).encode() for each in DECLARED) + b"\n\n  \n{"
    cut = [data[start : start + size] for start in range(0, len(data), size)]
    *good, bad = await imported(memory, *cut)
    assert [result.line for result in good] == list(range(1, len(DECLARED) + 1))
    assert [result.error for result in good] == [None] * len(DECLARED)
    assert bad.line == len(DECLARED) + 3
    assert await declared(memory) == sorted(DECLARED, key=lambda each: each.id)


async def test_an_endless_line_is_not_held_in_memory(memory: Tickler) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(400):
            yield b"x" * 65_536
        yield b"\n" + lines(DAILY)

    tracemalloc.start()
    try:
        results = [result async for result in import_lines(memory.schedules, endless())]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [(result.line, result.error is None) for result in results] == [(1, False), (2, True)]
    assert peak < 8_000_000


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
fields = st.fixed_dictionaries(
    {},
    optional={
        "owner": st.just("u1") | json_values,
        "key": st.sampled_from(["a", "b"]) | json_values,
        "when": st.sampled_from(["@daily", "at(2035-01-01)", "rate(5 minutes)"]) | json_values,
        "tz": st.sampled_from(["UTC", "Europe/Paris"]) | json_values,
        "target": st.fixed_dictionaries({"type": st.sampled_from(["http", "python", "x"])}, optional={"url": json_values})
        | json_values,
        "payload": json_values,
        "policy": st.dictionaries(st.sampled_from(Policy.__struct_fields__), json_values, max_size=2) | json_values,
        "starts_at": st.sampled_from(["2031-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00"]) | json_values,
        "ends_at": json_values,
        "delete_after": json_values,
        "enabled": json_values,
    },
)
any_line = st.binary(max_size=60).map(lambda line: line.replace(b"\n", b"")) | fields.map(lambda each: json.dumps(each).encode())


@settings(max_examples=100, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(any_line, max_size=3))
def test_every_line_gets_one_answer_whatever_it_is(data: list[bytes]) -> None:
    async def run() -> list[LineResult]:
        async with connect("memory://", clock=ManualClock(NOW_MS)) as t:
            return await imported(t, lines(*data))

    results = asyncio.run(run())
    first_without_mark = [data[0].removeprefix(b"\xef\xbb\xbf"), *data[1:]] if data else []
    assert [result.line for result in results] == [number for number, line in enumerate(first_without_mark, 1) if line.strip()]


# How much it takes.


class Counting(Schedules):
    """Counts writes."""

    def __init__(self, schedules: Schedules) -> None:
        self.__dict__.update(schedules.__dict__)
        self.sizes: list[int] = []

    async def put_many(self, schedules: Iterable[Schedule], *, using: object = None) -> int:
        given = list(schedules)
        self.sizes.append(len(given))
        return await super().put_many(given, using=using)


async def sizes(t: Tickler, data: bytes) -> list[int]:
    counting = Counting(t.schedules)
    async for _ in import_lines(counting, pieces(data)):
        pass
    return counting.sizes


async def test_a_thousand_are_written_at_once(memory: Tickler) -> None:
    assert await sizes(memory, lines(*({**DAILY, "key": str(number)} for number in range(2500)))) == [1000, 1000, 500]


async def test_fewer_are_written_at_once_when_they_are_large(memory: Tickler) -> None:
    large = [{**DAILY, "key": str(number), "payload": "x" * 250_000} for number in range(16)]
    assert await sizes(memory, lines(*large)) == [7, 7, 2]


async def test_fewer_are_written_at_once_when_no_two_fire_together(memory: Tickler) -> None:
    many = [{**DAILY, "key": str(number), "when": f"{number % 60} {number // 60} * * *"} for number in range(500)]
    assert await sizes(memory, lines(*many)) == [200, 200, 100]


@pytest.mark.parametrize(("bad", "most"), [({500}, 4), (set(range(0, 1000, 100)), 45), (set(range(1000)), 1020), (set(), 1)])
async def test_bad_lines_cost_few_writes(memory: Tickler, bad: set[int], most: int) -> None:
    past = "at(2001-01-01T00:00:00)"
    data = [{**DAILY, "key": str(number), "when": past if number in bad else "@daily"} for number in range(1000)]
    assert len(await sizes(memory, lines(*data))) <= most
    assert {int(schedule.key) for schedule in await declared(memory)} == set(range(1000)) - bad


# Who may, and what is left out.


async def test_what_may_not_be_put_is_refused_as_any_other_line(memory: Tickler) -> None:
    def only_u1(schedule: Schedule) -> None:
        if schedule.owner != "u1":
            raise InvalidSchedule("owner", "is not yours")

    results = await imported(memory, lines(DAILY, {**DAILY, "owner": "u2"}), check=only_u1)
    assert [result.error for result in results] == [None, "owner: is not yours"]


async def test_what_the_store_says_of_a_whole_batch_is_found_out_by_trying_less(memory: Tickler) -> None:
    """An error that does not name the position it is about."""

    class Picky(Counting):
        async def put_many(self, schedules: Iterable[Schedule], *, using: object = None) -> int:
            given = list(schedules)
            if any(schedule.key == "7" for schedule in given):
                raise InvalidInput("one of them does not suit me")
            return await super().put_many(given, using=using)

    data = lines(*({**DAILY, "key": str(number)} for number in range(20)))
    results = [result async for result in import_lines(Picky(memory.schedules), pieces(data))]
    assert [(result.line, result.error) for result in results if result.error] == [(8, "one of them does not suit me")]
    assert len(await declared(memory)) == 19
    with pytest.raises(InvalidInput, match="does not suit me"):
        async for _ in import_lines(Picky(memory.schedules), pieces(data), all_or_none=True):
            pass


async def test_a_store_that_goes_away_is_no_fault_of_a_line(sqlite_url: str) -> None:
    async with connect(sqlite_url) as t:
        schedules = t.schedules
    with pytest.raises(StoreUnavailable):
        async for _ in import_lines(schedules, pieces(lines(DAILY))):
            pass


async def test_what_was_written_has_its_result_when_the_store_goes_away_in_the_midst_of_a_batch(memory: Tickler) -> None:
    class Failing(Counting):
        async def put_many(self, schedules: Iterable[Schedule], *, using: object = None) -> int:
            if len(self.sizes) == 2:
                raise StoreUnavailable("the disk is gone")
            return await super().put_many(schedules, using=using)

    data = [{**DAILY, "key": str(number), "when": "at(2001-01-01T00:00:00)" if number == 4 else "@daily"} for number in range(10)]
    results: list[LineResult] = []

    async def run() -> None:
        async for result in import_lines(Failing(memory.schedules), pieces(lines(*data[:2], b"no", *data[2:]))):
            results.append(result)

    with pytest.raises(StoreUnavailable):
        await run()
    assert [(result.line, result.error is None) for result in results] == [(1, True), (2, True), (3, False), (4, True), (5, True)]
    assert {schedule.key for schedule in await declared(memory)} == {"0", "1", "2", "3"}


async def test_others_have_their_turn_while_lines_are_read(memory: Tickler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "TURN_S", 0)  # so long a line takes in any case
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    others = asyncio.create_task(take_turns())
    await imported(memory, lines(*[{**DAILY, "when": "no"}] * 900))
    others.cancel()
    assert turns >= 890


async def test_one_of_many_imports_has_its_turn_at_a_time(memory: Tickler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "TURN_S", 0)
    pace, turn, read_in = Pace(), 0, Counter[int]()

    async def take_turns() -> None:
        nonlocal turn
        while True:
            await asyncio.sleep(0)
            turn += 1

    others = asyncio.create_task(take_turns())

    def refuse(schedule: Schedule) -> None:
        read_in[turn] += 1
        raise InvalidSchedule("owner", "is not yours")

    data = lines(*[DAILY] * 20)
    await asyncio.gather(*(imported(memory, data, check=refuse, pace=pace) for _ in range(10)))
    others.cancel()
    assert (read_in.total(), max(read_in.values())) == (200, 1)


async def test_few_of_many_imports_work_out_what_to_write_at_once(memory: Tickler, monkeypatch: pytest.MonkeyPatch) -> None:
    writing, most = 0, 0
    put_many = memory.schedules.put_many

    async def slowly(schedules: Iterable[Schedule]) -> int:
        nonlocal writing, most
        writing += 1
        most = max(most, writing)
        await asyncio.sleep(0.001)
        writing -= 1
        return await put_many(schedules)

    monkeypatch.setattr(memory.schedules, "put_many", slowly)
    pace = Pace()
    await asyncio.gather(*(imported(memory, lines(DAILY), pace=pace) for _ in range(10)))
    assert most == pacing.MAX_WRITERS


async def test_long_lines_are_read_aside(memory: Tickler) -> None:
    aside: list[object] = []

    async def elsewhere(work: Callable[[], T], /) -> T:
        aside.append(work)
        return await asyncio.to_thread(work)

    data = lines({**DAILY, "payload": "x" * LONG_BYTES}, {**DAILY, "key": "short"}, {**DAILY, "tz": "x" * LONG_BYTES})
    results = await imported(memory, data, aside=elsewhere)
    assert [result.error is None for result in results] == [True, True, False]
    assert len(aside) == 2


@pytest.mark.parametrize(
    "named",
    [
        {"tz": "Europe/Pariss"},
        {"when": "CRON_TZ=Europe/Pariss 0 9 * * *"},
        {"when": " TZ=Europe/Pariss\t@daily"},
        {"when": "TZ=Europe/Pariss cron(0 9 ? * 2-6 *)"},
        {"when": {"weekly": {"tue": {"time": "09:00"}}}, "tz": "Europe/Pariss"},
        {"when": "at(2090-01-01T00:00:00)", "tz": "Europe/Pariss"},
        {"when": "@every 5m", "tz": "Europe/Pariss"},
    ],
    ids=str,
)
async def test_nobody_looks_for_the_zone_that_was_meant(
    memory: Tickler, monkeypatch: pytest.MonkeyPatch, named: dict[str, object]
) -> None:
    """A single put says which; to find it out for each of many lines takes minutes."""

    def never(*args: object) -> str:
        raise AssertionError("looked for a near name")

    monkeypatch.setattr(zones, "_suggestion", never)
    (result,) = await imported(memory, lines({**DAILY, **named}))
    assert result.error is not None
    expected = "unknown time zone 'Europe/Pariss': use an IANA name such as 'Europe/Paris' (time zone database "
    assert result.error.startswith(expected)


async def test_what_would_be_torn_is_left_out_by_name_or_stops_the_export(sqlite_url: str) -> None:
    async with connect(sqlite_url, clock=ManualClock(NOW_MS)) as t:
        await t.schedules.put_many(Schedule(owner="u1", key=key, when="@daily") for key in ("good", "newer", "torn", "unread"))
        connection = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))
        for key, column, value in (
            ("newer", "body", '{"mood": 1}'),
            ("torn", "body", "{"),
            ("unread", "when_text", "phase(moon)"),
        ):
            connection.execute(f"UPDATE tickler_schedules SET {column} = ? WHERE key = ?", (value, key))
        connection.execute("DELETE FROM tickler_index WHERE key = 'unread'")
        connection.commit()
        connection.close()
        left_out: list[str] = []
        found = [piece async for piece in export_lines(t.schedules, left_out=lambda each: left_out.append(each.key))]
        with pytest.raises(InvalidSchedule, match="u1/newer was written by a newer Tickler: upgrade, then export"):
            await exported(t)
    kept = [json.loads(line)["key"] for line in b"".join(found).splitlines()]
    assert sorted(kept + left_out) == ["good", "newer", "torn", "unread"]
    assert "good" in kept
    assert {"newer", "torn"} <= set(left_out)


# Sealed headers.


async def test_sealed_headers_travel_with_the_key_and_are_refused_under_another(monkeypatch: pytest.MonkeyPatch) -> None:
    key = new_key()
    secret = HttpTarget("https://example.org/hook", headers={"authorization": "Bearer hunter2"})
    monkeypatch.setenv("TICKLER_KEY", key)
    async with connect("memory://", clock=ManualClock(NOW_MS)) as t:
        await t.schedules.put(Schedule(owner="u1", key="k", when="@daily", target=secret))
        data, original = await exported(t), await declared(t)
    assert b"hunter2" not in data
    async with connect("memory://", clock=ManualClock(NOW_MS)) as same:
        assert [result.error for result in await imported(same, data)] == [None]
        assert await declared(same) == original
    monkeypatch.delenv("TICKLER_KEY")
    async with connect("memory://", clock=ManualClock(NOW_MS)) as none:
        assert [result.error for result in await imported(none, data)] == [None]
    monkeypatch.setenv("TICKLER_KEY", new_key())
    async with connect("memory://", clock=ManualClock(NOW_MS)) as other:
        (refused,) = await imported(other, data)
        assert refused.error is not None
        assert "no key in TICKLER_KEY decrypts it: add the key that it was encrypted with" in refused.error
    monkeypatch.setenv("TICKLER_KEY", f"{new_key()},{key}")
    async with connect("memory://", clock=ManualClock(NOW_MS)) as rotated:
        assert [result.error for result in await imported(rotated, data)] == [None]


def test_a_result_is_a_short_line_of_json() -> None:
    assert msgspec.json.encode(LineResult(line=3, error="is not JSON")) == b'{"line":3,"error":"is not JSON"}'
