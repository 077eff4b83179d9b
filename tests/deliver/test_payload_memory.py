"""What payloads may take of a worker's memory: while they are held, and while handlers have them."""

from __future__ import annotations

import asyncio
import tracemalloc
from functools import partial

import msgspec
import pytest
from msgspec.structs import replace

from tickler import Delivery, Policy, RunOptions, Schedule
from tickler.deliver import hands, payload_memory, runner
from tickler.deliver.payload_memory import DecodingLimit, decoded_bytes
from tickler.fires import Claim
from tickler.schedule_json import encode_body, stored_schedule

from .at_work import Bench, many, schedule
from .virtual_time import in_virtual_time

SIZE = 10_000
LISTS: list[object] = [[]] * 2_000
SHAPES = {
    "empty lists": "[" + ",".join(["[]"] * (SIZE // 3)) + "]",
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


def claimed(payload: object, host: str | None = None) -> Claim:
    """As a store hands it out: to a handler, or to a host."""
    body = encode_body(replace(schedule(host=host), payload=payload))
    return Claim(stored_schedule("u1", "k", "* * * * *", "UTC", True, 1, 0, 0, body, 0, None, None), 0, None, 0)


def with_payload(payload: object, *schedules: Schedule) -> list[Schedule]:
    return [replace(each, payload=payload) for each in schedules]


@pytest.mark.parametrize("json", SHAPES.values(), ids=SHAPES)
def test_no_payload_takes_more_memory_than_was_reckoned_with(json: str) -> None:
    claim = claimed(msgspec.json.decode(json))
    reckoned = decoded_bytes(claim)
    tracemalloc.start()
    try:
        value = msgspec.json.decode(json)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert value == claim.schedule.payload
    assert taken <= reckoned


def test_what_is_passed_on_as_json_or_is_small_does_not_count() -> None:
    assert decoded_bytes(claimed(LISTS)) > 0
    assert decoded_bytes(claimed(LISTS, "host")) == 0
    assert decoded_bytes(claimed(LISTS[:600])) == 0
    assert decoded_bytes(claimed(None)) == 0


# The limit.


async def entered(limit: DecodingLimit, *asked: tuple[str, int]) -> list[asyncio.Task[None]]:
    tasks = [asyncio.create_task(limit.enter(owner, size)) for owner, size in asked]
    await asyncio.sleep(0.01)
    return tasks


@in_virtual_time
async def test_attempts_begin_in_order_as_far_as_they_fit() -> None:
    limit = DecodingLimit(100)
    first, second, third, fourth = await entered(limit, ("a", 50), ("b", 40), ("c", 30), ("d", 10))
    assert [task.done() for task in (first, second, third, fourth)] == [True, True, False, False]
    limit.leave("b", 40)
    await asyncio.gather(third, fourth)


@in_virtual_time
async def test_an_owner_with_half_of_the_room_waits_and_holds_up_nobody() -> None:
    limit = DecodingLimit(100)
    first, second, other = await entered(limit, ("flood", 50), ("flood", 1), ("calm", 50))
    assert [task.done() for task in (first, second, other)] == [True, False, True]
    limit.leave("flood", 50)
    await second


@in_virtual_time
async def test_what_is_larger_than_the_room_begins_alone() -> None:
    limit = DecodingLimit(100)
    first, large, after = await entered(limit, ("a", 10), ("b", 500), ("c", 10))
    assert [task.done() for task in (first, large, after)] == [True, False, False]
    limit.leave("a", 10)
    await large
    assert not after.done()
    limit.leave("b", 500)
    await after


@in_virtual_time
async def test_whoever_stops_waiting_holds_up_nobody() -> None:
    limit = DecodingLimit(100)
    _, waiting, behind = await entered(limit, ("a", 90), ("b", 20), ("c", 10))
    waiting.cancel()
    await behind
    limit.leave("c", 10)
    (late,) = await entered(limit, ("d", 20))
    limit.leave("a", 90)  # admits the one that is cancelled in the same turn
    late.cancel()
    await asyncio.sleep(0.01)
    await asyncio.gather(*await entered(limit, ("e", 50), ("f", 50)))


# A worker.


@in_virtual_time
async def test_handlers_have_no_more_decoded_at_once_than_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hands, "DecodingLimit", partial(DecodingLimit, 5 * decoded_bytes(claimed(LISTS))))
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
async def test_what_waited_for_memory_when_the_worker_stops_is_given_back_unbegun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hands, "DecodingLimit", partial(DecodingLimit, 1))
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
    for module in (payload_memory, hands, runner):
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
async def test_however_many_owners_there_are_a_worker_holds_no_more_than_twice_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (payload_memory, hands, runner):
        monkeypatch.setattr(module, "MAX_HELD_BYTES", 100_000)
    bench = Bench()
    released = asyncio.Event()

    async def behave(delivery: Delivery) -> object:
        await released.wait()
        return None

    bench.behave = behave
    await bench.put(*with_payload("x" * 10_000, *(schedule(policy=Policy(timeout=600), owner=f"u{n}") for n in range(60))))
    async with bench.running():
        await asyncio.sleep(30)
        assert 10 <= len([fire for fire in await bench.fires() if fire.worker is not None]) <= 20
        released.set()
        await bench.until_arrived(60)
    assert len(bench.arrived) == 60
