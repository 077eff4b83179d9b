"""Connection limits: many idle connections do not lock others out, since idle ones are closed for new ones."""

from __future__ import annotations

import asyncio
import os
import re
import resource
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest

from server.served import serving
from server.test_hostile import first
from tickler import Tickler
from tickler.server.app import make_app
from tickler.server.middleware.connection_limit import ConnectionLimit, ConnectionLimits, connection_limits
from tickler.server.middleware.uvicorn_protocol import QUEUED_CONNECTIONS, ServiceServer, uvicorn_config
from tickler.server.settings import ServerSettings
from tickler.web.addresses import caller_address

HANG_S = 20


class Connection:
    def __init__(self, name: str) -> None:
        self.name = name
        self.is_open = True

    def evict(self) -> None:
        self.is_open = False


def limit_of(total: int, per_address: int = 100) -> ConnectionLimit:
    return ConnectionLimit(ConnectionLimits(total, per_address, burst=1))


def test_what_never_asked_is_closed_first_and_the_oldest_of_it() -> None:
    limit, (asked, first, second, third) = limit_of(3), [Connection(name) for name in ("asked", "first", "second", "third")]
    for each in (asked, first, second):
        assert limit.add(each, None)
    limit.answering(asked)
    limit.idle(asked)
    assert limit.add(third, None)
    assert [each.is_open for each in (asked, first, second, third)] == [True, False, True, True]
    for _ in range(2):
        limit.add(Connection("more"), None)
    assert [each.is_open for each in (asked, second, third)] == [True, False, False]


def test_what_has_asked_is_closed_when_all_others_are_answered_right_now() -> None:
    limit, (idle, busy, newest) = limit_of(2), [Connection(name) for name in ("idle", "busy", "newest")]
    for each in (idle, busy):
        limit.add(each, None)
        limit.answering(each)
    limit.idle(idle)
    assert limit.add(newest, None)
    assert (idle.is_open, busy.is_open) == (False, True)


def test_nothing_that_is_being_answered_is_closed() -> None:
    limit, busy = limit_of(1), Connection("busy")
    limit.add(busy, None)
    limit.answering(busy)
    assert not limit.add(Connection("newest"), None)
    assert busy.is_open
    limit.remove(busy)
    assert limit.add(Connection("next"), None)


def test_one_address_closes_its_own_and_not_those_of_others() -> None:
    limit, theirs, ours = limit_of(10, per_address=1), Connection("theirs"), [Connection(str(number)) for number in range(5)]
    assert limit.add(theirs, "192.0.2.1")
    for each in ours:
        assert limit.add(each, "192.0.2.2")
    assert [each.is_open for each in (theirs, *ours)] == [True, False, False, False, False, True]


def test_the_limit_leaves_half_of_the_files_to_all_else() -> None:
    for files in (64, 256, 1_024, 65_536):
        limits = connection_limits(files)
        assert limits.total <= files // 2
        assert limits.total + limits.burst <= files * 3 // 4
        assert limits.requests < limits.total
    assert connection_limits(None).total == connection_limits(1_048_576).total == 2_048
    assert connection_limits(1_024, total=300, per_address=7)[:2] == (300, 7)


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ("no address" * 100, ("no address" * 100)[:64]),
    ],
)
def test_a_machine_with_many_ipv6_addresses_is_one_caller(host: str, counted: str) -> None:
    assert caller_address(host) == counted


@asynccontextmanager
async def idle_connections(port: int, number: int) -> AsyncIterator[list[asyncio.StreamReader]]:
    """Open connections that send nothing."""
    async with AsyncExitStack() as stack:
        readers = []
        for _ in range(number):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            stack.callback(writer.close)
            readers.append(reader)
        yield readers


async def answers(port: int, path: str) -> bool:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(HANG_S):
            writer.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
            return (await reader.read()).startswith(b"HTTP/1.1 200")
    finally:
        writer.close()


async def are_closed(readers: list[asyncio.StreamReader]) -> None:
    async with asyncio.timeout(HANG_S):
        for reader in readers:
            with suppress(ConnectionResetError):
                assert await reader.read() == b""


