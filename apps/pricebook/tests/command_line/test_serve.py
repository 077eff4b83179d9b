"""`pricebook serve` as a process: it prints a link, answers, and ends by a signal."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import aiohttp
import pytest

from pricebook.app import Settings
from pricebook.cli.receiver_hints import receiver_hints

HANG_S = 30

Run = Callable[..., str]


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as found:
        return int(found.getsockname()[1])


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    port = free_port()
    command = [sys.executable, "-m", "pricebook", "serve", "--port", str(port), *options]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process, port
        finally:
            process.kill()


@pytest.fixture
def served(folder: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    with serving(folder) as found:
        yield found


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


async def test_the_demo_prints_a_link_and_what_to_look_at(folder: Path, soak: bool) -> None:
    if not soak:
        pytest.skip("it makes up days of changes: make soak")
    with serving(folder, "--demo") as (process, port):
        said = await asyncio.to_thread(said_until, process, "INFO working as")
        assert "making up 200 stores" in said
        assert "events that a receiver gets" in said
        assert f"http://127.0.0.1:{port}/sign-in/" in said
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANG_S) == 0


def test_the_demo_needs_a_file(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRICEBOOK_STORE", "memory://")
    said = run("serve", "--demo", "--port", str(free_port()), code=1)
    assert said == ("pricebook: PRICEBOOK_STORE: the demo is kept in a file: use one such as sqlite:///pricebook-demo.db\n")


def test_an_address_that_is_taken_is_one_line(run: Run) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        said = run("serve", "--port", str(port), code=1)
    assert said.startswith(f"pricebook: port: cannot listen on 127.0.0.1:{port} (")


@pytest.mark.parametrize(
    ("address", "allowed", "needed"),
    [
        ("http://localhost:9000/events", (), "127.0.0.0/8"),
        ("legacy:http://127.0.0.1:9000/", ("10.0.0.0/8",), "127.0.0.0/8"),
        ("https://10.1.2.3/", (), "10.1.2.3"),
        ("https://[fd00::1]/", (), "fd00::1"),
        ("https://10.1.2.3/", ("10.0.0.0/8",), None),
        ("https://93.184.216.34/", (), None),
        ("https://tills.example.com/", (), None),
    ],
)
def test_a_receiver_that_would_get_no_events_is_named_at_the_start(
    address: str, allowed: tuple[str, ...], needed: str | None
) -> None:
    *warnings, hint = receiver_hints(Settings(receivers=(address,), allow_networks=allowed))
    url = address.removeprefix("legacy:")
    said = f"warning: {url} gets no events, since its address is not public: add {needed} to PRICEBOOK_ALLOW_NETWORKS"
    assert warnings == ([] if needed is None else [said])
    assert hint.startswith("`pricebook receiver secret ADDRESS` makes the secret")


def test_without_receivers_there_is_nothing_to_say_of_them() -> None:
    assert receiver_hints(Settings()) == []


async def test_the_start_warns_of_receivers_and_says_nothing_of_other_targets(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRICEBOOK_RECEIVERS", "http://localhost:9/")
    with serving(folder) as (process, _):
        said = await asyncio.to_thread(said_until, process, "INFO working as")
    assert "warning: http://localhost:9/ gets no events" in said
    assert "does not deliver to" not in said
