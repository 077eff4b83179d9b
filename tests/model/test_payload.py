"""Payloads that come from a store are decoded by those who look at them, and by nobody else."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from collections.abc import AsyncIterator

import msgspec
import pytest
from msgspec.structs import replace

from tickler import ManualClock, PythonTarget, Schedule, Tickler, connect
from tickler.errors import InvalidSchedule
from tickler.model import payload
from tickler.model.payload import RawPayload, held_payload, payload_bytes
from tickler.model.schedule import StoredSchedule
from tickler.model.schedule_json import stored_schedule
from tickler.transfer.ndjson import export_lines

MINUTE_MS = 60_000
NOW_MS = 1_900_000_000_000 // MINUTE_MS * MINUTE_MS


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The payloads that were decoded."""
    seen: list[bytes] = []
    decode = payload._decode

    def noted(json: msgspec.Raw) -> object:
        seen.append(bytes(json))
        return decode(json)

    monkeypatch.setattr(payload, "_decode", noted)
    return seen


def stored(json: str, version: int = 1) -> StoredSchedule:
    body = f'{{"target":{{"type":"http","url":"https://example.org/"}},"payload":{json}}}'
    return stored_schedule(
        owner="u1",
        key="k",
        when_text="0 9 * * *",
        tz="UTC",
        enabled=True,
        version=version,
        created_at=1,
        updated_at=1,
        body=body,
        next_fire_at=None,
        aside=None,
        reason=None,
    )


def test_a_payload_is_decoded_when_it_is_first_looked_at_and_then_stays_the_same(decoded: list[bytes]) -> None:
    schedule = stored('{"a":[1]}')
    assert decoded == []
    assert schedule.payload == {"a": [1]}
    assert isinstance(schedule.payload, dict)
    schedule.payload["a"].append(2)
    assert schedule.payload == {"a": [1, 2]}
    assert decoded == [b'{"a":[1]}']


def test_schedules_are_equal_by_value_whether_or_not_somebody_looked() -> None:
    looked, same = stored('{"a":1,"b":2}'), stored('{"b":2,"a":1}')
    assert looked == stored('{"a":1,"b":2}')
    assert looked.payload
    assert looked == same == replace(looked, payload={"a": 1, "b": 2}) == stored('{"a": 1, "b": 2}')
    assert looked != stored("[1]")
    assert stored("7") != stored("8")
    assert hash(stored("7")) == hash(replace(stored("7"), payload=7))
    assert repr(same) == repr(looked).replace("{'a': 1, 'b': 2}", "{'b': 2, 'a': 1}")


def test_no_payload_and_null_are_the_same() -> None:
    assert stored("null") == replace(stored("7"), payload=None)
    assert stored("null").payload is None
    assert held_payload(stored("null")) is None


def test_copies_keep_what_was_changed() -> None:
    schedule = stored('{"a":[1]}')
    assert pickle.loads(pickle.dumps(schedule)) == copy.deepcopy(schedule) == schedule
    assert isinstance(schedule.payload, dict)
    schedule.payload["a"].append(2)
    assert pickle.loads(pickle.dumps(schedule)).payload == copy.deepcopy(schedule).payload == {"a": [1, 2]}
    assert schedule.declared().payload == replace(schedule, version=2).payload == {"a": [1, 2]}


def test_one_that_does_not_read_says_so_to_whoever_looks() -> None:
    schedule = stored("1e999")  # which only a foreign hand can have written
    with pytest.raises(InvalidSchedule, match=r"^payload: cannot be read \(.*\): put the schedule again"):
        _ = schedule.payload


@pytest.fixture
async def t() -> AsyncIterator[Tickler]:
    async with connect("sqlite://", clock=ManualClock(NOW_MS)) as tickler:
        yield tickler


async def test_what_is_only_passed_on_is_never_decoded(t: Tickler, decoded: list[bytes]) -> None:
    declared = Schedule(owner="u1", key="k", when="* * * * *", target="https://example.org/", payload=[[]] * 9)
    await t.schedules.put(declared)
    decoded.clear()
    await t.schedules.pause("u1", "k")
    await t.schedules.resume("u1", "k")
    (line,) = [line async for line in export_lines(t.schedules)]
    await t.schedules.put(declared)
    (claim,) = await t.fires.claim(NOW_MS + MINUTE_MS, worker="w")
    assert payload_bytes(claim.schedule) == len(b"[[],[],[],[],[],[],[],[],[]]")
    assert decoded == []
    assert msgspec.json.decode(line)["payload"] == claim.schedule.payload == [[]] * 9


async def test_a_claim_takes_no_more_memory_than_its_bytes(t: Tickler) -> None:
    many = "[" + ",".join(["[]"] * 80_000) + "]"
    await t.schedules.put(
        Schedule(owner="u1", key="k", when="* * * * *", target=PythonTarget("x"), payload=msgspec.json.decode(many))
    )
    tracemalloc.start()
    try:
        (claim,) = await t.fires.claim(NOW_MS + MINUTE_MS, worker="w")
        claimed, peak = tracemalloc.get_traced_memory()
        assert claimed < 2 * len(many)
        assert peak < 4 * len(many)
        assert len(claim.schedule.payload) == 80_000  # type: ignore[arg-type]
        assert tracemalloc.get_traced_memory()[0] > 15 * len(many)
    finally:
        tracemalloc.stop()


def test_raw_json_equals_raw_json() -> None:
    first, second = RawPayload(msgspec.Raw(b"[1, 2]")), RawPayload(msgspec.Raw(b"[1,2]"))
    assert first == second == [1, 2]
    assert first.decoded() is first.decoded()
    assert first.encodable() == [1, 2]
    assert second.encodable() is second.json
