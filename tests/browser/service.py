"""The service and workers as separate processes, called by HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import aiohttp

TIMEOUT_S = 30.0
ADDRESS = re.compile(r"open  (http://\S+:\d+)/")
TROUBLE = re.compile(r"^.*(?: ERROR | CRITICAL |Traceback).*$", re.MULTILINE)
FAILING = {"type": "python", "handler": "failing"}
DIGEST = {"when": "0 9 * * mon-fri", "tz": "Europe/Berlin", "target": {"type": "python", "handler": "echo"}}

CROWD = 1_100  # more than a page counts for one owner

T = TypeVar("T")


class Service:
    """A running service, and its API."""

    def __init__(self, url: str, store: str, session: aiohttp.ClientSession) -> None:
        self.url = url
        self.store = store
        self._session = session

    async def call(self, method: str, path: str, body: object = None, **headers: str) -> Any:
        """Return the answer of the API, which must not be an error."""
        async with self._session.request(method, f"{self.url}/v1{path}", headers=headers, json=body) as answer:
            assert answer.ok, (method, path, answer.status, await answer.text())
            return None if answer.status == 204 else await answer.json()

    async def put(self, owner: str, key: str, **fields: object) -> Any:
        """Put a schedule that fires on weekdays at nine; `fields` override that."""
        return await self.call("PUT", path(owner, key), {**DIGEST, **fields})

    async def put_many(self, owner: str, keys: Iterable[str]) -> None:
        lines = [json.dumps({**DIGEST, "owner": owner, "key": key}) for key in keys]
        async with self._session.post(f"{self.url}/v1/schedules:import", data="\n".join(lines)) as answer:
            assert b"error" not in await answer.read()
            assert answer.ok

    async def get(self, owner: str, key: str) -> Any:
        return await self.call("GET", path(owner, key))

    async def history(self, owner: str, key: str) -> list[str]:
        """Return what happened to the fires of a schedule, the latest first."""
        return [entry["happened"] for entry in (await self.call("GET", f"{path(owner, key)}/fires"))["items"]]

    async def dead(self, owner: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.call("GET", f"/fires?state=dead&owner={quote(owner)}"))["items"]
        return found

    async def kill_fires(self, owner: str, key: str, number: int = 1) -> None:
        """Put a schedule whose handler fails, and wait until so many of its fires are dead."""
        await self.put(owner, key, when="0 0 1 1 *", target=FAILING, policy={"attempts": 1})
        await asyncio.gather(*(self.call("POST", f"{path(owner, key)}/trigger") for _ in range(number)))
        await until("the fires are dead", lambda: self._has_dead(owner, key, number))

    async def _has_dead(self, owner: str, key: str, number: int) -> bool:
        return len([fire for fire in await self.dead(owner) if fire["key"] == key]) == number


def path(owner: str, key: str) -> str:
    return f"/schedules/{quote(owner, safe='')}/{quote(key, safe='')}"


async def until(what: str, found: Callable[[], Awaitable[T]]) -> T:
    """Poll until `found` returns something true."""
    ends_at = time.monotonic() + TIMEOUT_S
    while not (seen := await found()):
        assert time.monotonic() < ends_at, f"not within {TIMEOUT_S:g} s: {what}"
        await asyncio.sleep(0.1)
    return seen


@asynccontextmanager
async def serving(store: str, folder: Path, *arguments: str, **environ: str) -> AsyncIterator[Service]:
    """Run `tickler serve` on a free port. It must exit with 0 and log no errors."""
    with _running("serve", store, folder, "--port", "0", *arguments, **environ) as process:

        async def address() -> str | None:
            assert process.popen.poll() is None, process.log.read_text()
            found = ADDRESS.search(process.log.read_text())
            return found and found[1]

        url = await until("the service listens", address)
        assert url is not None
        async with aiohttp.ClientSession() as session:
            yield Service(url, store, session)


@contextmanager
def working(store: str, folder: Path) -> Iterator[None]:
    """Run `tickler work` beside a service that delivers nothing itself."""
    with _running("work", store, folder):
        yield


class _Process(NamedTuple):
    popen: subprocess.Popen[bytes]
    log: Path


@contextmanager
def _running(command: str, store: str, folder: Path, *arguments: str, **environ: str) -> Iterator[_Process]:
    log = folder / f"{command}.log"
    paths = os.pathsep.join(each for each in sys.path if each)
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [sys.executable, "-m", "tickler", command, "--store", store, "--setup", "browser.handlers:failing", *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": paths, "PYTHONUNBUFFERED": "1", **environ},
            stdout=output,
            stderr=output,
        ) as popen,
    ):
        try:
            yield _Process(popen, log)
            popen.send_signal(signal.SIGTERM)
            assert popen.wait(TIMEOUT_S) == 0, log.read_text()
            assert TROUBLE.findall(log.read_text()) == []
        finally:
            popen.kill()
