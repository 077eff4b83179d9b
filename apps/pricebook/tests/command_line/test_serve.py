"""`pricebook serve` as a process: it prints a link, answers, and ends by a signal."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import aiohttp
import pytest

HANG_S = 30

Run = Callable[..., str]


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as found:
        return int(found.getsockname()[1])


@pytest.fixture
def served(folder: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    port = free_port()
    command = [sys.executable, "-m", "pricebook", "serve", "--port", str(port)]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process, port
        finally:
            process.kill()


def said_until(process: subprocess.Popen[str], part: str) -> str:
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if part in line:
            return said
    raise AssertionError(said)


async def test_the_first_run_prints_a_link_for_the_operator_and_ends_well(served: tuple[subprocess.Popen[str], int]) -> None:
    process, port = served
    said = await asyncio.to_thread(said_until, process, "this link signs in once")
    (_,) = re.findall(rf"open  (http://127.0.0.1:{port}/sign-in/[\w-]{{43}})", said)
    async with aiohttp.ClientSession() as client:
        for path, text in (("/health/live", "live"), ("/health/ready", "ready")):
            async with client.get(f"http://127.0.0.1:{port}{path}") as answer:
                assert (answer.status, await answer.text()) == (200, text)
    process.send_signal(signal.SIGTERM)
    rest = await asyncio.to_thread(said_until, process, "stopped")
    assert "stopping" in rest
    assert process.wait(HANG_S) == 0


def test_an_address_that_is_taken_is_one_line(run: Run) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        said = run("serve", "--port", str(port), code=1)
    assert said.startswith(f"pricebook: port: cannot listen on 127.0.0.1:{port} (")
