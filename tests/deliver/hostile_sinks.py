"""Loopback servers to deliver to, some of which misbehave, and a DNS server that changes its answers."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from aiohttp.abc import AbstractResolver, ResolveResult
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

Behaviour = Callable[[asyncio.StreamWriter], Awaitable[None]]
Converse = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

MEGABYTE = 1024 * 1024
ACCEPTING_STEPS = 5  # of the event loop, until a connection that was just accepted is known


class Received(msgspec.Struct, frozen=True):
    """A request as received."""

    line: str
    headers: dict[str, str]  # with names as they were sent
    body: bytes


class Sink:
    """Reads requests, and calls `behave` after each. Counts connections, and keeps the requests."""

    def __init__(
        self, behave: Behaviour, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None, reads: bool = True
    ) -> None:
        self.connections = 0
        self.received: list[Received] = []
        self.ended = asyncio.Event()  # set whenever a connection has ended
        self._behave = behave
        self._where = (host, port)
        self._tls = tls
        self._reads = reads
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        host, port = self._where
        self._server = await asyncio.start_server(self._serve, host, port, ssl=self._tls, backlog=1_000)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.close()
        for _ in range(ACCEPTING_STEPS):
            await asyncio.sleep(0)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def port(self) -> int:
        port = self._server.sockets[0].getsockname()[1]
        assert isinstance(port, int)
        return port

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://{self._where[0]}:{self.port}/hook"

    def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Begin a conversation. It is known as soon as the connection is, so that none outlives the sink."""
        self.connections += 1
        task = asyncio.ensure_future(self._converse(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(lambda _: self._end(task, writer))

    def _end(self, task: asyncio.Task[None], writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()  # also where the task was cancelled before its first step
        self._tasks.discard(task)
        self.ended.set()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            while True:
                if self._reads:
                    self.received.append(await _read_request(reader))
                await self._behave(writer)
                await writer.drain()
                if writer.is_closing():
                    break


async def _read_request(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *fields = head.removesuffix("\r\n\r\n").split("\r\n")
    headers = dict(field.split(": ", 1) for field in fields)
    lengths = [value for name, value in headers.items() if name.lower() == "content-length"]
    return Received(line, headers, await reader.readexactly(int(lengths[0])) if lengths else b"")


def answers(status: int, body: bytes = b"", **headers: str) -> Behaviour:
    """Answer as a good receiver does. Names of headers have `_` for `-`."""
    fields = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return sends(f"HTTP/1.1 {status} Whatever\r\ncontent-length: {len(body)}\r\n{fields}\r\n".encode() + body)


def sends(data: bytes) -> Behaviour:
    async def behave(writer: asyncio.StreamWriter) -> None:
        writer.write(data)

    return behave


def sends_much(first: bytes, megabytes: int, last: bytes) -> Behaviour:
    """Send in pieces, so that the whole is never in memory here."""

    async def behave(writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        for _ in range(16 * megabytes):
            writer.write(b"f" * (MEGABYTE // 16))
            await writer.drain()
        writer.write(last)

    return behave


def sends_and_closes(data: bytes) -> Behaviour:
    async def behave(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        writer.close()

    return behave


def sends_for_ever(first: bytes, again: bytes) -> Behaviour:
    """Send as fast as it is read, until the connection ends."""

    async def behave(writer: asyncio.StreamWriter) -> None:
        writer.write(first + again)
        while not writer.is_closing():
            writer.write(again)
            await writer.drain()
            await asyncio.sleep(0)

    return behave


def drips(first: bytes, every_s: float) -> Behaviour:
    """Send single bytes for a very long time."""

    async def behave(writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        while not writer.is_closing():
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(every_s)

    return behave


def answers_and_then(first: bytes, later: bytes, now: asyncio.Event) -> Behaviour:
    """Answer one request, and later send something unasked."""

    async def behave(writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        await now.wait()
        writer.write(later)

    return behave


def asks_for_new_keys(context: ssl.SSLContext, key_log: Path, times: int) -> Converse:
    """Speaks TLS 1.3, reads a request, and says so many times: I have a new key, and so must you. Then it is silent.

    No library sends that by itself, so these records are made by hand, with the key that the context writes to its log.
    """
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0  # so that ours are the first records after the handshake
    context.keylog_filename = str(key_log)

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_side=True)
        request = b""
        with suppress(ConnectionError):
            while b"\r\n\r\n" not in request:
                try:
                    request += tls.read(65_536)
                except ssl.SSLWantReadError:
                    writer.write(outgoing.read())
                    incoming.write(await reader.read(65_536))
            (line,) = [line for line in key_log.read_text().splitlines() if line.startswith("SERVER_TRAFFIC_SECRET_0 ")]
            secret = bytes.fromhex(line.split()[2])
            for _ in range(times):
                writer.write(_key_update(secret))
                secret = _expanded(secret, b"traffic upd", len(secret))
                await writer.drain()
            await asyncio.Event().wait()

    async def until_closed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await converse(reader, writer)
        finally:
            writer.transport.abort()

    return until_closed


def _key_update(secret: bytes) -> bytes:
    """The record, as RFC 8446 has it: the message, its type, and a tag, under the first nonce of this key."""
    key = AESGCM(_expanded(secret, b"key", 32 if len(secret) == 48 else 16))
    message = b"\x18\0\0\1" + b"\1" + b"\x16"  # key_update, of one byte: update_requested; in a handshake record
    header = b"\x17\3\3" + struct.pack(">H", len(message) + 16)
    return header + key.encrypt(_expanded(secret, b"iv", 12), message, header)


def _expanded(secret: bytes, label: bytes, length: int) -> bytes:
    label = b"tls13 " + label
    info = struct.pack(">HB", length, len(label)) + label + b"\0"
    return HKDFExpand(hashes.SHA384() if len(secret) == 48 else hashes.SHA256(), length, info).derive(secret)


async def says_nothing(writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def resets(writer: asyncio.StreamWriter) -> None:
    raw: socket.socket = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class FickleDns(asyncio.DatagramProtocol):
    """A real DNS server on UDP that gives each question the next of its `answers`, and the last one from then on."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", 0))
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._transport.close()

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._transport.get_extra_info("sockname")
        return host, port

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        labels, position = [], 12
        while length := data[position]:
            labels.append(data[position + 1 : position + 1 + length].decode())
            position += 1 + length
        self.asked.append(".".join(labels))
        addresses = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        # The question again, then each address: a pointer to its name, type A, class IN, no time to live, four bytes.
        records = b"".join(b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4" + socket.inet_aton(address) for address in addresses)
        header = data[:2] + struct.pack(">HHHHH", 0x8180, 1, len(addresses), 0, 0)
        self._transport.sendto(header + data[12 : position + 5] + records, addr)


class DnsResolver(AbstractResolver):
    """Asks only that DNS server."""

    def __init__(self, dns: FickleDns) -> None:
        self._dns = dns

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[ResolveResult]:
        name = b"".join(bytes([len(label)]) + label.encode() for label in host.split("."))
        query = b"\x12\x34" + struct.pack(">HHHHH", 0x0100, 1, 0, 0, 0) + name + b"\0\0\1\0\1"
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: _Reply(reply), remote_addr=self._dns.address
        )
        try:
            transport.sendto(query)
            data = await reply
        finally:
            transport.close()
        (count,) = struct.unpack(">H", data[6:8])
        records = data[len(query) :]
        addresses = [socket.inet_ntoa(records[16 * n + 12 : 16 * n + 16]) for n in range(count)]
        return [found(host, address, port) for address in addresses]

    async def close(self) -> None:
        pass


class _Reply(asyncio.DatagramProtocol):
    def __init__(self, reply: asyncio.Future[bytes]) -> None:
        self._reply = reply

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        with suppress(asyncio.InvalidStateError):
            self._reply.set_result(data)


class ScriptedResolver(AbstractResolver):
    """Resolves some names from a table. Sends nothing."""

    def __init__(self, addresses: dict[str, list[str]]) -> None:
        self.addresses = addresses
        self.closed = False

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[ResolveResult]:
        if host not in self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [found(host, address, port) for address in self.addresses[host]]

    async def close(self) -> None:
        self.closed = True


def found(host: str, address: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
