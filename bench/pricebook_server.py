"""Servers for the benchmarks of pricebook, each a process of its own. It tells its port, and its processor time when asked.

`serve URL`: pricebook without a worker, as `pricebook serve` runs it. `bare FILE`: a bare ASGI application that answers the bytes
of a file. `work URL`: a worker without a server.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import uvicorn
from msgspec.structs import replace

from pricebook.app import Pricebook, Settings, open_pricebook
from pricebook.editions.timing import Timing
from pricebook.serving import serve, working
from pricebook.settling import Settling, SettlingOptions
from pricebook_store import SIZES, size
from tickler.process.event_loop import run
from tickler.process.gc_tuning import tune_gc


async def pricebook(url: str) -> None:
    listening = _listen()
    async with open_pricebook(Settings(store=url)) as book:
        _begin(listening.getsockname()[1])
        await serve(book, listening, works=False)


async def bare(path: str) -> None:
    """Answer as a program does that knows the answer: it reads the request, and sends a page."""
    page = Path(path).read_bytes()
    start = {
        "type": "http.response.start",
        "status": 200,
        "headers": [(b"content-type", b"application/json"), (b"content-length", str(len(page)).encode())],
    }
    body = {"type": "http.response.body", "body": page}

    async def app(scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
        while (await receive()).get("more_body"):
            pass
        await send(start)
        await send(body)

    listening = _listen()
    _begin(listening.getsockname()[1])
    config = uvicorn.Config(
        app, lifespan="off", log_config=None, log_level="warning", access_log=False, server_header=False, proxy_headers=False
    )
    await uvicorn.Server(config).serve([listening])


async def worker(url: str) -> None:
    async with open_pricebook(Settings(store=url)) as opened:
        book = opened if size() == SIZES["full"] else _quick(opened)
        async with working(book):
            _begin(0)
            await asyncio.get_running_loop().create_future()


def _quick(book: Pricebook) -> Pricebook:
    """Return a pricebook that does not let stores wait, where little is measured."""
    timing = Timing(buffer=timedelta(seconds=size().buffer_s))
    options = SettlingOptions(timing=timing, spread=timedelta(seconds=size().spread_s))
    return replace(book, settling=Settling(book.t, book.db, book.settling._stores, options))


def _listen() -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen(2_048)
    return listening


def _begin(port: int) -> None:
    """Tell the port, then answer each line on standard input with the processor seconds of this process until then."""
    tune_gc()
    _tell(port)

    def answer() -> None:
        for _ in sys.stdin:
            _tell(time.process_time())

    threading.Thread(target=answer, daemon=True).start()


def _tell(number: float) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


MODES = {"serve": pricebook, "bare": bare, "work": worker}

if __name__ == "__main__":
    run(lambda: MODES[sys.argv[1]](sys.argv[2]))
