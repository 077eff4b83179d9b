"""Faults on demand: which request meets which, and how often."""

from __future__ import annotations

import asyncio

import aiohttp

from slothpost.standins.faults import Fault, Faults
from slothpost.standins.x import XStandIn


async def status_of(x: XStandIn, text: str) -> int:
    headers = {"authorization": f"Bearer {x.issue_tokens('ada').access}"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{x.url}/2/tweets", json={"text": text}, headers=headers) as answer,
    ):
        return answer.status


def test_faults_come_in_their_order_and_end() -> None:
    faults = Faults(publishing="/publish")
    faults.limit()
    faults.take_then_drop(2)
    met = [faults.next_of("/v1/publish", "") for _ in range(4)]
    assert [None if fault is None else (fault.kind, fault.taken) for fault in met] == [
        ("limit", False),
        ("drop", True),
        ("drop", True),
        None,
    ]


def test_a_fault_of_one_path_meets_no_other() -> None:
    faults = Faults(publishing="/publish")
    faults.fail_before_taking(on="/token")
    assert faults.next_of("/publish", "") is None
    assert faults.next_of("/token", "") is not None


def test_each_text_with_a_marker_meets_its_fault_once() -> None:
    faults = Faults(publishing="/publish")
    faults.mark("#lost", Fault(kind="hang", taken=True))
    met = [faults.next_of("/publish", text) for text in ("tea", "tea #lost", "tea #lost", "more #lost", "")]
    assert [fault is not None for fault in met] == [False, True, False, True, False]


async def test_a_marked_post_fails_the_first_time(x: XStandIn) -> None:
    x.faults.mark("#busy", Fault(kind="fail"))
    assert [await status_of(x, text) for text in ("tea", "tea #busy", "tea #busy")] == [201, 503, 201]


async def test_a_refusal_is_answered_although_an_answer_would_be_lost(x: XStandIn) -> None:
    await status_of(x, "tea")
    x.faults.take_then_drop()
    assert await status_of(x, "tea") == 403


async def test_a_slow_answer_comes(x: XStandIn) -> None:
    x.faults.answer_slowly(0.01)
    assert await status_of(x, "tea") == 201


async def test_a_held_request_waits_until_it_is_released(x: XStandIn) -> None:
    hold = x.faults.hold()
    sent = asyncio.create_task(status_of(x, "tea"))
    async with asyncio.timeout(5):
        await hold.arrived.wait()
        assert (x.posts, sent.done()) == ([], False)
        hold.release()
        assert await sent == 201


async def test_a_stand_in_that_stops_answers_what_it_held_back(x: XStandIn) -> None:
    x.faults.take_then_hang()
    sent = asyncio.create_task(status_of(x, "tea"))
    while not x.posts:
        await asyncio.sleep(0)
    await x.__aexit__(None, None, None)
    assert await sent == 503
