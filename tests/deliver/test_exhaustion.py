"""A process that has run out of file descriptors, memory or threads: the target is not at fault, and no fire is lost."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
import sys
import threading
from pathlib import Path

import pytest
from aiohttp import ClientConnectorError, web
from aiohttp.client_reqrep import ConnectionKey

from tickler import PythonTarget, StoreUnavailable
from tickler.deliver.dns_resolver import SystemResolver
from tickler.deliver.exhaustion import NoThread, exhaustion
from tickler.deliver.targets.python import Handlers

from .test_python_target import delivery

TIMEOUT_S = 60


def connecting(number: int) -> ClientConnectorError:
    key = ConnectionKey("example.org", 443, True, True, None, None, None)
    return ClientConnectorError(key, OSError(number, os.strerror(number)))


def caused(by: BaseException) -> BaseException:
    error = StoreUnavailable("the store is away")
    error.__cause__ = by
    return error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (connecting(errno.EMFILE), "too many open files"),
        (connecting(errno.ENFILE), "too many open files in system"),
        (connecting(errno.ENOBUFS), "no buffer space available"),
        (connecting(errno.ENOMEM), "cannot allocate memory"),
        (caused(OSError(errno.EMFILE, "x")), "too many open files"),
        (MemoryError(), "out of memory"),
        (NoThread(), "cannot start a thread"),
        (connecting(errno.ECONNREFUSED), None),
        (socket.gaierror(socket.EAI_NONAME, "x"), None),
        (TimeoutError(), None),
    ],
    ids=repr,
)
def test_what_has_run_out_is_told_from_what_a_target_does(error: BaseException, said: str | None) -> None:
    assert exhaustion(error) == said


def test_errors_that_go_in_circles_are_looked_at_to_no_end() -> None:
    first, second = ValueError(), ValueError()
    first.__cause__, second.__cause__ = second, first
    assert exhaustion(first) is None


async def test_a_lookup_that_fails_for_want_of_sockets_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def lookup(*_: object, **__: object) -> list[object]:
        raise socket.gaierror(socket.EAI_AGAIN, "temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    resolver = SystemResolver()
    with pytest.raises(socket.gaierror):
        await resolver.resolve("localhost", 443)

    def no_socket(*_: object) -> socket.socket:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as context:
        context.setattr("tickler.deliver.exhaustion.socket.socket", no_socket)
        with pytest.raises(OSError, match="Too many open files") as raised:
            await resolver.resolve("localhost", 443)
    assert raised.value.errno == errno.EMFILE


async def test_a_plain_handler_for_which_there_is_no_thread_has_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    handlers = Handlers()
    handlers.register("plain", lambda delivery: None)
    with monkeypatch.context() as context:
        context.setattr(threading.Thread, "start", start)
        outcome = await handlers.deliver(delivery("plain"), PythonTarget("plain"))
    assert (outcome.verdict, outcome.obstacle) == ("release", "exhausted")


async def test_a_worker_without_file_descriptors_loses_nothing_and_delivers_when_it_has_some() -> None:
    """With real ones: the worker is a process of its own, with a limit of its own."""
    number, arrived = 8, 0

    async def hook(request: web.Request) -> web.Response:
        nonlocal arrived
        arrived += 1
        return web.Response(status=204)

    app = web.Application()
    app.router.add_post("/hook", hook)
    receiver = web.AppRunner(app)
    await receiver.setup()
    try:
        await web.TCPSite(receiver, "127.0.0.1", 0).start()
        port = receiver.addresses[0][1]
        program = Path(__file__).parent / "exhausted_worker.py"
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(program), str(port), str(number), stdout=asyncio.subprocess.PIPE
        )
        async with asyncio.timeout(TIMEOUT_S):
            said, _ = await process.communicate()
    finally:
        await receiver.cleanup()
    result = json.loads(said)
    during = result["during"]
    assert (during["happened"], during["details"], during["dead"]) == ([], [], 0)
    assert during["released"] >= 2 * number
    assert result["after"] == {"happened": ["delivered 1 204"] * 4 * number, "details": [], "released": 0, "dead": 0}
    assert arrived == 4 * number
