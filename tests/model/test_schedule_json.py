"""Schedules as JSON: there and back, what is refused, and what a payload may be."""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tickler.clock import ManualClock
from tickler.connect import connect
from tickler.errors import InvalidInput, InvalidSchedule, InvalidWhen, UnknownTimezone
from tickler.model import schedule_json
from tickler.model.policy import Policy
from tickler.model.schedule import Schedule, State, StoredSchedule
from tickler.model.schedule_json import (
    MAX_PAYLOAD_BYTES,
    encode_body,
    read_schedule_json,
    schedule_from_json,
    schedule_to_json,
    stored_schedule,
)
from tickler.model.target import HttpTarget, PythonTarget
from tickler.when import At, Cron, Every, Unreadable, Weekly, When

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
NOW = datetime(2030, 11, 20, 12, tzinfo=UTC)
SOAK = os.environ.get("TICKLER_SOAK") == "1"
REQUIRED: dict[str, object] = {"owner": "u1", "key": "digest", "when": "0 9 * * tue"}

examples = settings(max_examples=3_000 if SOAK else 100, derandomize=not SOAK, deadline=None, database=None)

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)
zones = st.sampled_from(["UTC", "Europe/Paris", "America/New_York", "Asia/Kolkata", "Pacific/Apia"])
clocks = st.times().map(lambda time: f"{time:%H:%M:%S}")
whens: st.SearchStrategy[When] = st.one_of(
    st.builds(Cron, st.sampled_from(["0 9 * * tue", "*/5 * * * *", "30 0 0 L * *", "0 0 * * mon#2", "@yearly"]), tz=zones),
    st.builds(Weekly, st.dictionaries(st.sampled_from(["mon", "tue", "sun"]), st.lists(clocks, max_size=3)), tz=zones),
    st.builds(At, st.datetimes(datetime(1975, 1, 1), datetime(5000, 1, 1)), tz=zones),
    st.builds(Every, seconds=st.integers(1_000, 10**9).map(lambda ms: ms / 1000), start=st.none() | st.just(NOW_MS + 7)),
)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text
payloads = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4), max_leaves=12
)
targets = st.none() | st.builds(PythonTarget, st.just("digest")) | st.just(HttpTarget("https://bücher.example/?x=1"))
policies = st.builds(
    Policy,
    missed=st.sampled_from(["latest", "skip", "all"]),
    overlap=st.sampled_from(["allow", "skip", "wait"]),
    spread=st.sampled_from([0, 0.25, timedelta(milliseconds=999)]),
    grace=st.timedeltas(timedelta(0), timedelta(days=366)),
    attempts=st.integers(1, 1_000),
    backoff=st.lists(st.timedeltas(timedelta(0), timedelta(days=366)), min_size=1, max_size=3),
)
instants = st.integers(100_000_000_000, 99_999_999_999_999)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    starts_at, ends_at = sorted((draw(instants), draw(instants)))
    return Schedule(
        owner=draw(names),
        key=draw(names),
        when=draw(whens),
        target=draw(targets),
        payload=draw(payloads),
        policy=draw(policies | st.just(Policy())),
        starts_at=draw(st.sampled_from([None, starts_at])),
        ends_at=draw(st.sampled_from([None, ends_at])),
        delete_after=draw(st.none() | st.booleans()),
        enabled=draw(st.booleans()),
    )


def schedule(**fields: object) -> Schedule:
    given: dict[str, object] = {**REQUIRED, **fields}
    return Schedule(**given)  # type: ignore[arg-type]  # any field of a schedule


def kept(
    declared: Schedule, next_fire_at: int | None = NOW_MS, aside: State | None = None, reason: str | None = None
) -> StoredSchedule:
    """The schedule as a store keeps it, read back."""
    return stored_schedule(
        owner=declared.owner,
        key=declared.key,
        when_text=str(declared.when),
        tz=declared.tz,
        enabled=declared.enabled,
        version=3,
        created_at=NOW_MS - 1,
        updated_at=NOW_MS,
        body=encode_body(declared),
        next_fire_at=next_fire_at,
        aside=aside,
        reason=reason,
    )


def read_back(body: str | bytes, **columns: Any) -> StoredSchedule:
    """A schedule with that body, as a store reads it."""
    given: dict[str, Any] = {
        "owner": "u1",
        "key": "digest",
        "when_text": "0 9 * * tue",
        "tz": "UTC",
        "enabled": True,
        "version": 1,
    }
    times = {"created_at": NOW_MS, "updated_at": NOW_MS, "next_fire_at": None, "aside": None, "reason": None}
    return stored_schedule(**{**given, **times, **columns}, body=body)


