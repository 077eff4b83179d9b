"""`tickler work --metrics`: what each process counts, for the scraper on this machine."""

from __future__ import annotations

import asyncio
import signal
import socket
from pathlib import Path

import pytest
from under_fire.processes import end, ended, start, until

from tickler import InvalidInput, Tickler, connect
from tickler.cli.metrics_server import serving_metrics

from .conftest import Here
from .preloaded import run_tickler
from .test_tick import HANDLERS, put_due


def free_ports(number: int) -> int:
    """The first of so many in a row."""
    for first in range(21_000, 60_000, number):
        try:
            taken = [socket.create_server(("127.0.0.1", first + n)) for n in range(number)]
        except OSError:
            continue
        for each in taken:
            each.close()
        return first
    raise AssertionError("no port is free")


async def asked(port: int, request: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.encode())
    answer = await asyncio.wait_for(reader.read(), 30)
    writer.close()
    return answer.decode()


async def claimed(port: int) -> float:
    answer = await asked(port, "GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
    head, _, body = answer.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200 OK\r\ncontent-type: text/plain; version=")
    assert f"content-length: {len(body)}" in head
    (line,) = (line for line in body.splitlines() if line.startswith("tickler_claims_total "))
    return float(line.split()[1])


async def test_every_process_serves_what_it_counted_at_a_port_of_its_own(
    tmp_path: Path, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "our_handlers.py").write_text(HANDLERS)
    monkeypatch.chdir(tmp_path)
    await put_due(sqlite_url, *["fine"] * 20)
    first = free_ports(2)
    options = ("--store", sqlite_url, "--setup", "our_handlers:register", "--metrics", str(first), "--processes", "2")
    workers = await start("-m", "tickler", "work", *options, piped=False)

    async def all_claimed() -> bool:
        try:
            return await claimed(first) + await claimed(first + 1) == 20
        except OSError:
            return False

    try:
        await until("both answer, and all was claimed by one or the other", all_claimed)
        workers.send_signal(signal.SIGTERM)
        assert await ended(workers) == 0
    finally:
        await end(workers)


async def test_what_is_asked_otherwise_is_told_what_there_is_and_what_is_no_question_is_dropped() -> None:
    port = free_ports(1)
    async with connect("memory://") as t, serving_metrics(t, port):
        for request in ("POST /metrics HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "\r\n\r\n"):
            answer = await asked(port, request)
            assert answer.startswith("HTTP/1.1 404 Not Found\r\n")
            assert answer.endswith("\r\n\r\nnot found: use GET /metrics\n")
        assert (await asked(port, "GET /metrics?x=1 HTTP/1.0\r\n\r\n")).startswith("HTTP/1.1 200 OK")
        assert await asked(port, "GET /metrics HTTP/1.1\r\nx: " + "y" * 40_000 + "\r\n\r\n") == ""
        assert await claimed(port) == 0, "and others are still answered"


async def test_a_port_that_is_taken_is_named() -> None:
    async with connect("memory://") as t:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(InvalidInput, match=f"--metrics: cannot listen on 127.0.0.1:{port} .*: choose another port"):
                async with serving_metrics(t, port):
                    pass


async def test_metrics_are_served_where_they_are_wanted_and_to_this_machine_alone_otherwise() -> None:
    port = free_ports(1)
    async with connect("memory://") as t, serving_metrics(t, port, "127.0.0.2"):
        with pytest.raises(OSError, match=r"refused|failed"):
            await asyncio.open_connection("127.0.0.1", port)
        reader, writer = await asyncio.open_connection("127.0.0.2", port)
        writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert (await asyncio.wait_for(reader.read(), 30)).startswith(b"HTTP/1.1 200 OK")
        writer.close()


def test_the_address_comes_by_an_option_or_the_environment(here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(tickler: Tickler, port: int, host: str) -> None:
        raise InvalidInput(f"{host} and {port}")

    monkeypatch.setattr("tickler.cli.commands.work.serving_metrics", refuse)
    work = ("work", "--store", f"sqlite:///{tmp_path}/t.db?create=1", "--metrics", "21000")
    assert here(*work).err.endswith("tickler: 127.0.0.1 and 21000\n")
    monkeypatch.setenv("TICKLER_METRICS_HOST", "10.0.0.1")
    assert here(*work).err.endswith("tickler: 10.0.0.1 and 21000\n")
    assert here(*work, "--metrics-host", "::").err.endswith("tickler: :: and 21000\n")


def test_a_port_that_cannot_be_is_named_and_nothing_is_touched(tmp_path: Path) -> None:
    done = run_tickler("work", "--store", "sqlite:///t.db", "--metrics", "0", folder=tmp_path, COLUMNS="200")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Invalid value for '--metrics'" in done.stderr
    assert list(tmp_path.iterdir()) == []
