"""`tickler work` and signals: what is in flight ends, what is queued goes to others, and no process stays behind."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from tickler import At, Policy, PythonTarget, RunOptions, Schedule, Tickler, connect
from tickler.clock import SystemClock, to_datetime
from tickler.model.target import Target
from under_fire.accounts import Due
from under_fire.load import nothing_is_owed
from under_fire.processes import LOOPBACK, end, ended, is_gone, start, until
from under_fire.running import running
from under_fire.sink import Sink
from under_fire.watched import watched

SOON_MS = 1_000
LEASE_S = 60  # so long that nobody waits for it to run out

SOAK = os.environ.get("TICKLER_SOAK") == "1"


@asynccontextmanager
async def working(url: str, *arguments: str) -> AsyncIterator[Process]:
    process = await start("-m", "tickler", "work", "--store", url, "--lease", str(LEASE_S), *arguments, piped=False)
    try:
        yield process
    finally:
        await end(process)


async def put(
    tickler: Tickler, owner: str, number: int, target: Target | str, policy: Policy | None = None, in_ms: int = SOON_MS
) -> list[Due]:
    at = tickler.now_ms() + in_ms
    due = [Due(owner, f"k{n}", at) for n in range(number)]
    await tickler.schedules.put_many(
        [
            Schedule(owner=owner, key=each.key, when=At(to_datetime(at)), target=target, policy=policy or Policy(backoff=[0]))
            for each in due
        ]
    )
    return due


async def happened(tickler: Tickler, due: Due) -> list[tuple[str, int]]:
    """What, and at which attempt, the oldest first."""
    return [(entry.happened, entry.attempt) for entry in reversed((await tickler.fires.history(due.owner, due.key)).items)]


@pytest.fixture(params=["sqlite", "postgres", "dynamodb"])
def url(request: pytest.FixtureRequest) -> str:
    """Each of the stores that processes can share."""
    return str(request.getfixturevalue(f"{request.param}_url"))


async def test_a_worker_that_is_told_to_stop_ends_what_it_began_and_releases_the_rest(url: str) -> None:
    async with connect(url, allow_networks=[LOOPBACK]) as tickler, Sink() as sink:
        begun = await put(tickler, "begun", 4, sink.hook(held=1))

        async def all_begun() -> bool:
            return len(await sink.arrivals()) == len(begun)

        async def all_claimed() -> bool:
            return await tickler.index.next_due() is None

        async def released() -> bool:
            found = (await tickler.fires.list(owner="queued")).items + (await tickler.fires.list(owner="once")).items
            return [fire.worker for fire in found] == [None] * (len(queued) + len(only_once))

        async with working(url, "--in-flight", "20", "--per-host", "4", "--drain", "60") as process:
            await until("as many are in flight as may be", all_begun)
            queued = await put(tickler, "queued", 6, sink.hook())
            only_once = await put(tickler, "once", 5, sink.hook(), Policy(delivery="at-most-once"))
            await until("all others are claimed", all_claimed)
            process.terminate()
            await until("what was not begun is released", released)
            assert process.returncode is None
            await sink.let_go()
            assert await ended(process) == 0

        for due in begun:
            assert await happened(tickler, due) == [("delivered", 1)]
        assert {arrival.owner for arrival in await sink.arrivals()} == {"begun"}

        assert (await tickler.tick(10_000)).delivered == len(queued + only_once)  # although the lease would have lasted a minute
        for due in queued + only_once:
            assert await happened(tickler, due) == [("delivered", 1)]
        assert len(await sink.arrivals()) == len(begun + only_once + queued)


@pytest.mark.parametrize("handler", ["async", "plain"])
async def test_a_handler_that_never_ends_is_cut_off_and_tried_again_by_the_next_worker(sqlite_url: str, handler: str) -> None:
    async with connect(sqlite_url) as tickler:
        (due,) = await put(tickler, "u1", 1, PythonTarget(handler))

        async def is_claimed() -> bool:
            return [fire.worker is not None for fire in (await tickler.fires.list()).items] == [True]

        async with working(sqlite_url, "--setup", "under_fire.handlers:never_ending", "--drain", "0.5") as process:
            await until("the handler is at work", is_claimed)
            process.terminate()
            assert await ended(process, within_s=30) == 0
        (entry,) = (await tickler.fires.history("u1", due.key)).items
        assert (entry.happened, entry.detail) == ("failed", "the worker was stopped")

        async def is_delivered() -> bool:
            return await happened(tickler, due) == [("failed", 1), ("delivered", 2)]

        async with working(sqlite_url, "--setup", "under_fire.handlers:quick") as process:
            await until("the next worker delivers it", is_delivered)
            process.terminate()
            assert await ended(process) == 0


async def test_what_was_claimed_ahead_is_released_for_its_instant_and_not_before(sqlite_url: str) -> None:
    """With a drain time of 0, a stopping worker waits for nothing."""
    tickler, fires = watched(sqlite_url, SystemClock())
    async with tickler:
        tickler.handler("quick")(lambda fire: None)
        target, policy = PythonTarget("quick"), Policy(delivery="at-most-once")
        owed = await put(tickler, "owed", 3, target, in_ms=4_000)
        only_once = await put(tickler, "once", 3, target, policy, in_ms=4_000)
        options = RunOptions(ahead=5, drain=0, per_owner=2)  # one of each owner is not even held
        async with running(tickler, options=options):
            await until("all are claimed", lambda: len(fires.taken) == 6)

        for due in owed + only_once:
            assert await happened(tickler, due) == []
        async with running(tickler):
            await until("they are delivered after all", lambda: nothing_is_owed(tickler))
        for due in owed + only_once:
            (entry,) = (await tickler.fires.history(due.owner, due.key)).items
            assert entry.happened == "delivered"
            assert entry.late_ms >= 0


async def test_what_a_worker_that_holds_it_ahead_keeps_is_not_taken_over_before_its_instant(sqlite_url: str) -> None:
    """One lease after the last extension, although the instant is further away than a lease lasts."""
    tickler, fires = watched(sqlite_url, SystemClock())
    async with tickler:
        tickler.handler("quick")(lambda fire: None)
        (due,) = await put(tickler, "owed", 1, PythonTarget("quick"), in_ms=9_500)
        async with running(tickler, options=RunOptions(ahead=10, lease=5, drain=0)):
            await until("it is claimed", lambda: len(fires.taken) == 1)
            await until("its lease is kept", lambda: fires.extended > 0)
            (fire,) = (await tickler.fires.list()).items
            assert fire.deliver_after is not None
            assert fire.deliver_after > due.nominal_at


async def test_of_several_processes_one_that_dies_is_replaced_and_all_stop_together(sqlite_url: str) -> None:
    async with connect(sqlite_url) as tickler:

        async def pids() -> set[int]:
            """Of all workers that ever were."""
            return {int(record.name.split(":")[-2]) for record in await tickler.records.list("worker")}

        async def so_many(number: int) -> bool:
            return len(await pids()) == number

        async with working(sqlite_url, "--processes", "3", "--drain", "5") as process:
            await until("three work", lambda: so_many(3))
            os.kill(min(await pids()), signal.SIGKILL)
            await until("another works instead", lambda: so_many(4))
            process.terminate()
            assert await ended(process) == 0
            assert is_gone(process)


async def test_of_several_processes_those_whose_parent_was_killed_stop_by_themselves(sqlite_url: str) -> None:
    """As on SIGTERM: nothing else would ever tell them."""
    process = await start("-m", "tickler", "work", "--store", f"{sqlite_url}?create=1", "--processes", "2", "--drain", "5")
    try:
        async with connect(sqlite_url) as tickler:

            async def doing() -> list[object]:
                return [r.value.get("doing") for r in await tickler.records.list("worker") if isinstance(r.value, dict)]

            async def both(wanted: str) -> bool:
                return await doing() == [wanted] * 2

            await until("two work", lambda: both("working"))
            process.kill()
            await until("both have stopped", lambda: both("stopped"), within_s=15)
        assert process.stdout is not None
        async with asyncio.timeout(15):
            await process.stdout.read()  # to its end: nobody has it open any more
    finally:
        await end(process)


@pytest.mark.parametrize(
    ("processes", "number"), [("1", signal.SIGINT), ("2", signal.SIGTERM)] if SOAK else [("2", signal.SIGTERM)]
)
async def test_who_is_told_twice_leaves_at_once_and_another_delivers(sqlite_url: str, processes: str, number: int) -> None:
    async with connect(sqlite_url, allow_networks=[LOOPBACK]) as tickler, Sink() as sink:
        (due,) = await put(tickler, "u1", 1, sink.hook(held=1))

        async def arrived(times: int) -> bool:
            return len(await sink.arrivals()) == times

        def is_gone_when_told() -> bool:
            with suppress(ProcessLookupError):
                os.kill(process.pid, number)  # send_signal would ask for its exit code, and keep that from asyncio
            return process.returncode is not None

        arguments = ("--processes", processes, "--lease", "5", "--drain", "120")
        async with working(sqlite_url, *arguments) as process:
            await until("it is in flight", lambda: arrived(1))
            process.send_signal(number)
            await until("it leaves, told again", is_gone_when_told, within_s=20)
            assert process.returncode == 130
            await until("with its children", lambda: is_gone(process), within_s=20)

        await sink.let_go()
        async with working(sqlite_url, "--lease", "5"):
            await until("another delivers", lambda: nothing_is_owed(tickler))
        assert await happened(tickler, due) == [("expired", 1), ("delivered", 2)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM] if SOAK else [signal.SIGTERM])
async def test_several_processes_that_are_all_told_together_end_what_they_began(sqlite_url: str, number: int) -> None:
    """A terminal tells the whole group, and systemd every process of a service; the parent tells its children as well."""
    async with connect(sqlite_url, allow_networks=[LOOPBACK]) as tickler, Sink() as sink:
        begun = await put(tickler, "begun", 4, sink.hook(held=1))

        async def all_begun() -> bool:
            return len(await sink.arrivals()) == len(begun)

        async with working(sqlite_url, "--processes", "2", "--drain", "60") as process:
            await until("all are in flight", all_begun)
            os.killpg(process.pid, number)
            await asyncio.sleep(1)  # that nobody leaves is no event
            assert process.returncode is None
            await sink.let_go()
            assert await ended(process) == 0
            assert is_gone(process)
        for due in begun:
            assert await happened(tickler, due) == [("delivered", 1)]


STUBBORN = """
import asyncio

def register(tickler):
    @tickler.handler("stubborn")
    async def stubborn(fire):
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                pass
"""


async def test_a_handler_that_goes_on_when_it_is_cancelled_does_not_keep_the_process(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stubborn_handlers.py").write_text(STUBBORN)
    monkeypatch.syspath_prepend(tmp_path)
    async with connect(sqlite_url) as tickler:
        await put(tickler, "u1", 1, PythonTarget("stubborn"))

        async def is_claimed() -> bool:
            return [fire.worker is not None for fire in (await tickler.fires.list()).items] == [True]

        async with working(sqlite_url, "--setup", "stubborn_handlers:register", "--drain", "0.5") as process:
            await until("the handler is at work", is_claimed)
            process.terminate()
            assert await ended(process, within_s=30) == 0
        assert len((await tickler.fires.list()).items) == 1  # it is still owed
