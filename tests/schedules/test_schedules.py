"""The collection of schedules as callers use it: what it takes, what it refuses, and that what it refuses leaves no trace."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from tickler.client import Tickler
from tickler.clock import ManualClock
from tickler.connect import connect
from tickler.errors import InvalidInput, InvalidSchedule, NeverFires, ScheduleNotFound, TicklerError, VersionConflict
from tickler.model.revision import Revision
from tickler.model.schedule import Schedule
from tickler.schedules.schedules import MAX_LISTED
from tickler.when import At, Cron, Every

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
HOUR_MS = 3_600_000
HOURLY = Cron("0 * * * *")

Calls = list[Callable[[], Awaitable[object]]]


def schedule(key: str = "digest", **fields: object) -> Schedule:
    given: dict[str, object] = {"owner": "u1", "key": key, "when": HOURLY, **fields}
    return Schedule(**given)  # type: ignore[arg-type]  # any field of a schedule


def cursor(value: object) -> str:
    """As `list` makes them, of any JSON."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


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


async def is_empty(t: Tickler) -> bool:
    return (await t.schedules.list()).items == [] and await t.index.count() == 0


# Writes.


@pytest.mark.parametrize(
    "given", [None, {"owner": "u1", "key": "digest", "when": "@daily"}, "u1/digest", Schedule, [schedule()]], ids=str
)
async def test_what_is_no_schedule_is_refused_and_nothing_written(in_memory: Tickler, given: Schedule) -> None:
    with pytest.raises(InvalidSchedule, match=r"^schedule: is a .*: pass a Schedule"):
        await in_memory.schedules.put(given)
    with pytest.raises(InvalidSchedule, match=r"^schedule: is a "):
        await in_memory.schedules.update(given, version=0)
    with pytest.raises(InvalidSchedule, match=r"^schedule 1: schedule: is a ") as refused:
        await in_memory.schedules.put_many([schedule("before"), given])
    assert refused.value.position == 1
    with pytest.raises(InvalidSchedule, match=r"^schedule 0: schedule: is a "):
        await in_memory.schedules.declare("u1", [given, schedule("after")])
    assert await is_empty(in_memory)


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (schedule(payload={1, 2}), InvalidSchedule),
        (schedule(payload=float("inf")), InvalidSchedule),
        (schedule(when=At("2020-01-01T00:00:00Z")), NeverFires),
        (schedule(ends_at=NOW_MS + 1), NeverFires),
    ],
    ids=["payload", "infinite", "past", "ended"],
)
async def test_what_cannot_be_kept_or_never_fires_leaves_no_trace(t: Tickler, bad: Schedule, error: type[InvalidInput]) -> None:
    with pytest.raises(error):
        await t.schedules.put(bad)
    with pytest.raises(error):
        await t.schedules.update(bad, version=0)
    with pytest.raises(error, match=r"^schedule 2: ") as refused:
        await t.schedules.put_many([schedule("a"), schedule("b"), bad, schedule("c")])
    assert getattr(refused.value, "position", None) == 2
    assert await is_empty(t)


async def test_the_same_schedule_twice_is_refused_and_both_places_named(t: Tickler) -> None:
    twice = [schedule("a"), schedule("b"), schedule("a", payload=1)]
    calls: Calls = [lambda: t.schedules.put_many(twice), lambda: t.schedules.declare("u1", twice)]
    for call in calls:
        with pytest.raises(InvalidSchedule, match=r"^schedule 2: key: u1/a is also schedule 0") as refused:
            await call()
        assert refused.value.position == 2
    assert await is_empty(t)


async def test_schedules_may_come_from_an_iterator_and_may_be_none(t: Tickler) -> None:
    assert await t.schedules.put_many(schedule(f"k{n}") for n in range(3)) == 3
    assert await t.schedules.put_many(iter(())) == 0
    assert (await t.schedules.declare("u2", (schedule("a", owner="u2") for _ in range(1)))).added == ["a"]


