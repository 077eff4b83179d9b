"""An HTTP sink in its own process: answers 200 at once, and records arrivals.

`python bench/sink.py` prints its port, and answers each line on stdin with the arrivals since the last one: a JSON list of
`[fire id, nominal instant, arrival in ms]`.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import cast

from tickler.process.event_loop import loop_factory

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
LENGTH = re.compile(rb"\n[Cc]ontent-[Ll]ength: *(\d+)")  # twice as fast as with IGNORECASE
ID = re.compile(rb"webhook-id: *([^\r\n]+)", re.IGNORECASE)
NOMINAL = re.compile(rb"tickler-nominal-at: *([^\r\n]+)", re.IGNORECASE)


class Sink(asyncio.Protocol):
    """The part of HTTP/1.1 that a client with keep-alive needs.

    It shares the processor with what is measured, so it reads of a request only where it ends; the rest is read when asked for.
    """

    arrived: list[tuple[bytes, float]] = []  # noqa: RUF012  # of all connections

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is of no such class
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end]
            length = LENGTH.search(head)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self._buffer) < whole:
                return
            self._buffer = self._buffer[whole:]
            self.arrived.append((head, time.time() * 1000))
            self._transport.write(ANSWER)


def read_arrival(head: bytes, at: float) -> tuple[str, str, float]:
    id, nominal = ID.search(head), NOMINAL.search(head)
    return id[1].decode() if id else "", nominal[1].decode() if nominal else "", at


async def serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Sink, "127.0.0.1", 0, backlog=1024)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.readline():
        arrived, Sink.arrived[:] = list(Sink.arrived), []
        sys.stdout.write(json.dumps([read_arrival(*each) for each in arrived]) + "\n")
        sys.stdout.flush()


class SinkProcess:
    """Starts the sink as a context manager."""

    def __enter__(self) -> SinkProcess:
        self._process = subprocess.Popen([sys.executable, str(Path(__file__))], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}/hook"
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def arrived(self) -> list[tuple[str, float, float]]:
        """Return fire id, nominal instant and arrival, both in ms, of all fires since the last call."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        return [(id, _ms(nominal), at) for id, nominal, at in json.loads(self._process.stdout.readline())]


def _ms(nominal: str) -> float:
    return datetime.fromisoformat(nominal).timestamp() * 1000 if nominal else 0.0


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loop_factory({})) as runner:
        runner.run(serve())
