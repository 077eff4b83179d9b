"""Part of a schedule is changed and the rest kept; what is sealed of a target never goes to another host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from tickler import HttpTarget, InvalidInput, InvalidSchedule, ManualClock, Policy, PythonTarget, Schedule, new_key
from tickler.database.pacing import LONG_BYTES
from tickler.model.schedule import StoredSchedule
from tickler.model.target import REDACTED
from tickler.schedules.merge_patch import merge_patch
from tickler.schedules.schedules import Schedules
from tickler.stores.memory import MemoryStore
from tickler.webhooks.encryption import Encryption

T = TypeVar("T")

NOW_MS = 1_893_456_000_000  # 2030-01-01T00:00:00Z
URL = "https://hooks.example.org/a"
ELSEWHERE = "https://attacker.example.net/a"
HEADERS = {"authorization": "Bearer hunter2", "x-team": "blue"}
SEALER = Encryption([new_key()])
SECRET = "whsec_" + "c2VjcmV0" * 6  # the same in every process, as it is part of names of tests
SEALED_TARGET = HttpTarget(URL, headers=HEADERS, secret=SECRET)
DECLARED = Schedule(
    owner="u1",
    key="k",
    when="0 9 * * *",
    tz="Europe/Paris",
    target=URL,
    payload={"a": 1, "b": {"c": 2}},
    policy=Policy(attempts=3, spread=60),
    starts_at=NOW_MS,
)


def made(encryption: Encryption = SEALER, store: MemoryStore | None = None) -> Schedules:
    return Schedules((store or MemoryStore()).schedules, ManualClock(NOW_MS), encryption=encryption)


async def after(patch: Any, before: Schedule = DECLARED) -> StoredSchedule:
    schedules = made()
    await schedules.put(before)
    return (await schedules.patch("u1", "k", patch)).schedule


async def target_after(patch: Any, before: Any = SEALED_TARGET) -> HttpTarget:
    """As it would be sent."""
    stored = await after({"target": patch}, Schedule(owner="u1", key="k", when="@daily", target=before))
    assert isinstance(stored.target, HttpTarget)
    return SEALER.decrypt_target(stored.target, "u1")


@pytest.mark.parametrize(
    ("value", "patch", "merged"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_the_examples_of_rfc_7396(value: object, patch: object, merged: object) -> None:
    assert merge_patch(value, patch) == merged


@pytest.mark.parametrize(
    ("patch", "changed"),
    [
        ({}, {}),
        ({"when": "0 10 * * *"}, {"when": "0 10 * * *"}),
        ({"when": {"weekly": {"tue": {"time": "09:00"}, "mon": {"time": None}}}}, {"when": "weekly(tue 09:00)"}),
        ({"tz": "Asia/Tokyo"}, {"tz": "Asia/Tokyo"}),
        ({"tz": None}, {"tz": "UTC"}),
        ({"payload": {"a": None, "b": {"d": 3}}}, {"payload": {"b": {"c": 2, "d": 3}}}),
        ({"payload": [1, None]}, {"payload": [1, None]}),
        ({"payload": None}, {"payload": None}),
        ({"policy": {"attempts": 5}}, {"policy": Policy(attempts=5, spread=60)}),
        ({"policy": {"attempts": None}}, {"policy": Policy(spread=60)}),
        ({"policy": None}, {"policy": Policy()}),
        ({"starts_at": None, "ends_at": "2031-01-01T00:00:00Z"}, {"starts_at": None, "ends_at": 1_924_992_000_000}),
        ({"enabled": False}, {"enabled": False}),
        ({"target": "https://example.org/other"}, {"target": HttpTarget("https://example.org/other")}),
        ({"target": {"body": "raw"}}, {"target": HttpTarget(URL, body="raw")}),
        ({"target": {"type": "python", "handler": "h"}}, {"target": PythonTarget("h")}),
        ({"target": None}, {"target": None}),
        ({"owner": "u1", "key": "k", "enabled": None}, {}),
    ],
    ids=str,
)
async def test_what_is_named_changes_and_the_rest_stays(patch: dict[str, object], changed: dict[str, Any]) -> None:
    fields = {name: getattr(DECLARED, name) for name in Schedule.__struct_fields__}
    fields |= {"when": "0 9 * * *", **changed}
    assert (await after(patch)).declared() == Schedule(**fields)


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ({"nonsense": 1}, "nonsense"),
        ({"state": "active"}, "state"),
        ({"when": None}, "when"),
        ({"owner": "u2"}, "owner"),
        ({"key": "other"}, "key"),
        ({"target": {"handler": "h"}}, "target"),
        ({"target": {"url": None}}, "target"),
        ({"target": {"url": 7}}, "target"),
        ({"target": 7}, "target"),
        ({"policy": {"nonsense": 1}}, "policy.nonsense"),
        ([], "schedule"),
    ],
    ids=str,
)
async def test_what_does_not_fit_is_refused_by_name_and_changes_nothing(patch: Any, field: str) -> None:
    schedules = made()
    before = await schedules.put(DECLARED)
    with pytest.raises(InvalidSchedule) as refused:
        await schedules.patch("u1", "k", patch)
    assert refused.value.field == field
    assert await schedules.get("u1", "k") == before


@pytest.mark.parametrize(
    "patch",
    [
        {},
        {"owner": "u1", "key": "k"},
        {"when": "0  9 * * *"},
        {"when": "CRON_TZ=Europe/Paris 0 9 * * *"},
        {"tz": "Europe/Paris"},
        {"target": URL},
        {"target": {"url": URL, "headers": HEADERS}},
        {"target": {"headers": {"Authorization": REDACTED, "x-none": None}, "secret": SECRET}},
        {"payload": {"b": {"c": 2, "none": None}}},
        {"policy": {"attempts": 3}},
        {"starts_at": "2030-01-01T00:00:00Z", "ends_at": None},
        {"enabled": True, "delete_after": None},
    ],
    ids=str,
)
async def test_a_patch_that_changes_nothing_writes_nothing(patch: dict[str, object]) -> None:
    schedules = made()
    put = await schedules.put(replace(DECLARED, target=SEALED_TARGET))
    written = await schedules.patch("u1", "k", patch)
    assert (written.is_changed, written.schedule, written.removed) == (False, put, [])
    assert await schedules.get("u1", "k") == put
    assert (await schedules.patch("u1", "k", {**patch, "payload": 7})).is_changed


async def test_a_schedule_that_is_paused_stays_so_with_its_reason() -> None:
    schedules = made()
    await schedules.put(DECLARED)
    await schedules.pause("u1", "k", reason="on holiday")
    patched = (await schedules.patch("u1", "k", {"payload": 7})).schedule
    assert (patched.state, patched.reason, patched.payload) == ("paused", "on holiday", 7)


async def test_a_long_payload_is_merged_between_two_looks_at_the_store_and_nothing_that_came_meanwhile_is_lost() -> None:
    schedules = made()
    await schedules.put(replace(DECLARED, payload={"long": "x" * LONG_BYTES}))
    merges = 0

    async def aside(work: Callable[[], T], /) -> T:
        nonlocal merges
        merges += 1
        if merges < 3:
            await schedules.put(replace(DECLARED, payload={"long": "x" * LONG_BYTES, "meanwhile": merges}))
        return work()

    written = await schedules.patch("u1", "k", {"payload": {"long": "y" * LONG_BYTES, "a": 1}}, aside=aside)
    assert written.schedule.payload == {"long": "y" * LONG_BYTES, "meanwhile": 2, "a": 1}
    assert (written.schedule.version, merges) == (4, 3)


async def test_a_patch_may_be_longer_than_a_payload_if_what_comes_of_it_is_not() -> None:
    names = {f"name {number}": 7 for number in range(15_000)}
    emptied = await after({"payload": dict.fromkeys(names)}, replace(DECLARED, payload=names))
    assert emptied.payload == {}
    with pytest.raises(InvalidSchedule, match="bytes as JSON, more than 262144: store"):
        await after({"payload": {"more": "x" * 10_000}}, replace(DECLARED, payload={"much": "x" * 255_000}))


@pytest.mark.parametrize("payload", [{"a": float("nan")}, {"a": {1: 2}}, {"a": b"bytes"}, float("inf")], ids=str)
async def test_a_patch_that_is_not_json_is_refused(payload: object) -> None:
    with pytest.raises(InvalidSchedule, match="payload: is not plain JSON"):
        await after({"payload": payload})


# What is sealed.


async def test_a_patch_that_does_not_touch_the_target_keeps_what_is_sealed() -> None:
    schedules = made()
    put = await schedules.put(Schedule(owner="u1", key="k", when="@daily", target=SEALED_TARGET))
    patched = await schedules.patch("u1", "k", {"payload": 1, "when": "@hourly"})
    assert patched.schedule.target == put.target
    assert patched.removed == []


@pytest.mark.parametrize(
    ("patch", "headers", "secret"),
    [
        ({"url": f"{URL}/b"}, HEADERS, SECRET),
        (f"{URL}/b", HEADERS, SECRET),
        ({"body": "raw"}, HEADERS, SECRET),
        ({"headers": {"X-New": "1"}}, {**HEADERS, "x-new": "1"}, SECRET),
        ({"headers": {"Authorization": "Bearer new"}}, {**HEADERS, "authorization": "Bearer new"}, SECRET),
        ({"headers": {"Authorization": None}}, {"x-team": "blue"}, SECRET),
        ({"headers": {"authorization": REDACTED, "x-team": "red"}}, {**HEADERS, "x-team": "red"}, SECRET),
        ({"headers": dict.fromkeys(HEADERS, REDACTED), "secret": REDACTED}, HEADERS, SECRET),
        ({"headers": None}, None, SECRET),
        ({"secret": None}, HEADERS, None),
        ({"headers": None, "secret": None}, None, None),
    ],
    ids=str,
)
async def test_on_the_same_host_what_is_not_named_is_kept(patch: object, headers: object, secret: object) -> None:
    target = await target_after(patch)
    assert (target.headers, target.secret) == (headers, secret)


@pytest.mark.parametrize(
    "url",
    [ELSEWHERE, "http://hooks.example.org/a", "https://hooks.example.org:8443/a", "https://hooks.example.org.evil.example/a"],
)
@pytest.mark.parametrize(
    "named", [{}, {"headers": {"x-new": "1"}}, {"secret": None}, {"headers": dict.fromkeys(HEADERS, REDACTED)}]
)
async def test_nothing_that_is_sealed_goes_to_another_host_unnamed(url: str, named: dict[str, object]) -> None:
    """Whoever may write a schedule could read its headers there, which are never shown."""
    with pytest.raises(InvalidSchedule, match=r"stored only for https://hooks\.example\.org:443: send them again") as refused:
        await target_after({"url": url, **named})
    assert refused.value.field == "target.url"


async def test_a_text_in_place_of_the_target_moves_it_no_less() -> None:
    with pytest.raises(InvalidSchedule, match="send them again"):
        await target_after(ELSEWHERE)


async def test_what_was_read_cannot_be_sent_elsewhere_with_its_sealed_text() -> None:
    schedules = made()
    put = await schedules.put(Schedule(owner="u1", key="k", when="@daily", target=SEALED_TARGET))
    assert isinstance(put.target, HttpTarget)
    read = {"url": ELSEWHERE, "headers": dict(put.target.headers or {}), "secret": REDACTED, "sealed": put.target.sealed}
    for patch in (read, {**read, "headers": None}, {**read, "secret": None}):
        with pytest.raises(InvalidSchedule):
            await schedules.patch("u1", "k", {"target": patch})


@pytest.mark.parametrize(
    ("named", "headers", "secret"),
    [
        (
            {"headers": {"x-new": "1", "Authorization": "new", "x-team": None}, "secret": None},
            {"x-new": "1", "authorization": "new"},
            None,
        ),
        ({"headers": None, "secret": SECRET}, None, SECRET),
        ({"headers": dict.fromkeys(HEADERS), "secret": None}, None, None),
    ],
)
async def test_a_target_moves_with_what_is_named_and_nothing_else(
    named: dict[str, object], headers: object, secret: object
) -> None:
    target = await target_after({"url": ELSEWHERE, **named})
    assert (target.url, target.headers or None, target.secret) == (ELSEWHERE, headers, secret)


async def test_a_service_without_the_key_neither_moves_nor_mixes_what_is_sealed() -> None:
    store = MemoryStore()
    await made(SEALER, store).put(Schedule(owner="u1", key="k", when="@daily", target=SEALED_TARGET))
    keyless = made(Encryption(), store)
    for patch in ({"url": ELSEWHERE}, {"headers": {"x-new": "1"}}):
        with pytest.raises(InvalidInput):
            await keyless.patch("u1", "k", {"target": patch})
    same = await keyless.patch("u1", "k", {"target": {"url": f"{URL}/b"}})
    assert isinstance(same.schedule.target, HttpTarget)
    assert SEALER.decrypt_target(same.schedule.target, "u1").headers == HEADERS
    without = await keyless.patch("u1", "k", {"target": {"headers": None, "secret": None}})
    assert without.schedule.target == HttpTarget(f"{URL}/b")


# What was removed.


@pytest.mark.parametrize(
    ("put", "removed"),
    [
        ({"when": "0 9 * * *"}, ["tz", "target", "payload", "policy", "starts_at"]),
        ({"when": "0 9 * * *", "tz": "Asia/Tokyo", "target": URL, "payload": {}, "policy": Policy(spread=60)},
         ["policy.attempts", "starts_at"]),
        ({"when": "0 9 * * *", "tz": "Asia/Tokyo", "target": PythonTarget("h"), "payload": 1, "starts_at": NOW_MS,
          "policy": Policy(attempts=1, spread=1), "enabled": False}, []),
        ({"when": "@every 1h", "target": URL, "payload": 1, "policy": Policy(attempts=3, spread=60), "starts_at": NOW_MS}, []),
    ],
)  # fmt: skip
async def test_a_put_says_what_it_removed(put: dict[str, Any], removed: list[str]) -> None:
    schedules = made()
    assert (await schedules.write(DECLARED)).removed == []
    assert (await schedules.write(Schedule(owner="u1", key="k", **put))).removed == removed


async def test_a_put_over_a_paused_schedule_says_that_it_resumed_it() -> None:
    schedules = made()
    await schedules.put(DECLARED)
    await schedules.pause("u1", "k")
    assert (await schedules.write(replace(DECLARED, enabled=False))).removed == []
    resumed = await schedules.write(DECLARED)
    assert (resumed.schedule.state, resumed.removed) == ("active", ["paused"])
    assert (await schedules.write(DECLARED)).removed == []


async def test_what_is_added_removes_nothing() -> None:
    schedules = made()
    await schedules.put(Schedule(owner="u1", key="k", when="@daily"))
    assert (await schedules.write(DECLARED)).removed == []


async def test_headers_and_a_secret_that_went_are_named() -> None:
    schedules = made()
    await schedules.put(Schedule(owner="u1", key="k", when="@daily", target=SEALED_TARGET))
    fewer = Schedule(owner="u1", key="k", when="@daily", target=HttpTarget(URL, headers={"x-team": "blue"}))
    assert (await schedules.write(fewer)).removed == ["target.headers.authorization", "target.secret"]


@pytest.mark.parametrize(
    ("patch", "field"), [({"nope": None}, "nope"), ({"last": None}, "last"), ({"policy": {"attempt": None}}, "policy.attempt")]
)
async def test_a_name_that_is_none_is_refused_even_where_it_would_be_removed(patch: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidSchedule, match="unknown field") as refused:
        await after(patch)
    assert refused.value.field == field


async def test_a_patch_that_is_nested_too_deep_is_refused() -> None:
    deep: Any = {}
    for _ in range(5_000):
        deep = {"a": deep}
    with pytest.raises(InvalidSchedule, match="nested too deep"):
        await after({"payload": deep})


async def test_an_expression_that_names_its_zone_takes_the_place_of_the_stored_one() -> None:
    assert (await after({"when": "CRON_TZ=Asia/Tokyo 0 9 * * *"})).tz == "Asia/Tokyo"


@pytest.mark.parametrize("headers", [{}, {"x-new": "1"}, {"authorization": "Bearer new"}])
async def test_a_move_that_does_not_name_every_header_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(InvalidSchedule, match=r"target\.headers\.x-team"):
        await target_after({"url": ELSEWHERE, "secret": None, "headers": headers})
