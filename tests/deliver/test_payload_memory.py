"""Limits on the memory of payloads: while they are held, and while handlers use them."""

from __future__ import annotations

import asyncio
import tracemalloc
from functools import partial

import msgspec
import pytest
from msgspec.structs import replace

from tickler import Cron, Delivery, Policy, RunOptions, Schedule
from tickler.deliver import claimer, dispatcher, payload_memory
from tickler.deliver.decoding_limit import DecodingLimit
from tickler.deliver.payload_memory import HeldPayloads, decoded_bytes
from tickler.model.schedule import StoredSchedule
from tickler.model.schedule_json import encode_body, stored_schedule

from .at_work import Bench, after, many, schedule
from .virtual_time import in_virtual_time

SIZE = 10_000
LISTS: list[object] = [[]] * 2_000
SHAPES = {
    "empty lists": "[" + ",".join(["[]"] * (SIZE // 3)) + "]",
    "objects in lists": "[" + ",".join(["[{}]"] * (SIZE // 5)) + "]",
    "objects in objects": "[" + ",".join(['{"a":{}}'] * (SIZE // 9)) + "]",
    "empty lists in text": '["' + "[]," * (SIZE // 3) + '"]',
    "empty objects": "[" + ",".join(["{}"] * (SIZE // 3)) + "]",
    "nested lists": "[" + ",".join(["[" * 98 + "]" * 98] * (SIZE // 197)) + "]",
    "nested objects": "[" + ",".join(['{"a":' * 98 + "1" + "}" * 98] * (SIZE // 590)) + "]",
    "lists in lists": "[" + ",".join(["[[]]"] * (SIZE // 5)) + "]",
    "small objects": "[" + ",".join(['{"a":1}'] * (SIZE // 8)) + "]",
    "short texts": "[" + ",".join(f'"{n % 100:02}"' for n in range(SIZE // 5)) + "]",
    "wide characters": "[" + ",".join(['"\u4e00"'] * (SIZE // 6)) + "]",
    "fractions": "[" + ",".join(["1.5"] * (SIZE // 4)) + "]",
    "names": "{" + ",".join(f'"{n:04x}":1' for n in range(SIZE // 9)) + "}",
    "text": '"' + "x" * SIZE + '"',
    "text with one wide character": '"\U0001f600' + "x" * SIZE + '"',
}


def claimed(payload: object, host: str | None = None, owner: str = "u1") -> StoredSchedule:
    """Return a schedule as a store does, for a handler or a host."""
    body = encode_body(replace(schedule(host=host), payload=payload))
    return stored_schedule(
        owner=owner,
        key="k",
        when_text="* * * * *",
        tz="UTC",
        enabled=True,
        version=1,
        created_at=0,
        updated_at=0,
        body=body,
        next_fire_at=0,
        aside=None,
        reason=None,
    )


def with_payload(payload: object, *schedules: Schedule) -> list[Schedule]:
    return [replace(each, payload=payload) for each in schedules]


@pytest.mark.parametrize("json", SHAPES.values(), ids=SHAPES)
def test_no_payload_takes_more_memory_than_was_reckoned_with(json: str) -> None:
    stored = claimed(msgspec.json.decode(json))
    reckoned = decoded_bytes(stored)
    tracemalloc.start()
    try:
        value = msgspec.json.decode(json)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert value == stored.payload
    assert taken <= reckoned


def test_what_is_passed_on_as_json_or_is_small_does_not_count() -> None:
    assert decoded_bytes(claimed(LISTS)) > 0
    assert decoded_bytes(claimed(LISTS, "host")) == 0
    assert decoded_bytes(claimed(LISTS[:600])) == 0
    assert decoded_bytes(claimed(None)) == 0


def test_what_several_claims_share_is_held_once() -> None:
    held, stored, other = HeldPayloads(), claimed("x" * SIZE), claimed("x" * SIZE, owner="u2")
    for each in (stored, stored, other):
        held.add(each)
    size = SIZE + 2
    assert (held.bytes, held.bytes_of) == (2 * size, {"u1": size, "u2": size})
    held.remove(stored)
    assert held.bytes_of == {"u1": size, "u2": size}
    held.remove(stored)
    assert (held.bytes, held.bytes_of) == (size, {"u2": size})


# The limit.


def entered(limit: DecodingLimit[str], *asked: tuple[str, int]) -> list[bool]:
    return [limit.enter(owner, size, owner) for owner, size in asked]


def test_attempts_of_owners_that_have_some_begin_in_order_as_far_as_they_fit() -> None:
    limit: DecodingLimit[str] = DecodingLimit(100)
    assert entered(limit, ("a", 30), ("b", 30), ("c", 30)) == [True, True, True]
    assert entered(limit, ("a", 15), ("b", 5)) == [False, False]
    assert limit.leave("c", 30) == [("a", 15), ("b", 5)]


def test_an_owner_with_half_of_the_room_waits_and_holds_up_nobody() -> None:
    limit: DecodingLimit[str] = DecodingLimit(100)
    assert entered(limit, ("flood", 50), ("flood", 1), ("calm", 50)) == [True, False, True]
    assert limit.leave("flood", 50) == [("flood", 1)]


def test_an_owner_that_has_nothing_begins_however_much_the_others_have() -> None:
    limit: DecodingLimit[str] = DecodingLimit(100)
    assert entered(limit, ("a", 50), ("b", 50), ("c", 40), ("a", 1), ("d", 40), ("e", 50)) == [
        True,
        True,
        True,
        False,
        True,
        True,
    ]
    assert entered(limit, ("f", 80), ("g", 10)) == [False, False]  # nor does a small one pass a large one for ever
    assert limit.leave("e", 50) == [("f", 80), ("g", 10)]


def test_what_is_larger_than_the_room_begins_alone() -> None:
    limit: DecodingLimit[str] = DecodingLimit(100)
    assert entered(limit, ("a", 10), ("b", 500), ("c", 10)) == [True, False, False]
    assert limit.leave("a", 10) == [("b", 500)]
    assert limit.leave("b", 500) == [("c", 10)]


def test_what_waits_no_more_holds_up_nobody() -> None:
    limit: DecodingLimit[str] = DecodingLimit(100)
    assert entered(limit, ("a", 290), ("b", 20), ("b", 30), ("c", 10)) == [True, False, False, False]
    assert (len(limit), list(limit)) == (3, ["b", "b", "c"])
    assert limit.drain("b") == ["b", "b"]
    assert limit.leave("a", 0) == [("c", 10)]


# A worker.


@in_virtual_time
async def test_handlers_have_no_more_decoded_at_once_than_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload_memory, "DecodingLimit", partial(DecodingLimit, 5 * decoded_bytes(claimed(LISTS))))
    bench = Bench()
    at_once: list[int] = []
    begun = 0

    async def behave(delivery: Delivery) -> object:
        nonlocal begun
        begun += delivery.payload is not None
        at_once.append(begun)
        await asyncio.sleep(1)
        begun -= delivery.payload is not None
        return None

    bench.behave = behave
    for owner in ("u1", "u2", "u3"):
        await bench.put(*with_payload(LISTS, *many(6, owner=owner)))
    await bench.put(*many(20, owner="light"))
    async with bench.running():
        await bench.until_arrived(20 + 5)
        assert bench.keys.count("k00019") == 1, "what is light passes by"
        await bench.until_arrived(20 + 18)
    assert max(at_once) == 5
    assert max(bench.most_of[owner] for owner in ("u1", "u2", "u3")) == 2


@in_virtual_time
async def test_owners_whose_handlers_hang_keep_nobody_out_who_has_nothing_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload_memory, "DecodingLimit", partial(DecodingLimit, 4 * decoded_bytes(claimed(LISTS))))
    bench = Bench()
    policy = Policy(timeout=600)
    for owner in ("u1", "u2", "u3", "u4"):
        await bench.put(*with_payload(LISTS, *many(30, policy=policy, owner=owner)))
    await bench.put(*with_payload(LISTS, schedule("calm", 12.0, owner="calm")), schedule("light", 12.0, owner="u1"))

    async def behave(delivery: Delivery) -> object:
        await asyncio.sleep(0 if delivery.key in ("calm", "light") else 1_000)
        return None

    bench.behave = behave
    async with bench.running(RunOptions(drain=1)):
        await asyncio.sleep(13)
        assert {"calm", "light"} <= set(bench.keys), "what waits for memory has no slot"
        assert bench.at_once == 4


@in_virtual_time
async def test_what_waits_for_memory_is_released_as_soon_as_the_worker_is_told_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload_memory, "DecodingLimit", partial(DecodingLimit, 1))
    bench = Bench()
    await bench.put(*with_payload(LISTS, *many(2, policy=Policy(timeout=600))))
    bench.behave = after(60)
    async with bench.running(RunOptions(drain=100)):
        await bench.until_arrived(1)
        bench.tickler.stop()
        await asyncio.sleep(1)
        assert sorted((fire.attempt, fire.worker is None) for fire in await bench.fires()) == [(0, True), (1, False)]
    assert await bench.happened("k00000") == ["delivered"]
    assert bench.keys == ["k00000"]


@in_virtual_time
async def test_what_waited_for_memory_when_the_worker_stops_is_released_unbegun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload_memory, "DecodingLimit", partial(DecodingLimit, 1))
    bench = Bench()
    await bench.put(*with_payload(LISTS, *many(2, policy=Policy(timeout=600))))

    async def behave(delivery: Delivery) -> object:
        await asyncio.sleep(1_000)
        return None

    bench.behave = behave
    async with bench.running(RunOptions(drain=5)):
        await bench.until_arrived(1)
    assert sorted(fire.attempt for fire in await bench.fires()) == [0, 1]


@in_virtual_time
async def test_a_worker_holds_a_bounded_number_of_bytes_and_still_sees_other_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (payload_memory, dispatcher, claimer):
        monkeypatch.setattr(module, "MAX_HELD_BYTES", 100_000)
    bench = Bench()
    released = asyncio.Event()

    async def behave(delivery: Delivery) -> object:
        if delivery.owner != "calm":
            await released.wait()
        return None

    bench.behave = behave
    await bench.put(
        *with_payload("x" * 10_000, *many(100, policy=Policy(timeout=600), owner="flood")), schedule("later", 12.0, owner="calm")
    )
    async with bench.running():
        while "later" not in bench.keys:
            await asyncio.sleep(1)
        await asyncio.sleep(10)
        held = [fire for fire in await bench.fires() if fire.worker is not None]
        assert 10 <= len(held) <= 20
        released.set()
        await bench.until_arrived(101)
    assert await bench.fires() == []


@in_virtual_time
async def test_one_owners_occurrences_that_share_a_payload_keep_nobody_else_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (payload_memory, dispatcher, claimer):
        monkeypatch.setattr(module, "MAX_HELD_BYTES", 100_000)
    bench = Bench()
    catch_up = Policy(missed="all", max_catchup=100, timeout=600)
    await bench.put(*with_payload("x" * 10_000, schedule("flood", Cron("* * * * *"), catch_up, owner="flood", host="slow")))
    await bench.put(schedule("calm", 3_601.0, owner="calm"))

    async def behave(delivery: Delivery) -> object:
        await asyncio.sleep(1_000 if delivery.owner == "flood" else 0)
        return None

    bench.behave = behave
    await asyncio.sleep(3_599)
    async with bench.running(RunOptions(drain=1)):
        await asyncio.sleep(3)
        assert bench.keys.count("flood") == 25
        assert bench.keys.count("calm") == 1


@in_virtual_time
async def test_owners_that_hold_all_the_bytes_there_are_keep_nobody_out_who_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (payload_memory, dispatcher, claimer):
        monkeypatch.setattr(module, "MAX_HELD_BYTES", 100_000)
    bench = Bench()
    await bench.put(*with_payload("x" * 10_000, *(
        schedule(f"k{n}", policy=Policy(timeout=600), owner=f"u{n % 10}", host=f"h{n % 10}") for n in range(100)
    )))  # fmt: skip
    await bench.put(*with_payload("x" * 10_000, *(schedule("calm", 20.0 + n, owner=f"calm{n}") for n in range(3))))

    async def behave(delivery: Delivery) -> object:
        await asyncio.sleep(0 if delivery.key == "calm" else 1_000)
        return None

    bench.behave = behave
    async with bench.running(RunOptions(drain=1)):
        await asyncio.sleep(19)
        held = [fire for fire in await bench.fires() if fire.worker is not None]
        assert {fire.owner for fire in held} == {f"u{n}" for n in range(10)}
        assert len(held) < 30, "one of each that had none"
        await asyncio.sleep(5)
        assert [arrival.late_ms < 1_000 for arrival in bench.arrived if arrival.key == "calm"] == [True] * 3


@in_virtual_time
async def test_however_many_owners_there_are_a_worker_holds_no_more_than_twice_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (payload_memory, dispatcher, claimer):
        monkeypatch.setattr(module, "MAX_HELD_BYTES", 100_000)
    bench = Bench()
    released = asyncio.Event()

    async def behave(delivery: Delivery) -> object:
        await released.wait()
        return None

    bench.behave = behave
    await bench.put(*with_payload("x" * 10_000, *(schedule(policy=Policy(timeout=600), owner=f"u{n}") for n in range(60))))
    async with bench.running(RunOptions(in_flight=15)):
        await asyncio.sleep(30)
        assert 15 <= len([fire for fire in await bench.fires() if fire.worker is not None]) <= 20
        released.set()
        await bench.until_arrived(60)
    assert len(bench.arrived) == 60