@pytest.mark.parametrize("name", ["", None, 5, "a\x00b", "\ud800", "x" * 513], ids=lambda name: repr(name)[:20])
async def test_every_call_checks_the_names_it_is_given(in_memory: Tickler, name: str) -> None:
    schedules = in_memory.schedules
    calls: list[Callable[[str, str], Awaitable[object]]] = [schedules.get, schedules.pause, schedules.resume, schedules.delete]
    for call in calls:
        with pytest.raises(InvalidSchedule, match=r"^owner: "):
            await call(name, "digest")
        with pytest.raises(InvalidSchedule, match=r"^key: "):
            await call("u1", name)
    of_owner: Calls = [
        lambda: schedules.pause_all(name),
        lambda: schedules.delete_all(name),
        lambda: schedules.declare(name, []),
    ]
    for ask in of_owner:
        with pytest.raises(InvalidSchedule, match=r"^owner: "):
            await ask()
    if name is not None:
        with pytest.raises(InvalidSchedule, match=r"^owner: "):
            await schedules.list(owner=name)


async def test_declaring_for_another_owner_is_refused_by_its_place(t: Tickler) -> None:
    await t.schedules.put(schedule("kept"))
    with pytest.raises(InvalidSchedule, match=r"^schedule 1: owner: 'u2' is not 'u1'") as refused:
        await t.schedules.declare("u1", [schedule("a"), schedule("b", owner="u2")])
    assert refused.value.position == 1
    assert [each.key for each in (await t.schedules.list()).items] == ["kept"]


async def test_a_declaration_with_one_bad_schedule_changes_nothing(t: Tickler) -> None:
    before = await t.schedules.put(schedule("kept"))
    with pytest.raises(InvalidSchedule, match=r"^schedule 1: payload: "):
        await t.schedules.declare("u1", [schedule("new"), schedule("bad", payload=object())])
    assert (await t.schedules.list()).items == [before]
    assert await t.index.count() == 1


async def test_pausing_resuming_and_getting_what_is_not_there(t: Tickler) -> None:
    calls: Calls = [lambda: t.schedules.pause("u1", "nothing"), lambda: t.schedules.resume("u1", "nothing")]
    for call in calls:
        with pytest.raises(ScheduleNotFound, match=r"no schedule u1/nothing: it may have been deleted") as missing:
            await call()
        assert (missing.value.owner, missing.value.key) == ("u1", "nothing")
    assert await t.schedules.get("u1", "nothing") is None
    assert await t.schedules.delete("u1", "nothing") is False
    assert await t.schedules.pause_all("u1") == await t.schedules.delete_all("u1") == 0


async def test_a_conflict_says_what_was_expected_and_what_is_there_and_changes_nothing(t: Tickler) -> None:
    with pytest.raises(VersionConflict, match="u1/digest does not exist, and version 1 was expected: create it again"):
        await t.schedules.update(schedule(), version=1)
    before = await t.schedules.put(schedule())
    with pytest.raises(VersionConflict, match="u1/digest already exists at version 1") as conflict:
        await t.schedules.update(schedule(payload=1), version=0)
    assert (conflict.value.name, conflict.value.expected, conflict.value.found) == ("u1/digest", 0, 1)
    assert await t.schedules.get("u1", "digest") == before


async def test_what_was_deleted_and_made_anew_is_not_what_was_read(t: Tickler, clock: ManualClock) -> None:
    before = await t.schedules.put(schedule())
    await t.schedules.delete("u1", "digest")
    clock.advance(timedelta(seconds=1))
    anew = await t.schedules.put(schedule(payload="another's"))
    calls: Calls = [
        lambda: t.schedules.update(schedule(), version=before.revision),
        lambda: t.schedules.pause("u1", "digest", version=before.revision),
        lambda: t.schedules.resume("u1", "digest", version=before.revision),
        lambda: t.schedules.delete("u1", "digest", version=before.revision),
    ]
    for call in calls:
        with pytest.raises(VersionConflict, match="u1/digest was deleted and created again"):
            await call()
    assert await t.schedules.get("u1", "digest") == anew
    assert (await t.schedules.pause("u1", "digest", version=anew.revision)).version == 2
    assert (await t.schedules.resume("u1", "digest", version=[anew.revision, Revision(2)])).version == 3
    assert await t.schedules.delete("u1", "digest", version=Revision())
    with pytest.raises(VersionConflict, match="does not exist yet"):
        await t.schedules.update(schedule(), version=Revision())


