"""Serves the web application, and runs a worker, in one process, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext

import uvicorn

from pricebook.app import Pricebook
from pricebook.app.handlers import begin_sweeps
from pricebook.errors import InvalidField
from pricebook.web.app import create_app
from tickler import RunOptions

DRAIN_S = 30  # what is being settled, staged or imported may end; another process would go on with it otherwise
ANSWER_S = 5  # for requests in progress
SAME_SIGNAL_S = 0.3  # timeout(1) and other wrappers send the same signal twice
STOPPED_TWICE = 130  # what a shell reports for Ctrl-C
QUEUED_CONNECTIONS = 2_048

log = logging.getLogger("pricebook")


async def serve(book: Pricebook, listening: socket.socket, *, works: bool) -> None:
    """Answer requests until a signal, then let requests and attempts in progress end.

    A worker that fails ends this with its error: without it prices would still change in time, and nobody would be told.
    """
    server = _Server(book)
    with _stopping(server):
        async with working(book) if works else nullcontext():
            await server.serve([listening])
    log.info("stopped")


@asynccontextmanager
async def working(book: Pricebook) -> AsyncIterator[None]:
    """Deliver what is due, and make schedules of what is written, while the block runs."""
    await begin_sweeps(book)
    async with book.settling.running(), book.t.running(RunOptions(drain=DRAIN_S)):
        yield


def listen(host: str, port: int) -> socket.socket:
    """Take the address before anything else is opened, so that a second process says why it cannot start."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio sets TCP_NODELAY if this says TCP
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host.strip("[]"), port))
    except OSError as error:
        listening.close()
        reason = f"cannot listen on {host}:{port} ({error.strerror}): choose another with --port or PRICEBOOK_PORT"
        raise InvalidField("port", reason) from None
    listening.listen(QUEUED_CONNECTIONS)
    listening.setblocking(False)
    return listening


class _Server(uvicorn.Server):
    """uvicorn, which would end the process by the signal before the worker has drained."""

    def __init__(self, book: Pricebook) -> None:
        super().__init__(
            uvicorn.Config(
                create_app(book).asgi,
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,  # `tickler.web` reads them, of the proxies in the settings
                backlog=QUEUED_CONNECTIONS,
                timeout_graceful_shutdown=ANSWER_S,
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextmanager
def _stopping(server: uvicorn.Server) -> Iterator[None]:
    """Stop at the first signal, and exit at once at the second."""
    loop = asyncio.get_running_loop()
    first_at: float | None = None

    def stop() -> None:
        nonlocal first_at
        if first_at is None:
            first_at = loop.time()
            server.should_exit = True
            log.info("stopping: what is being worked on has up to %d s; signal again to exit at once", DRAIN_S)
        elif loop.time() - first_at > SAME_SIGNAL_S:
            log.warning("exiting at once: another process will go on with what was being worked on")
            os._exit(STOPPED_TWICE)

    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