async def test_idle_connections_evict_to_whoever_asks(t: Tickler) -> None:
    async with serving(t, ServerSettings(max_connections=5)) as api, idle_connections(api.port, 8) as idle:
        await are_closed(idle[:3])
        assert await answers(api.port, "/health/live")
        await are_closed(idle[3:4])
        assert not any(reader.at_eof() for reader in idle[4:])


async def test_one_address_has_so_many_connections_unless_it_is_a_proxy(t: Tickler) -> None:
    settings = ServerSettings(max_connections=50, max_address_connections=2, proxies=())
    async with serving(t, settings) as api, idle_connections(api.port, 5) as idle:
        await are_closed(idle[:3])
        assert not any(reader.at_eof() for reader in idle[3:])
    settings = ServerSettings(max_connections=50, max_address_connections=2, proxies=("127.0.0.0/8",))
    async with serving(t, settings) as api, idle_connections(api.port, 5) as idle:
        assert await answers(api.port, "/health/live")
        assert not any(reader.at_eof() for reader in idle)


async def test_what_is_answered_leaves_room_for_probes(t: Tickler) -> None:
    async with serving(t, ServerSettings(max_connections=2)) as api, api.session.get(api.url("/v1/live")):
        assert (await api("GET", "/v1/stats", check=False)).status == 503
        for path in ("/health/live", "/health/ready"):
            assert await answers(api.port, path)


async def test_the_loop_accepts_few_at_a_time_and_the_system_holds_many(t: Tickler) -> None:
    asked_for: list[int] = []

    class Listening(socket.socket):
        def listen(self, backlog: int = 0, /) -> None:
            asked_for.append(backlog)
            super().listen(backlog)

    settings = ServerSettings(port=0)
    config = uvicorn_config(make_app(t, settings), settings)
    config.load()
    server = ServiceServer(config)
    server.lifespan = config.lifespan_class(config)
    with Listening(socket.AF_INET, socket.SOCK_STREAM) as listening:
        listening.bind(("127.0.0.1", 0))
        await server.startup([listening])
        await server.shutdown([listening])
    assert asked_for == [config.backlog, QUEUED_CONNECTIONS]
    assert config.backlog <= 256 < QUEUED_CONNECTIONS


async def test_a_connection_is_refused_while_all_others_are_answered(t: Tickler) -> None:
    async with serving(t, ServerSettings(max_connections=1)) as api, api.session.get(api.url("/v1/live")):
        status, problem = first(await api.bytes_for(b""))
        assert (status, problem["detail"]) == (503, "too many connections: close some, or try again in a moment")


WITH_FILES = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({0}, {0})); from tickler.cli import main; main()"


async def test_a_service_with_few_files_answers_while_more_idle_connections_knock(soak: bool) -> None:
    files = 1_024 if soak else 128
    if soak:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    command = [sys.executable, "-c", WITH_FILES.format(files), "serve", "--store", "memory://", "--port", "0", "--no-worker"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TICKLER_")}
    service = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE, env=environ)
    try:
        assert service.stderr is not None
        async with asyncio.timeout(HANG_S):
            while (found := re.search(rb"http://127\.0\.0\.1:(\d+)/", await service.stderr.readline())) is None:
                pass
        port = int(found[1])
        assert await answers(port, "/health/live")
        loop = asyncio.get_running_loop()
        knocking = [socket.socket() for _ in range(files * 11 // 10)]
        try:
            for each in knocking:
                each.setblocking(False)
            async with asyncio.timeout(HANG_S):
                await asyncio.gather(*(loop.sock_connect(each, ("127.0.0.1", port)) for each in knocking))
            for path in ("/health/live", "/health/ready"):
                assert await answers(port, path)
        finally:
            for each in knocking:
                each.close()
        assert await answers(port, "/health/ready")
    finally:
        service.terminate()
        _, said = await service.communicate()
    assert b"Too many open files" not in said
