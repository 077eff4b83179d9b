"""Processes of one consumer that are killed at random lose nothing, and repeat only what they had not acknowledged."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from table.killed_consumer import LEASE_S, PROCESSES

from tickler.table.engines.change_log import shard_of
from tickler.table.open_table import OpenTable
from tickler.testing.stream_fixtures import STREAMED, task

SOAK_ONLY = pytest.mark.skipif(os.environ.get("TICKLER_SOAK") != "1", reason="takes 6 s: make soak")
ITEMS = 12
WAIT_S = 60.0
ACKNOWLEDGED_AFTER_S = LEASE_S  # positions are saved every 0.2 s; the rest is for a slow machine


class Called(NamedTuple):
    """A call of the handler. One that was killed ended then."""

    began_ns: int
    ended_ns: int
    item: str
    number: int
    process: int
    is_completed: bool


class Story(NamedTuple):
    calls: list[Called]
    killed_ns: dict[int, int]
    stalled: set[int]

    def by_item(self) -> dict[str, list[Called]]:
        found = defaultdict(list)
        for call in sorted(self.calls):
            found[call.item].append(call)
        return found


@pytest.mark.parametrize("any_url", ["sqlite", "postgres", pytest.param("dynamodb", marks=SOAK_ONLY)], indirect=True)
async def test_consumers_that_are_killed_lose_nothing_and_repeat_only_what_they_had_not_acknowledged(
    any_url: str, soak: bool, seed: int, tmp_path: Path
) -> None:
    url = any_url.replace("&shards=4", "")
    kills, rounds = (30, 400) if soak else (2, 12)
    events = tmp_path / "events"
    async with STREAMED.connect(url, create=True) as db:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "table.killed_consumer", url, str(events),
            stdin=subprocess.PIPE, cwd=Path(__file__).parent.parent,
        )  # fmt: skip
        try:
            await write(db, process, events, kills, rounds, Random(seed))
            await until(lambda: len({(call.item, call.number) for call in story(events).calls}) == ITEMS * rounds)
            assert process.stdin is not None
            process.stdin.close()
            assert await asyncio.wait_for(process.wait(), WAIT_S) == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        (status,) = await db.consumers()
    assert status.waiting in (0, None)
    assert status.held == 0, "processes that stop give their shards up"
    told = story(events)
    assert len(told.killed_ns) >= kills
    check_order(told, rounds)
    check_repeats(told, lambda item: "one" if url.startswith("dynamodb") else shard_of(f"TASK#{item}"))


async def write(
    db: OpenTable, process: asyncio.subprocess.Process, events: Path, kills: int, rounds: int, random: Random
) -> None:
    """Change each item `rounds` times, and have processes killed meanwhile, once they have delivered something."""
    assert process.stdin is not None
    kill_at = sorted(random.sample(range(2, rounds), kills))
    for number in range(rounds):
        if number in kill_at:
            await until(lambda: len(story(events).calls) >= ITEMS * number // 2)  # noqa: B023  # awaited here
            process.stdin.write(f"{random.randint(1, PROCESSES)}\n".encode())
        await asyncio.gather(*(db.put(task(item, size=number)) for item in range(ITEMS)))


def story(events: Path) -> Story:
    """Read what has happened so far."""
    told = Story([], {}, set())
    open_calls: dict[tuple[int, str, int], int] = {}
    for line in events.read_text().splitlines() if events.exists() else ():
        what, process, at_ns, item, number = line.split()
        key = int(process), item, int(number)
        if what == "began":
            open_calls[key] = int(at_ns)
        elif what == "ended":
            told.calls.append(Called(open_calls.pop(key), int(at_ns), item, int(number), int(process), is_completed=True))
        elif what == "killed":
            told.killed_ns[int(process)] = int(at_ns)
        else:
            told.stalled.add(int(process))
    for (by, item, count), began_ns in open_calls.items():
        if by in told.killed_ns:
            told.calls.append(Called(began_ns, told.killed_ns[by], item, count, by, is_completed=False))
    return told


def check_order(told: Story, rounds: int) -> None:
    """Each change of an item is delivered for the first time after the one before, and never two of an item at a time."""
    for item, calls in told.by_item().items():
        firsts = list(dict.fromkeys(call.number for call in calls))
        assert firsts == list(range(rounds)), item
        completed = {call.number for call in calls if call.is_completed}
        assert completed == set(range(rounds)), item
        for one, other in pairwise(calls):
            if one.process not in told.stalled:
                assert other.began_ns >= one.ended_ns, (one, other)


def check_repeats(told: Story, shard: Callable[[str], str]) -> None:
    """What was delivered twice was not acknowledged: its process was killed soon after it, or after one before it."""
    last = {(call.item, call.number): call for call in sorted(told.calls)}
    for call in told.calls:
        if call is last[call.item, call.number] or call.process in told.stalled:
            continue
        assert call.process in told.killed_ns, f"{call} was repeated, though its process lived on"
        acknowledged_ns = told.killed_ns[call.process] - ACKNOWLEDGED_AFTER_S * 1e9
        before = [each for each in told.calls if each.process == call.process and shard(each.item) == shard(call.item)]
        unsaved = [each for each in before if each.number <= call.number and each.ended_ns > acknowledged_ns]
        assert unsaved, f"{call} was repeated, though it was acknowledged"


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0.05)
