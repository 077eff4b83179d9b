"""Serves the web application, and runs a worker, in one process, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import socket

from slothpost.app import Slothpost
from slothpost.web.app import create_app
from tickler import RunOptions
from tickler.web import serve as serve_app

DRAIN_S = 60  # a post that is being published may end: X would leave it unconfirmed otherwise


async def serve(slothpost: Slothpost, listening: socket.socket, *, works: bool) -> None:
    """Answer requests until a signal, then let requests and attempts in progress end.

    A worker that fails ends this with its error: without it the pages would answer while nothing is drafted or published.
    """
    working = slothpost.t.running(RunOptions(drain=DRAIN_S)) if works else None
    await serve_app(create_app(slothpost), listening, beside=working)
