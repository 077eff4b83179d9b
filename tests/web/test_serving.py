"""Serving an application beside a worker: the program of the guide, and what ends it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from receivers.programs import write_program

from tickler import InvalidInput
from tickler.web import listen, serve

HANG_S = 30


async def app(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def test_the_program_of_the_guide_answers_delivers_and_ends_at_a_signal(tmp_path: Path) -> None:
    program = write_program("applications.md", "reminders.py", tmp_path)
    with closing(listen("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environ = {**os.environ, "PORT": str(port), "REMINDERS_STORE": f"sqlite:///{tmp_path}/reminders.db"}
    process = await asyncio.create_subprocess_exec(sys.executable, str(program), env=environ, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(HANG_S):
            await _post(f"http://127.0.0.1:{port}/reminders/ada")
            assert await process.stdout.readline() == b"remind ada\n"
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _post(url: str) -> None:
    async with aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.post(url) as response:
                    assert response.status == 200
                    return
            except aiohttp.ClientConnectorError:  # it is not there yet
                await asyncio.sleep(0.05)


async def test_a_signal_lets_the_block_beside_the_server_end(unused_signal: None) -> None:
    ended: list[str] = []

    @asynccontextmanager
    async def beside() -> AsyncIterator[None]:
        signal.raise_signal(signal.SIGTERM)
        yield
        ended.append("drained")

    with closing(listen("127.0.0.1", 0)) as listening:
        async with asyncio.timeout(HANG_S):
            await serve(app, listening, beside=beside())
    assert ended == ["drained"]


@pytest.fixture
def unused_signal() -> None:
    """Tell that nothing else handles the signal, which would end the tests."""
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


async def test_what_fails_beside_the_server_is_raised() -> None:
    @asynccontextmanager
    async def beside() -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_fail())
            yield

    with closing(listen("127.0.0.1", 0)) as listening, pytest.raises(ExceptionGroup) as raised:
        async with asyncio.timeout(HANG_S):
            await serve(app, listening, beside=beside())
    assert raised.value.exceptions[0].args == ("a bug",)


async def _fail() -> None:
    raise RuntimeError("a bug")


def test_a_port_that_is_taken_is_named() -> None:
    with closing(listen("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(InvalidInput, match=f"port: cannot listen on 127.0.0.1:{port} .*: choose another port"):
            listen("127.0.0.1", port)


async def test_the_address_can_be_used_again_at_once() -> None:
    with closing(listen("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with closing(listen("127.0.0.1", port)) as again:
        assert again.getsockname()[1] == port
