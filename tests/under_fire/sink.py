"""An HTTP sink in a process of its own, which outlives the senders: `python -m under_fire.sink`.

It prints its port. What it does with a fire is in the query of the target's URL; what fails and what hangs is decided by a hash
of fire and attempt, so that the same attempt fares the same in every run. It remembers every arrival.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from asyncio.subprocess import Process
from collections import Counter
from types import TracebackType
from typing import Self
from urllib.parse import urlencode

import aiohttp
import msgspec
from aiohttp import web

from under_fire.processes import TIMEOUT_S, end, start

HANG_S = 2.5  # longer than any timeout in these tests
HUNG = 0  # instead of a status


class Arrival(msgspec.Struct, frozen=True):
    """A request that came in whole. `status` is what it is answered with in the end."""

    id: str
    attempt: int
    owner: str
    key: str
    nominal_at: int
    at: int
    status: int


class Most(msgspec.Struct, frozen=True):
    """How many requests there were at the same time: altogether, and of each owner."""

    of_all: int
    of_owner: dict[str, int]


class _Data(msgspec.Struct):
    id: str
    attempt: int
    owner: str
    key: str
    nominal_at: int


class _Envelope(msgspec.Struct):
    data: _Data


class _Server:
    def __init__(self) -> None:
        self._arrivals: list[Arrival] = []
        self._now: Counter[str] = Counter()
        self._most: Counter[str] = Counter()
        self._most_of_all = 0
        self._let_go = asyncio.Event()

    def application(self) -> web.Application:
        application = web.Application()
        application.router.add_post("/hook", self._hook)
        application.router.add_get("/arrivals", self._tell_arrivals)
        application.router.add_get("/most", self._tell_most)
        application.router.add_post("/let-go", self._stop_holding)
        return application

    async def _hook(self, request: web.Request) -> web.Response:
        came = msgspec.json.decode(await request.read(), type=_Envelope).data
        wanted = request.query
        status = _status(came.id, came.attempt, int(wanted.get("fails", 0)), int(wanted.get("hangs", 0)))
        at = time.time_ns() // 1_000_000
        self._arrivals.append(Arrival(came.id, came.attempt, came.owner, came.key, came.nominal_at, at, status))
        self._now[came.owner] += 1
        self._most[came.owner] = max(self._most[came.owner], self._now[came.owner])
        self._most_of_all = max(self._most_of_all, self._now.total())
        try:
            if status == HUNG:
                await asyncio.sleep(HANG_S)
                return web.Response(status=503)
            if "held" in wanted:
                await self._let_go.wait()
            await asyncio.sleep(int(wanted.get("takes_ms", 0)) / 1000)
            return web.Response(status=status)
        finally:
            self._now[came.owner] -= 1

    async def _tell_arrivals(self, request: web.Request) -> web.Response:
        return web.Response(body=msgspec.json.encode(self._arrivals[int(request.query["after"]) :]))

    async def _tell_most(self, request: web.Request) -> web.Response:
        return web.Response(body=msgspec.json.encode(Most(self._most_of_all, dict(self._most))))

    async def _stop_holding(self, request: web.Request) -> web.Response:
        self._let_go.set()
        return web.Response()


def _status(id: str, attempt: int, fails: int, hangs: int) -> int:
    """`fails` and `hangs` are percentages."""
    dice = int.from_bytes(hashlib.blake2b(f"{id} {attempt}".encode(), digest_size=8).digest()) % 100
    if dice < hangs:
        return HUNG
    return 500 if dice < hangs + fails else 200


class Sink:
    """The sink's process, and what it tells. Ended with the `async with`."""

    def __init__(self) -> None:
        self._process: Process | None = None
        self._known: list[Arrival] = []

    async def __aenter__(self) -> Self:
        self._process = await start("-m", "under_fire.sink")
        assert self._process.stdout is not None
        port = int(await asyncio.wait_for(self._process.stdout.readline(), TIMEOUT_S))
        self._address = f"http://127.0.0.1:{port}"
        self._session = aiohttp.ClientSession(self._address)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._session.close()
        assert self._process is not None
        await end(self._process)

    def hook(self, **wanted: int) -> str:
        """A URL to deliver to: `fails` and `hangs` in percent, `takes_ms`, and `held` until all are let go."""
        return f"{self._address}/hook?{urlencode(wanted)}"

    async def arrivals(self) -> list[Arrival]:
        """All of them, in order."""
        async with self._session.get("/arrivals", params={"after": len(self._known)}) as answer:
            self._known += msgspec.json.decode(await answer.read(), type=list[Arrival])
        return self._known

    async def most(self) -> Most:
        async with self._session.get("/most") as answer:
            return msgspec.json.decode(await answer.read(), type=Most)

    async def let_go(self) -> None:
        """Hold nothing any more."""
        async with self._session.post("/let-go"):
            pass


async def _serve() -> None:
    runner = web.AppRunner(_Server().application(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1_000).start()
    print(runner.addresses[0][1], flush=True)  # noqa: T201  # to the parent process
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve())
