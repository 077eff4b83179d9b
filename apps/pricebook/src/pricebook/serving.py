"""Serves the web application, and runs a worker, in one process, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pricebook.app import Pricebook
from pricebook.app.handlers import begin_sweeps
from pricebook.web.app import create_app
from tickler import RunOptions
from tickler.web import serve as serve_app

DRAIN_S = 30  # what is being settled, staged or imported may end; another process would go on with it otherwise


async def serve(book: Pricebook, listening: socket.socket, *, works: bool) -> None:
    """Answer requests until a signal, then let requests and attempts in progress end.

    A worker that fails ends this with its error: without it prices would still change in time, and nobody would be told.
    """
    await serve_app(create_app(book).asgi, listening, beside=working(book) if works else None)


@asynccontextmanager
async def working(book: Pricebook) -> AsyncIterator[None]:
    """Deliver what is due, and make schedules of what is written, while the block runs."""
    await begin_sweeps(book)
    async with book.settling.running(), book.t.running(RunOptions(drain=DRAIN_S)):
        yield