@pytest.mark.parametrize("version", [-1, True, 1.0, "1", [], [1], 1 << 63])
async def test_what_is_no_version_is_refused(in_memory: Tickler, version: Any) -> None:
    calls: Calls = [
        lambda: in_memory.schedules.update(schedule(), version=version),
        lambda: in_memory.schedules.pause("u1", "digest", version=version),
        lambda: in_memory.schedules.delete("u1", "digest", version=version),
    ]
    for call in calls:
        with pytest.raises(InvalidInput, match="is not a version"):
            await call()


async def test_writing_says_whether_it_was_new(t: Tickler) -> None:
    assert [(await t.schedules.write(schedule(payload=n))).is_new for n in (1, 1, 2)] == [True, False, False]


async def test_writes_happen_at_the_clocks_time(t: Tickler, clock: ManualClock) -> None:
    first = await t.schedules.put(schedule(when=Every(minutes=10)))
    assert (first.created_at, first.updated_at, first.next_fire_at) == (NOW_MS, NOW_MS, NOW_MS + 600_000)
    clock.advance(timedelta(hours=1))
    second = await t.schedules.pause("u1", "digest")
    assert (second.created_at, second.updated_at) == (NOW_MS, NOW_MS + HOUR_MS)
    clock.advance(timedelta(minutes=5))
    third = await t.schedules.resume("u1", "digest")
    assert third.next_fire_at == NOW_MS + HOUR_MS + 600_000, "on the interval's own beat, after now"
    assert await t.schedules.get("u1", "digest") == third


async def test_putting_back_what_was_got_changes_nothing(t: Tickler, clock: ManualClock) -> None:
    put = await t.schedules.put(schedule(payload={"a": 1}))
    clock.advance(60)
    got = await t.schedules.get("u1", "digest")
    assert got is not None
    assert await t.schedules.put(got) == put
    assert await t.schedules.put_many([got]) == 0
    changed = await t.schedules.put(replace(got, payload={"a": 2}))
    assert (changed.version, changed.payload, changed.next_fire_at) == (2, {"a": 2}, put.next_fire_at)


async def test_a_payload_that_differs_only_in_the_kind_of_a_value_is_kept(t: Tickler) -> None:
    await t.schedules.put(schedule(payload={"on": 1}))
    await t.schedules.put(schedule(payload={"on": True}))
    got = await t.schedules.get("u1", "digest")
    assert got is not None
    assert isinstance(got.payload, dict)
    assert got.payload["on"] is True


@pytest.mark.parametrize("using", [object(), "connection", 5], ids=["object", "text", "number"])
async def test_a_connection_that_is_none_is_refused_and_nothing_written(t: Tickler, using: object) -> None:
    schedules = t.schedules
    calls: Calls = [
        lambda: schedules.put(schedule(), using=using),
        lambda: schedules.put_many([schedule()], using=using),
        lambda: schedules.update(schedule(), version=0, using=using),
        lambda: schedules.declare("u1", [schedule()], using=using),
        lambda: schedules.delete("u1", "digest", using=using),
        lambda: schedules.pause_all("u1", using=using),
    ]
    for call in calls:
        with pytest.raises(InvalidInput, match=r"^using= "):
            await call()
    assert await is_empty(t)


# Lists.


