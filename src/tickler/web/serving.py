"""Serves an ASGI application with uvicorn until a signal, beside a worker, and lets both finish what they have begun."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from tickler.distribution import install_command
from tickler.errors import InvalidInput
from tickler.process.gc_tuning import tuned_gc

if TYPE_CHECKING:
    import uvicorn

ANSWER_S = 5  # for requests in progress
SAME_SIGNAL_S = 0.3  # timeout(1) and other wrappers send the same signal twice
STOPPED_TWICE = 130  # what a shell reports for Ctrl-C
QUEUED_CONNECTIONS = 2_048

log = logging.getLogger("tickler.web")


async def serve(app: Any, listening: socket.socket, *, beside: AbstractAsyncContextManager[Any] | None = None) -> None:
    """Answer requests until SIGTERM or Ctrl-C, then let those in progress end, and the block `beside`.

    `beside` is for a worker: `t.running()`. If it fails, this ends with its error. A second signal exits at once. uvicorn itself
    would end the process by the signal before a worker has drained. Run it with `run`, which chooses a fast event loop.
    """
    server = _server(app)
    with _stopping(server), tuned_gc():
        async with beside or nullcontext():
            await server.serve([listening])
    log.info("stopped")


def listen(host: str, port: int) -> socket.socket:
    """Take an address before anything else is opened, so that a second process says why it cannot start."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio sets TCP_NODELAY if this says TCP
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host.strip("[]"), port))
    except OSError as error:
        listening.close()
        raise InvalidInput(f"port: cannot listen on {host}:{port} ({error.strerror}): choose another port") from None
    listening.listen(QUEUED_CONNECTIONS)
    listening.setblocking(False)
    return listening


def _server(app: Any) -> uvicorn.Server:
    """Import uvicorn here: applications that another server runs do without it."""
    try:
        import uvicorn
    except ImportError as error:
        raise InvalidInput(f"{error.name} is not installed: `{install_command('server')}`") from None
    config = uvicorn.Config(
        app,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # `Web` reads them, of the proxies in its settings
        backlog=QUEUED_CONNECTIONS,
        timeout_graceful_shutdown=ANSWER_S,
    )
    server = uvicorn.Server(config)
    server.capture_signals = nullcontext  # type: ignore[method-assign, assignment]  # `_stopping` handles them
    return server


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
            log.info("stopping: what has begun may end; signal again to exit at once")
        elif loop.time() - first_at > SAME_SIGNAL_S:
            log.warning("exiting at once: another process goes on with what had begun")
            os._exit(STOPPED_TWICE)

    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