def nested(depth: int) -> object:
    payload: object = 0
    for _ in range(depth):
        payload = [payload]
    return payload


def at_depth(frames: int, function: Callable[[], object]) -> object:
    """What `function` returns when it is called from that much further down the stack."""
    return function() if frames == 0 else at_depth(frames - 1, function)


# There and back.


@examples
@given(schedules())
def test_a_schedule_survives_json(declared: Schedule) -> None:
    assert schedule_from_json(schedule_to_json(declared)) == declared


@examples
@given(schedules())
def test_a_schedule_survives_json_as_bytes(declared: Schedule) -> None:
    fields = schedule_to_json(declared)
    assert schedule_from_json(msgspec.json.decode(msgspec.json.encode(fields))) == declared
    assert schedule_from_json(json.loads(json.dumps(fields, allow_nan=False))) == declared


@examples
@given(schedules())
def test_a_schedule_survives_being_kept_by_a_store(declared: Schedule) -> None:
    stored = kept(declared)
    assert stored.declared() == declared
    assert (stored.version, stored.created_at, stored.updated_at) == (3, NOW_MS - 1, NOW_MS)


def test_json_is_that_of_the_design() -> None:
    fields: dict[str, object] = {
        "owner": "u1",
        "key": "digest",
        "when": "0 9 * * tue",
        "tz": "Europe/Paris",
        "target": {"type": "http", "url": "https://example.org/"},
        "payload": {"a": [1, None]},
        "policy": {"missed": "skip", "grace": 5},
        "starts_at": NOW_MS,
        "ends_at": NOW_MS + 7,
        "enabled": True,
    }
    declared = Schedule(
        owner="u1",
        key="digest",
        when=Cron("0 9 * * tue", tz="Europe/Paris"),
        target="https://example.org/",
        payload={"a": [1, None]},
        policy=Policy(missed="skip", grace=5),
        starts_at=NOW_MS,
        ends_at=NOW_MS + 7,
    )
    assert schedule_to_json(declared) == fields
    assert schedule_from_json(fields) == declared


def test_defaults_are_left_out() -> None:
    assert schedule_to_json(schedule()) == {**REQUIRED, "tz": "UTC", "enabled": True}
    assert encode_body(schedule()) == b"{}"
    once = schedule(when=At("2031-01-01T00:00:00Z"))
    assert "delete_after" not in schedule_to_json(once)
    assert schedule_to_json(schedule(when=At("2031-01-01T00:00:00Z"), delete_after=False))["delete_after"] is False


def test_json_of_a_stored_schedule_is_what_was_declared() -> None:
    declared = schedule(payload=[1], enabled=False)
    assert schedule_to_json(kept(declared, None)) == schedule_to_json(declared)


def test_json_is_not_the_callers_payload_itself() -> None:
    payload = {"a": [1]}
    fields = schedule_to_json(schedule(payload=payload))
    payload["a"].append(2)
    assert fields["payload"] == {"a": [1]}


