"""A server for `api.py` that prints its port: the service on a store, or one empty route."""

from __future__ import annotations

import socket
import sys
from typing import Any

import uvicorn
from litestar import Litestar, route
from litestar.enums import HttpMethod

from tickler import connect
from tickler.process.event_loop import run
from tickler.process.gc_tuning import tune_gc
from tickler.server.app import make_app
from tickler.server.middleware.uvicorn_protocol import uvicorn_config
from tickler.server.settings import ServerSettings


@route("/{path:path}", http_method=[HttpMethod.GET, HttpMethod.PUT], status_code=200)
async def nothing() -> None:
    """Do nothing."""


async def main(what: str) -> None:
    if what == "nothing":
        await serve(Litestar([nothing], openapi_config=None, logging_config=None))
        return
    async with connect(what) as tickler:
        await serve(make_app(tickler, ServerSettings()))


async def serve(app: Any) -> None:
    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    sys.stdout.write(f"http://127.0.0.1:{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    tune_gc()  # as `tickler serve` does
    await uvicorn.Server(uvicorn_config(app, ServerSettings())).serve([listening])


run(lambda: main(sys.argv[1]))
