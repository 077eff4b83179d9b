"""Serves the web application, and runs a worker, in one process, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import uvicorn

from slothpost.app import Slothpost
from slothpost.errors import InvalidField
from slothpost.web.app import create_app
from tickler import RunOptions

DRAIN_S = 60  # a post that is being published may end: X would leave it unconfirmed otherwise
ANSWER_S = 5  # for requests in progress
SAME_SIGNAL_S = 0.3  # timeout(1) and other wrappers send the same signal twice
STOPPED_TWICE = 130  # what a shell reports for Ctrl-C
QUEUED_CONNECTIONS = 2_048

log = logging.getLogger("slothpost")


async def serve(slothpost: Slothpost, listening: socket.socket, *, works: bool) -> None:
    """Answer requests until a signal, then let requests and attempts in progress end.

    A worker that fails ends this with its error: without it the pages would answer while nothing is drafted or published.
    """
    server = _Server(slothpost)
    with _stopping(server):
        async with slothpost.t.running(RunOptions(drain=DRAIN_S)) if works else nullcontext():
            await server.serve([listening])
    log.info("stopped")


def listen(host: str, port: int) -> socket.socket:
    """Take the address before anything else is opened, so that a second process says why it cannot start."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio sets TCP_NODELAY if this says TCP
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host.strip("[]"), port))
    except OSError as error:
        listening.close()
        reason = f"cannot listen on {host}:{port} ({error.strerror}): choose another with --port or SLOTHPOST_PORT"
        raise InvalidField("port", reason) from None
    listening.listen(QUEUED_CONNECTIONS)
    listening.setblocking(False)
    return listening


class _Server(uvicorn.Server):
    """uvicorn, which would end the process by the signal before the worker has drained."""

    def __init__(self, slothpost: Slothpost) -> None:
        super().__init__(
            uvicorn.Config(
                create_app(slothpost),
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
            log.info("stopping: what is being published has up to %d s; signal again to exit at once", DRAIN_S)
        elif loop.time() - first_at > SAME_SIGNAL_S:
            log.warning("exiting at once: a post that is being published may be left unconfirmed")
            os._exit(STOPPED_TWICE)

    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