@pytest.mark.parametrize("limit", [0, -1, True, False, 1.0, "10", None, MAX_LISTED + 1, 2**64], ids=repr)
async def test_a_limit_that_is_no_page_size_is_refused(in_memory: Tickler, limit: int) -> None:
    with pytest.raises(InvalidInput, match=f"^limit: .* whole number from 1 to {MAX_LISTED}"):
        await in_memory.schedules.list(limit=limit)


@pytest.mark.parametrize("state", ["", "Active", "deleted", 5, True, ["active"]], ids=repr)
async def test_a_state_that_is_none_is_refused_and_the_states_named(in_memory: Tickler, state: object) -> None:
    with pytest.raises(InvalidInput, match=r"^state: .* is not one of active, paused, finished, unreadable, unindexed"):
        await in_memory.schedules.list(state=state)  # type: ignore[arg-type]  # wrong types are the point


@pytest.mark.parametrize(
    "after",
    [
        "",
        "x",
        "u1/digest",
        "é",
        "====",
        "WyJ1MSIsImRpZ2VzdCJd\n",
        cursor("u1"),
        cursor([]),
        cursor(["u1"]),
        cursor(["u1", "a", "b"]),
        cursor(["u1", 5]),
        cursor([None, None]),
        cursor([["u1"], "a"]),
        cursor({"owner": "u1", "key": "a"}),
        cursor(["u1", "a"])[:-3],
        cursor(["u1", ""]),
        cursor(["", "a"]),
        cursor(["u1", "a\x00b"]),
        cursor(["u1", "\ud800"]),
        cursor(["u1", "x" * 600]),
        base64.urlsafe_b64encode(b'["u1", "\xff"]').decode(),
        b"WyJ1MSIsImEiXQ",
        5,
        True,
        ("u1", "a"),
        datetime(2030, 1, 1),
    ],
    ids=lambda after: repr(after)[:40],
)
async def test_a_cursor_that_list_did_not_make_is_refused_as_such(in_memory: Tickler, after: object) -> None:
    with pytest.raises(InvalidInput, match=r"^after: .* is not a cursor: pass the `next` of an earlier page"):
        await in_memory.schedules.list(after=after)  # type: ignore[arg-type]  # wrong types are the point


async def test_a_cursor_goes_on_after_its_place_whether_that_is_still_there_or_not(t: Tickler) -> None:
    await t.schedules.put_many([schedule(key) for key in ("a", "b", "c", "d")])
    page = await t.schedules.list(limit=2)
    assert page.next is not None
    await t.schedules.delete("u1", "b")
    rest = await t.schedules.list(limit=2, after=page.next)
    assert [each.key for each in rest.items] == ["c", "d"]
    assert rest.next is None


async def test_a_cursor_is_plain_text_for_any_names(t: Tickler) -> None:
    names = ["a/b?c=d&e", "ä🐌", "日" * (t.capabilities.longest_name_bytes // 3), '"\\']
    await t.schedules.put_many([schedule(name, owner=name) for name in names])
    found, after = [], None
    while True:
        page = await t.schedules.list(limit=1, after=after)
        found += [each.key for each in page.items]
        after = page.next
        if after is None:
            break
        assert after.isascii()
        assert not set(after) & set("+/=&?# ")
    assert found == sorted(names)


async def test_the_last_page_says_so_also_when_it_is_full(t: Tickler) -> None:
    await t.schedules.put_many([schedule(key) for key in ("a", "b", "c", "d")])
    assert (await t.schedules.list(limit=4)).next is None
    assert (await t.schedules.list(limit=MAX_LISTED)).next is None
    assert (await t.schedules.list(owner="nobody")).items == []


async def test_every_refusal_is_one_of_the_projects_errors_and_a_value_error(in_memory: Tickler) -> None:
    schedules = in_memory.schedules
    calls: Calls = [lambda: schedules.list(limit=0), lambda: schedules.get("", ""), lambda: schedules.list(after="x")]
    for call in calls:
        with pytest.raises(TicklerError) as refused:
            await call()
        assert isinstance(refused.value, ValueError)