@pytest.mark.parametrize("bound", ["starts_at", "ends_at"])
@pytest.mark.parametrize(
    "moment", [datetime(1970, 1, 1, tzinfo=UTC), datetime(1960, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]
)
def test_a_bound_that_is_taken_survives_json_and_being_kept(bound: str, moment: datetime) -> None:
    """People write datetime.max for "never ends", and the epoch for "has always been"."""
    try:
        declared = schedule(**{bound: moment})
    except InvalidSchedule:
        return
    assert schedule_from_json(schedule_to_json(declared)) == declared
    assert kept(declared).declared() == declared


async def test_a_bound_that_is_taken_does_not_make_a_schedule_that_nobody_can_list_or_delete() -> None:
    async with connect("sqlite://", clock=ManualClock(NOW_MS)) as t:
        try:
            await t.schedules.put_many([schedule(starts_at=datetime(1970, 1, 1, tzinfo=UTC)), schedule(key="other")])
        except InvalidInput:
            return
        assert len((await t.schedules.list()).items) == 2
        assert await t.schedules.delete("u1", "digest")


# What is read, and what is refused.


@pytest.mark.parametrize("name", ["cron", "timezone", "version", "state", "next_fire_at", "reason", "Owner", "", "payload "])
def test_a_field_nobody_reads_is_refused_by_name(name: str) -> None:
    with pytest.raises(InvalidSchedule, match="unknown field: use owner, key, when, tz, target, payload") as refused:
        schedule_from_json({**REQUIRED, name: None})
    assert refused.value.field == name


def test_a_field_whose_name_is_no_text_is_refused_too() -> None:
    fields: dict[object, object] = {1: 2, "x": 3}
    with pytest.raises(InvalidSchedule, match="unknown field: use "):
        schedule_from_json(fields | dict(REQUIRED))


@pytest.mark.parametrize("name", REQUIRED)
def test_a_missing_field_is_named_and_null_is_missing(name: str) -> None:
    for fields in ({k: v for k, v in REQUIRED.items() if k != name}, {**REQUIRED, name: None}):
        with pytest.raises(InvalidSchedule, match=f"^{name}: is missing") as refused:
            schedule_from_json(fields)
        assert refused.value.field == name


@pytest.mark.parametrize("value", [None, [], "0 9 * * tue", 5, True, [("owner", "u1")]], ids=str)
def test_what_is_no_object_is_refused(value: object) -> None:
    with pytest.raises(InvalidSchedule, match=r"^schedule: is a "):
        schedule_from_json(value)


@pytest.mark.parametrize("name", ["tz", "target", "payload", "policy", "starts_at", "ends_at"])
def test_null_is_the_same_as_left_out(name: str) -> None:
    assert schedule_from_json({**REQUIRED, name: None}) == schedule_from_json(REQUIRED) == schedule()


@pytest.mark.parametrize("name", ["delete_after", "enabled"])
def test_null_is_neither_true_nor_false(name: str) -> None:
    with pytest.raises(InvalidSchedule, match=f"^{name}: is null"):
        schedule_from_json({**REQUIRED, name: None})


@pytest.mark.parametrize(
    ("when", "read"),
    [
        ("0 9 * * tue", Cron("0 9 * * tue", tz="Europe/Paris")),
        ("at(2031-03-15T00:00:00)", At("2031-03-15T00:00:00", tz="Europe/Paris")),
        ("@every 1h", Every(hours=1)),
        ("rate(5 minutes)", Every(minutes=5)),
        ("weekly(tue 09:00)", Weekly({"tue": "09:00"}, tz="Europe/Paris")),
        ({"weekly": {"tue": {"time": "09:00"}, "mon": {"time": None}}}, Weekly({"tue": "09:00"}, tz="Europe/Paris")),
        ({"weekly": {"tue": {"time": ["09:00", "17:30"]}}}, Weekly({"tue": ["09:00", "17:30"]}, tz="Europe/Paris")),
        ({"weekly": {"tue": "09:00", "mon": None}}, Weekly({"tue": "09:00"}, tz="Europe/Paris")),
        ({"weekly": {}}, Weekly({}, tz="Europe/Paris")),
    ],
    ids=str,
)
def test_when_is_text_or_a_weekly_plan(when: object, read: When) -> None:
    assert schedule_from_json({**REQUIRED, "when": when, "tz": "Europe/Paris"}).when == read


NO_BOUNDS: list[object] = ["", "soon", "2030-11-20", "2030-11-20T12:00:00", NOW_MS // 1000, 1.5, True, [], {"at": NOW_MS}]


@pytest.mark.parametrize(
    ("fields", "error", "said"),
    [
        ({"owner": ""}, InvalidSchedule, "^owner: is empty"),
        ({"owner": 5}, InvalidSchedule, "^owner: is a int"),
        ({"key": ["digest"]}, InvalidSchedule, "^key: is a list"),
        ({"when": "61 * * * *"}, InvalidWhen, "minute"),
        ({"when": 300}, InvalidWhen, "when '300'"),
        ({"when": True}, InvalidWhen, "when 'True'"),
        ({"when": ["0 9 * * tue"]}, InvalidWhen, "give text such as"),
        ({"when": {}}, InvalidWhen, "give text such as"),
        ({"when": {"cron": "0 9 * * tue"}}, InvalidWhen, "give text such as"),
        ({"when": {"weekly": {}, "tz": "UTC"}}, InvalidWhen, "give text such as"),
        ({"when": {"weekly": None}}, InvalidWhen, "^plan .* is not a weekly plan: "),
        ({"when": {"weekly": ["tue"]}}, InvalidWhen, "^plan .* is not a weekly plan: "),
        ({"when": {"weekly": {"someday": {"time": "09:00"}}}}, InvalidWhen, "^in .*, 'someday' is not a weekday"),
        ({"when": {"weekly": {"mon": {"enabled": True}}}}, InvalidWhen, r"^in .*, mon\.enabled is an unknown field"),
        ({"when": {"weekly": {"mon": {}}}}, InvalidWhen, "^in .*, mon has no 'time'"),
        ({"when": {"weekly": {"mon": {"time": "9 am"}}}}, InvalidWhen, "is not a time of day"),
        ({"when": {"weekly": {"mon": {"time": 900}}}}, InvalidWhen, "is not a time of day"),
        ({"tz": "Europe/Pariss"}, UnknownTimezone, "did you mean 'Europe/Paris'"),
        ({"tz": ""}, InvalidInput, "^unknown time zone "),
        ({"tz": 5}, InvalidInput, "^unknown time zone "),
        ({"tz": True}, InvalidInput, "^unknown time zone "),
        ({"tz": []}, InvalidInput, "^unknown time zone "),
        ({"tz": {}}, InvalidInput, "^unknown time zone "),
        ({"tz": [], "when": {"weekly": {"tue": "09:00"}}}, InvalidInput, "^unknown time zone "),
        ({"target": 5}, InvalidSchedule, "^target: is a int"),
        ({"target": {"type": "http"}}, InvalidSchedule, "^target: .*url"),
        ({"target": "javascript:alert(1)"}, InvalidSchedule, r"^target\.url: "),
        ({"policy": "skip"}, InvalidSchedule, "^policy: is a str"),
        ({"policy": {"retries": 3}}, InvalidSchedule, r"^policy\.retries: unknown field"),
        ({"policy": {"attempts": 0}}, InvalidSchedule, r"^policy\.attempts: "),
        ({"policy": {"spread": 10**400}}, InvalidSchedule, r"^policy\.spread: "),
        ({"policy": {"spread": 7 * 86_400}, "when": "@daily"}, InvalidSchedule, r"^policy\.spread: "),
        ({"enabled": "yes"}, InvalidSchedule, "^enabled: "),
        ({"enabled": 0}, InvalidSchedule, "^enabled: "),
        ({"delete_after": 1}, InvalidSchedule, "^delete_after: "),
        *(({bound: value}, InvalidInput, f"^{bound}( '.*'|:) ") for bound in ("starts_at", "ends_at") for value in NO_BOUNDS),
        ({"starts_at": "2030-01-02T00:00:00Z", "ends_at": "2030-01-01T00:00:00Z"}, InvalidSchedule, "^ends_at: is before"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_field_that_does_not_fit_is_refused_by_name(fields: dict[str, object], error: type[InvalidInput], said: str) -> None:
    with pytest.raises(error, match=said):
        schedule_from_json({**REQUIRED, **fields})


@pytest.mark.parametrize("bound", ["starts_at", "ends_at"])
@pytest.mark.parametrize(
    ("written", "ms"),
    [
        ("2030-11-20T12:00:00Z", NOW_MS),
        ("2030-11-20T13:00:00+01:00", NOW_MS),
        ("2030-11-20T12:00:00.250Z", NOW_MS + 250),
        ("2030-11-20 12:00Z", NOW_MS),
        (NOW_MS, NOW_MS),
    ],
)
def test_a_bound_is_iso_text_with_an_offset_or_milliseconds(bound: str, written: object, ms: int) -> None:
    assert getattr(schedule_from_json({**REQUIRED, bound: written}), bound) == ms


# What a store keeps.


@pytest.mark.parametrize(
    ("enabled", "next_fire_at", "aside", "state"),
    [
        (True, NOW_MS, None, "active"),
        (True, None, "finished", "finished"),
        (True, None, "unreadable", "unreadable"),
        (True, None, None, "unindexed"),
        (True, NOW_MS, "finished", "active"),
        (False, None, None, "paused"),
        (False, NOW_MS, None, "paused"),
        (False, None, "finished", "paused"),
    ],
)
def test_a_schedules_state_follows_from_where_its_row_is(
    enabled: bool, next_fire_at: int | None, aside: State | None, state: State
) -> None:
    stored = kept(schedule(enabled=enabled), next_fire_at, aside)
    assert (stored.state, stored.next_fire_at) == (state, next_fire_at)


@pytest.mark.parametrize(("when_text", "tz"), [("never", "UTC"), ("0 9 * * tue", "Mars/Olympus_Mons"), ("", "")])
def test_a_when_that_does_not_read_is_shown_as_unreadable(when_text: str, tz: str) -> None:
    stored = read_back('{"payload":1}', when_text=when_text, tz=tz, aside="unreadable", reason="why")
    assert isinstance(stored.when, Unreadable)
    assert (str(stored.when), stored.tz, stored.payload, stored.reason) == (when_text, tz, 1, "why")
    assert stored.when.reason


def test_a_body_may_be_text_or_bytes() -> None:
    body = encode_body(schedule(payload={"ä": "🐌"}, target="https://example.org/"))
    assert read_back(body) == read_back(body.decode())


@pytest.mark.parametrize(
    "body",
    [
        b'{"policy": {"missed": "newest"}}',
        b'{"policy": {"retries": 3}}',
        b'{"target": {"type": "queue", "name": "q"}}',
        b'{"starts_at": 0}',
        b'{"colour": "blue"}',
    ],
)
def test_a_body_that_this_worker_does_not_read_does_not_take_a_whole_list_with_it(body: bytes) -> None:
    """As a newer worker may write it. What cannot be shown can neither be listed, paused nor deleted."""
    stored = read_back(body, next_fire_at=NOW_MS)
    assert stored.id == ("u1", "digest")


def test_a_target_that_was_taken_can_be_kept() -> None:
    try:
        declared = schedule(target="https://example.org/\ud800")
    except InvalidSchedule:
        return
    assert kept(declared).declared() == declared


# Payloads.

CYCLE: list[object] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    "payload",
    [
        None,
        True,
        0,
        -0.0,
        1.5,
        1e308,
        5e-324,
        "",
        "ä\u0000\u2028🐌",
        [],
        {},
        [None, [None, {}]],
        {"": {"": []}},
        {"a.b": 1, "$ref": "x", "payload": {"payload": 1}},
        2**53 + 1,
        2**63,
        2**64 - 1,
        2**64,
        -(2**63) - 1,
        2**200,
        10**4_000,
        OrderedDict(b=1, a=2),
    ],
    ids=lambda payload: f"{type(payload).__name__} {str(payload)[:30]}",
)
def test_plain_json_comes_back_as_it_was(payload: object) -> None:
    got = kept(schedule(payload=payload)).payload
    assert got == payload
    assert type(got) is type(payload) or isinstance(payload, OrderedDict)
    assert (
        schedule_from_json(msgspec.json.decode(msgspec.json.encode(schedule_to_json(schedule(payload=payload))))).payload == got
    )


@pytest.mark.parametrize(
    "payload",
    [
        float("nan"),
        float("inf"),
        float("-inf"),
        {"a": [1, float("nan")]},
        (1, 2),
        {"a": (1,)},
        {1: "a"},
        {1.5: "a"},
        {None: "a"},
        {True: "a"},
        {("a",): 1},
        b"bytes",
        bytearray(b"bytes"),
        {1, 2},
        frozenset({1}),
        NOW,
        date(2030, 11, 20),
        timedelta(1),
        Decimal("1.5"),
        UUID(int=1),
        Policy(),
        HttpTarget("https://example.org/"),
        msgspec.Raw(b"[1]"),
        object(),
        print,
        iter([1]),
        1j,
        "\ud800",
        {"\ud800": 1},
        CYCLE,
        {"a": CYCLE},
        10**5_000,
    ],
    ids=lambda payload: type(payload).__name__,
)
def test_what_is_not_plain_json_is_refused(payload: object) -> None:
    with pytest.raises(InvalidSchedule, match=r"^payload: is not (plain )?JSON") as refused:
        encode_body(schedule(payload=payload))
    assert refused.value.field == "payload"


def test_a_payload_that_is_too_large_is_refused_before_it_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: object) -> object:
        raise AssertionError("took its time")

    monkeypatch.setattr(schedule_json, "_decode", never)
    monkeypatch.setattr(schedule_json, "_depth", never)
    with pytest.raises(InvalidSchedule, match="has 300001 bytes as JSON, more than 262144: store"):
        encode_body(schedule(payload=[[]] * 100_000))


@pytest.mark.parametrize(
    ("payload", "depth"), [([], 1), ([[], {}], 2), ({"[[[": ["]", "\\", '"[']}, 2), (['\\"[[', {"a": [{}]}], 4), ("[[", 0)]
)
def test_the_depth_of_a_payload_is_that_of_its_brackets(payload: object, depth: int) -> None:
    assert schedule_json._depth(msgspec.json.encode(payload)) == depth


def test_what_is_as_large_as_a_payload_may_be_is_read_also_with_blanks_and_escapes() -> None:
    spaced = b"[" + b" [ ] ," * 80_000 + b" 1 ]"
    assert len(read_schedule_json(spaced)) == 80_001
    assert read_schedule_json(b'"' + b"\\u0041" * 200_000 + b'"') == "A" * 200_000


@pytest.mark.parametrize("depth", [10_000, 100_000])
def test_a_payload_that_is_nested_too_deep_is_refused(depth: int) -> None:
    payload = nested(depth)
    with pytest.raises(InvalidSchedule, match=r"^payload: "):
        encode_body(schedule(payload=payload))
    while isinstance(payload, list):  # taken apart in a loop: letting go of it at once would itself recurse
        payload = payload.pop()


def test_a_payload_that_was_taken_can_be_read_from_further_down_the_stack() -> None:
    """Who reads it may be deep inside a framework: how deep a payload may be must not depend on how deep the stack is."""
    deepest: Schedule | None = None
    for depth in range(50, 1_000, 50):
        try:
            encode_body(schedule(payload=nested(depth)))
        except InvalidSchedule:
            break
        deepest = schedule(payload=nested(depth))
    assert deepest is not None
    body = encode_body(deepest)
    try:
        stored = at_depth(300, lambda: read_back(body))
    except RecursionError:
        pytest.fail("it was put, and cannot be got from 300 calls further down")
    assert isinstance(stored, StoredSchedule)


@pytest.mark.parametrize("character", ["x", "ä", "🐌"])
def test_a_payload_has_up_to_256_kilobytes_as_json(character: str) -> None:
    size = len(character.encode())
    fits = character * ((MAX_PAYLOAD_BYTES - 2) // size) + "x" * ((MAX_PAYLOAD_BYTES - 2) % size)
    assert MAX_PAYLOAD_BYTES == 256 * 1024
    assert kept(schedule(payload=fits)).payload == fits
    with pytest.raises(InvalidSchedule, match=r"^payload: has 262145 bytes as JSON, more than 262144: store"):
        encode_body(schedule(payload=fits + "x"))


async def test_the_largest_payload_is_put_and_got(any_url: str) -> None:
    largest = "x" * (MAX_PAYLOAD_BYTES - 2)
    async with connect(any_url, clock=ManualClock(NOW_MS)) as t:
        await t.schedules.put(schedule(payload=largest))
        got = await t.schedules.get("u1", "digest")
        assert got is not None
        assert got.payload == largest
        with pytest.raises(InvalidSchedule, match=r"^payload: "):
            await t.schedules.put(schedule(payload=largest + "x"))


@pytest.mark.parametrize("url", ["memory://", "sqlite://"])
async def test_what_the_caller_does_to_a_payload_later_does_not_reach_the_store(url: str) -> None:
    payload = {"a": [1, {"b": 2}]}
    clock = ManualClock(NOW_MS)
    async with connect(url, clock=clock) as t:

        async def is_kept() -> bool:
            got = await t.schedules.get("u1", "digest")
            many = await t.schedules.get("u1", "many")
            assert got is not None
            assert many is not None
            return got.payload == many.payload == {"a": [1, {"b": 2}]}

        put = await t.schedules.put(schedule(payload=payload))
        await t.schedules.put_many([schedule(key="many", payload=payload)])
        payload["a"].append(3)
        assert await is_kept(), "after a change to what was put"
        assert isinstance(put.payload, dict)
        put.payload.clear()
        assert await is_kept(), "after a change to what put returned"
        got = await t.schedules.get("u1", "digest")
        assert got is not None
        assert isinstance(got.payload, dict)
        got.payload["a"].append(4)
        assert await is_kept(), "after a change to what get returned"
        (listed, _) = (await t.schedules.list()).items
        assert isinstance(listed.payload, dict)
        listed.payload["c"] = 5
        assert await is_kept(), "after a change to what list returned"
        assert (await t.schedules.put(schedule(payload={"a": [1, {"b": 2}]}))).version == 1


def test_a_number_out_of_range_makes_one_body_unreadable_and_raises_nothing_else() -> None:
    for body in ('{"starts_at":1e999}', '{"unknown":1,"ends_at":1e999}', "[]"):
        read = read_back(body)
        assert (read.state, read.reason is not None and "cannot be read" in read.reason) == ("unreadable", True)
