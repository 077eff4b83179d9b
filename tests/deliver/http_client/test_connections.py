"""Connections to real servers: when they are used again, what closes them, and that nothing is left of them."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import socket
import ssl
import struct
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import pytest
from aiohttp.abc import ResolveResult

from deliver.hostile_sinks import (
    Behaviour,
    ScriptedResolver,
    Sink,
    answers,
    says_nothing,
    sends,
    sends_and_closes,
    sends_for_ever,
)
from deliver.test_http import (
    CHUNK,
    CHUNKED,
    DELIVERY,
    HEAD,
    NOW_MS,
    Authority,
    Signing,
    a_delivery,
    outcome_of,
    unseal,
)
from tickler.clock import ManualClock
from tickler.deliver.address_guard import AddressGuard
from tickler.deliver.http_client import tls
from tickler.deliver.http_client.connection import Connection
from tickler.deliver.http_client.dns_cache import MAX_ADDRESSES, DnsCache
from tickler.deliver.http_client.outbox import Outbox
from tickler.deliver.targets.http import HttpDeliverer
from tickler.model.target import HttpTarget

ENDED = ("closed the connection without an answer", "lost before the answer: connection reset by peer")
OK = HEAD + b"content-length: 2\r\n\r\nok"


@pytest.fixture
async def deliverer() -> AsyncIterator[HttpDeliverer]:
    resolver = ScriptedResolver({"receiver.example": ["127.0.0.1"]})
    deliverer = HttpDeliverer(AddressGuard(["127.0.0.0/8"]), Signing(), unseal, ManualClock(NOW_MS), resolver=resolver)
    await deliverer.open()
    yield deliverer
    await deliverer.close()


class RawServer(threading.Thread):
    """Serves on a thread of its own, one connection after the other: it answers while the event loop is busy."""

    def __init__(self, *conversations: Callable[[RawServer, socket.socket], None]) -> None:
        super().__init__(daemon=True)
        self._conversations = conversations
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/"
        self.requests = 0

    def run(self) -> None:
        for converse in self._conversations:
            connection, _ = self._listening.accept()
            with connection, suppress(ConnectionError):
                converse(self, connection)
        self._listening.close()

    def answer(self, connection: socket.socket, data: bytes = OK) -> None:
        received = b""
        while b"}}" not in received:
            piece = connection.recv(65_536)
            if not piece:
                return
            received += piece
        self.requests += 1
        connection.sendall(data)


@contextmanager
def serving(*conversations: Callable[[RawServer, socket.socket], None]) -> Iterator[RawServer]:
    server = RawServer(*conversations)
    server.start()
    yield server
    server.join(5)
    assert not server.is_alive()


def answers_and_closes(server: RawServer, connection: socket.socket) -> None:
    server.answer(connection)


def answers_and_resets(server: RawServer, connection: socket.socket) -> None:
    server.answer(connection)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def answers_and_says_more(server: RawServer, connection: socket.socket) -> None:
    server.answer(connection)
    connection.sendall(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n")
    connection.recv(1)  # until the other side closes


@pytest.mark.parametrize("polls", [True, False])
@pytest.mark.parametrize("first", [answers_and_closes, answers_and_resets, answers_and_says_more])
async def test_a_connection_that_ended_while_it_was_idle_costs_no_attempt(
    deliverer: HttpDeliverer,
    first: Callable[[RawServer, socket.socket], None],
    polls: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Although the event loop was busy and has not seen it."""
    if not polls:
        monkeypatch.delattr("tickler.deliver.http_client.outbox.select.poll")  # as on Windows
    with serving(first, answers_and_closes) as server:
        for _ in range(2):
            outcome = await deliverer.deliver(DELIVERY, HttpTarget(server.url))
            assert (outcome.verdict, outcome.answer) == ("delivered", "ok")
            time.sleep(0.1)
        assert server.requests == 2


@pytest.mark.parametrize("polls", [True, False])
async def test_a_connection_that_ends_between_a_request_and_its_sending_costs_no_attempt(
    deliverer: HttpDeliverer, polls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the request waits in the outbox, and before the event loop can see it."""
    if not polls:
        monkeypatch.delattr("tickler.deliver.http_client.outbox.select.poll")  # as on Windows
    has_request, is_closed = threading.Event(), threading.Event()

    def answers_and_closes_at_the_next_request(server: RawServer, connection: socket.socket) -> None:
        server.answer(connection)
        has_request.wait(5)
        connection.close()
        is_closed.set()

    put = Outbox.put

    def closing(outbox: Outbox, connection: Connection) -> None:
        put(outbox, connection)
        has_request.set()
        assert is_closed.wait(5)

    monkeypatch.setattr(Outbox, "put", closing)
    with serving(answers_and_closes_at_the_next_request, answers_and_closes) as server:
        for _ in range(2):
            outcome = await deliverer.deliver(DELIVERY, HttpTarget(server.url))
            assert (outcome.verdict, outcome.answer) == ("delivered", "ok")
        assert (server.requests, has_request.is_set()) == (2, True)


async def test_many_requests_of_one_turn_find_out_for_each_connection_whether_it_has_ended(deliverer: HttpDeliverer) -> None:
    async with Sink(answers(200)) as sink, Sink(sends_and_closes(OK)) as closing:
        for _ in range(3):
            targets = [HttpTarget(each.url) for each in (sink, closing) for _ in range(5)]
            outcomes = await asyncio.gather(*(deliverer.deliver(DELIVERY, target) for target in targets))
            assert {outcome.verdict for outcome in outcomes} == {"delivered"}
        assert (sink.connections, closing.connections) == (5, 15)


async def test_a_request_that_was_sent_is_not_sent_again(deliverer: HttpDeliverer) -> None:
    def reads_the_second_and_closes(server: RawServer, connection: socket.socket) -> None:
        server.answer(connection)
        server.answer(connection, b"")

    with serving(reads_the_second_and_closes) as server:
        outcomes = [await deliverer.deliver(DELIVERY, HttpTarget(server.url)) for _ in range(2)]
        assert [outcome.verdict for outcome in outcomes] == ["delivered", "retry"]
        assert (outcomes[1].detail or "").endswith(ENDED)
        assert server.requests == 2


SURPLUS = [
    OK + b"x",
    OK + OK,
    HEAD + b"content-length: 0\r\n\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\ncontent-length: 2\r\n\r\nok",
    CHUNKED + b"2\r\nok\r\n0\r\n\r\n\r\n",
    CHUNKED + b"2\r\nok\r\n0\r\n\r\nHTTP/1.1 500 Other\r\ncontent-length: 0\r\n\r\n",
    HEAD + b"connection: close\r\ncontent-length: 2\r\n\r\nok",
    b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
]
KEPT = [
    OK,
    HEAD + b"content-length: 0\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    CHUNKED + b"2\r\nok\r\n0\r\nx: y\r\n\r\n",
    HEAD + b"content-length: 5000\r\n\r\n" + b"x" * 5_000,
    b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
    b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n",
]


@pytest.mark.parametrize(
    ("sent", "is_kept"),
    [*((each, False) for each in SURPLUS), *((each, True) for each in KEPT)],
    ids=lambda value: repr(value)[-30:] if isinstance(value, bytes) else None,
)
async def test_a_connection_is_used_again_only_if_nothing_is_left_on_it(
    deliverer: HttpDeliverer, sent: bytes, is_kept: bool
) -> None:
    async with Sink(sends(sent)) as sink:
        outcomes = {(await deliverer.deliver(DELIVERY, HttpTarget(sink.url))).status for _ in range(3)}
        assert (len(outcomes), sink.connections) == (1, 1 if is_kept else 3)


async def test_a_response_in_two_pieces_is_read_to_its_end_and_the_connection_kept(deliverer: HttpDeliverer) -> None:
    async def slowly(writer: asyncio.StreamWriter) -> None:
        for piece in (HEAD, b"content-length: 6000\r\n\r\n", b"x" * 3_000, b"x" * 3_000):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)

    async with Sink(slowly) as sink:
        for _ in range(3):
            assert (await deliverer.deliver(DELIVERY, HttpTarget(sink.url))).answer == "x" * 2_048
        assert sink.connections == 1


async def test_a_receiver_that_answers_before_it_has_read_the_request_is_heard_and_not_used_again(
    deliverer: HttpDeliverer,
) -> None:
    """The rest of the request is still to be sent: another one must not follow it."""

    def answers_early(server: RawServer, connection: socket.socket) -> None:
        connection.recv(1_000)
        connection.sendall(b"HTTP/1.1 413 Too Large\r\ncontent-length: 8\r\n\r\ntoo much")
        time.sleep(0.3)  # less than the whole fits into the buffers of the system
        with suppress(ConnectionError):
            while connection.recv(65_536):  # until the other side closes
                pass

    with serving(answers_early, answers_early) as server:
        for _ in range(2):
            outcome = await deliverer.deliver(a_delivery(payload="x" * 20_000_000), HttpTarget(server.url))
            assert (outcome.verdict, outcome.status, outcome.answer) == ("give_up", 413, "too much")
        await deliverer.close()


async def half_closes(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + b"\r\nuntil the end")
    writer.write_eof()
    await asyncio.sleep(5)


async def half_closes_without_an_answer(writer: asyncio.StreamWriter) -> None:
    writer.write_eof()
    await asyncio.sleep(5)


@pytest.mark.parametrize(
    ("behave", "expected"),
    [
        (half_closes, ("delivered", "until the end", None)),
        (half_closes_without_an_answer, ("retry", None, "the receiver closed the connection without an answer")),
        (sends_and_closes(HEAD + b"content-length: 9\r\n\r\nhalf"), ("delivered", "half", None)),
        (sends_and_closes(CHUNKED + b"9\r\nhalf"), ("delivered", "half", None)),
    ],
)
async def test_the_end_of_a_connection_is_not_waited_for_longer_than_needed(
    deliverer: HttpDeliverer, behave: Behaviour, expected: tuple[str, str | None, str | None]
) -> None:
    started = time.monotonic()
    outcome = await outcome_of(deliverer, behave)
    assert (outcome.verdict, outcome.answer, outcome.detail) == expected
    assert time.monotonic() - started < 1


@pytest.mark.parametrize(
    ("flood", "verdict"),
    [
        ((b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000), "retry"),
        ((HEAD, b"x: y\r\n" * 10_000), "retry"),
        ((HEAD + b"x: ", b"y" * 65_536), "retry"),
        ((HEAD + b"\r\n", b"x" * 65_536), "delivered"),
        ((CHUNKED, CHUNK), "delivered"),
        ((CHUNKED, b"1\r\nx\r\n" * 10_000), "delivered"),
        ((CHUNKED + b"0\r\nt: ", b"r" * 65_536), "delivered"),
    ],
)
async def test_a_flood_ends_soon(deliverer: HttpDeliverer, flood: tuple[bytes, bytes], verdict: str) -> None:
    started = time.monotonic()
    assert (await outcome_of(deliverer, sends_for_ever(*flood), a_delivery(timeout_s=10))).verdict == verdict
    assert time.monotonic() - started < 3


async def test_idle_connections_are_closed_when_they_are_old(deliverer: HttpDeliverer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tickler.deliver.http_client.pool.KEEP_ALIVE_S", 0.05)
    async with Sink(answers(200)) as one, Sink(answers(200)) as other:
        await asyncio.gather(*(deliverer.deliver(DELIVERY, HttpTarget(sink.url)) for sink in (one, one, other)))
        for sink in (one, other):
            await asyncio.wait_for(sink.ended.wait(), 5)


async def test_with_a_limit_requests_wait_for_each_other_in_order() -> None:
    limited = HttpDeliverer(AddressGuard(["127.0.0.0/8"]), Signing(), unseal, ManualClock(NOW_MS), max_connections=2)
    await limited.open()
    async with Sink(answers(200)) as sink:
        deliveries = [a_delivery(payload=number) for number in range(20)]
        outcomes = await asyncio.gather(*(limited.deliver(each, HttpTarget(sink.url)) for each in deliveries))
        assert {outcome.verdict for outcome in outcomes} == {"delivered"}
        assert sink.connections == 2
        refused = await asyncio.gather(*(limited.deliver(DELIVERY, HttpTarget("http://127.0.0.1:1/")) for _ in range(5)))
        assert {outcome.verdict for outcome in refused} == {"retry"}
        assert (await limited.deliver(DELIVERY, HttpTarget(sink.url))).verdict == "delivered", "no place is lost"
    await limited.close()


# TLS


def trust(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tickler.deliver.http_client.tls.verified_context", authority.trusted)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


class SlowAuthority:
    """Trusts what `authority` certifies, as soon as `goes_on` is set, and fails the first times."""

    def __init__(self, authority: Authority, failures: int = 0) -> None:
        self._authority = authority
        self._failures = failures
        self.asked = 0
        self.goes_on = threading.Event()

    def trusted(self) -> ssl.SSLContext:
        self.asked += 1
        assert self.goes_on.wait(5)
        if self.asked <= self._failures:
            raise OSError(errno.EMFILE, "too many open files")
        return self._authority.trusted()


async def test_many_who_need_the_certificates_at_once_share_one_reading_that_survives_those_who_leave(
    deliverer: HttpDeliverer, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, slow = authority.server("receiver.example"), SlowAuthority(authority)
    monkeypatch.setattr("tickler.deliver.http_client.tls.verified_context", slow.trusted)
    async with Sink(answers(200), tls=server) as sink:
        target = HttpTarget(f"https://receiver.example:{sink.port}/")
        attempts = [asyncio.ensure_future(deliverer.deliver(DELIVERY, target)) for _ in range(20)]
        await _settled(lambda: slow.asked > 0)
        attempts[0].cancel()
        await asyncio.sleep(0)
        slow.goes_on.set()
        assert {outcome.verdict for outcome in await asyncio.gather(*attempts[1:])} == {"delivered"}
    assert slow.asked == 1


async def test_certificates_that_could_not_be_read_are_read_again(
    deliverer: HttpDeliverer, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, slow = authority.server("receiver.example"), SlowAuthority(authority, failures=1)
    slow.goes_on.set()
    monkeypatch.setattr("tickler.deliver.http_client.tls.verified_context", slow.trusted)
    async with Sink(answers(200), tls=server) as sink:
        target = HttpTarget(f"https://receiver.example:{sink.port}/")
        outcomes = [await deliverer.deliver(DELIVERY, target) for _ in range(2)]
    assert [outcome.verdict for outcome in outcomes] == ["release", "delivered"]


def test_certificates_that_were_read_without_free_file_descriptors_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "verified_context", cache(tls.verified_context.__wrapped__))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            tls.verified_context()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert tls.verified_context().cert_store_stats() == ssl.create_default_context().cert_store_stats()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_large_requests_and_many_of_them_pass_through_tls(
    deliverer: HttpDeliverer, authority: Authority, monkeypatch: pytest.MonkeyPatch, version: ssl.TLSVersion
) -> None:
    server = authority.server("receiver.example")
    server.minimum_version = server.maximum_version = version
    trust(authority, monkeypatch)
    payload = "x" * 1_000_000
    async with Sink(answers(200, b"x" * 10_000), tls=server) as sink:
        target = HttpTarget(f"https://receiver.example:{sink.port}/")
        for _ in range(10):
            assert (await deliverer.deliver(a_delivery(payload=payload), target)).answer == "x" * 2_048
        assert sink.connections == 1
        assert all(len(each.body) > len(payload) for each in sink.received)


async def test_a_connection_over_tls_that_ends_without_notice_is_like_any_that_ends(
    deliverer: HttpDeliverer, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = authority.server("receiver.example")
    trust(authority, monkeypatch)

    async def ends(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"\r\nuntil the end")
        await asyncio.sleep(0.05)
        writer.transport.abort()

    async def ends_at_once(writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    for behave, expected in ((ends, ("delivered", "until the end")), (ends_at_once, ("retry", None))):
        async with Sink(behave, tls=server) as sink:
            outcome = await deliverer.deliver(DELIVERY, HttpTarget(f"https://receiver.example:{sink.port}/"))
            assert (outcome.verdict, outcome.answer) == expected


async def test_tls_that_breaks_off_or_is_garbage_is_tried_again(
    deliverer: HttpDeliverer, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = authority.server("receiver.example")
    trust(authority, monkeypatch)

    def raw(sock: socket.socket) -> None:
        os.write(sock.fileno(), b"\x17\3\3\0\x20" + b"g" * 32)  # a record that was not encrypted

    async def garbage(writer: asyncio.StreamWriter) -> None:
        raw(writer.get_extra_info("socket"))
        await asyncio.sleep(1)

    async with Sink(garbage, tls=server) as sink:
        outcome = await deliverer.deliver(DELIVERY, HttpTarget(f"https://receiver.example:{sink.port}/"))
        assert (outcome.verdict, outcome.status) == ("retry", 0)
        assert (outcome.detail or "").startswith("the connection was lost before the answer: ")
        assert "operation not permitted" not in (outcome.detail or "")
    async with Sink(sends_and_closes(b""), reads=False) as sink:
        outcome = await deliverer.deliver(DELIVERY, HttpTarget(f"https://receiver.example:{sink.port}/"))
        assert (outcome.verdict, outcome.status) == ("retry", 0)
        assert (outcome.detail or "").endswith(ENDED)


async def test_a_response_counts_although_tls_breaks_off_right_after_it(
    deliverer: HttpDeliverer, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = authority.server("receiver.example")
    trust(authority, monkeypatch)

    def answers_and_sends_garbage(server: RawServer, connection: socket.socket) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = context.wrap_bio(incoming, outgoing, server_side=True)
        received = b""
        while b"}}" not in received:
            try:
                received += session.read(65_536)
            except ssl.SSLWantReadError:
                connection.sendall(outgoing.read())
                incoming.write(connection.recv(65_536))
        session.write(OK)
        connection.sendall(outgoing.read() + b"\x17\3\3\0\x20" + b"g" * 32)  # a record that was not encrypted

    with serving(answers_and_sends_garbage) as server:
        url = server.url.replace("http://127.0.0.1", "https://receiver.example")
        outcome = await deliverer.deliver(DELIVERY, HttpTarget(url))
    assert (outcome.verdict, outcome.answer) == ("delivered", "ok")


async def test_what_tls_keeps_to_itself_counts_on_every_event_loop(
    deliverer: HttpDeliverer, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = authority.server("receiver.example")
    server.num_tickets = 1_000
    trust(authority, monkeypatch)
    async with Sink(says_nothing, tls=server) as sink:
        outcome = await deliverer.deliver(DELIVERY, HttpTarget(f"https://receiver.example:{sink.port}/"))
    assert outcome.detail == "received more than 64 KB without an answer"


# What is left


def open_sockets() -> int:
    count = 0
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            count += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
    return count


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="sockets are counted in /proc")
@pytest.mark.parametrize("tls", [False, True])
async def test_wherever_an_attempt_is_cancelled_no_socket_is_left(
    deliverer: HttpDeliverer, authority: Authority, monkeypatch: pytest.MonkeyPatch, tls: bool
) -> None:
    server = authority.server("receiver.example") if tls else None
    trust(authority, monkeypatch)

    async def in_pieces(writer: asyncio.StreamWriter) -> None:
        for piece in (b"HTTP/1.1 200 OK\r\n", b"content-length: 4\r\n\r\n", b"ok", b"ok"):
            writer.write(piece)
            await asyncio.sleep(0)

    async with Sink(in_pieces, tls=server) as sink:
        target = HttpTarget(f"http{'s' if tls else ''}://receiver.example:{sink.port}/")
        assert (await deliverer.deliver(DELIVERY, target)).answer == "okok"  # reads the certificates, and looks the name up
        client = deliverer._client
        assert client is not None
        client._pool.close()
        await _settled(lambda: not client._open)
        before, ended = open_sockets(), 0
        for steps in range(200):
            attempt = asyncio.ensure_future(deliverer.deliver(DELIVERY, target))
            for _ in range(steps):
                await asyncio.sleep(0)
            if attempt.done():
                ended += 1
            attempt.cancel()
            with suppress(asyncio.CancelledError):
                await attempt
            client._pool.close()
            await _settled(lambda: not client._open)
            assert deliverer._timeouts._at == {}
            if ended > 3:
                break
        assert ended, "every step of an attempt was one to be cancelled at"
        await _settled(lambda: open_sockets() <= before)


async def _settled(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not is_so():
            await asyncio.sleep(0.001)


async def test_closing_ends_what_is_under_way(deliverer: HttpDeliverer) -> None:
    async with Sink(says_nothing) as sink:
        attempts = [asyncio.ensure_future(deliverer.deliver(DELIVERY, HttpTarget(sink.url))) for _ in range(5)]
        while len(sink.received) < 5:
            await asyncio.sleep(0.001)
        await deliverer.close()
        assert {outcome.verdict for outcome in await asyncio.gather(*attempts)} == {"retry"}


# Names


class SlowResolver(ScriptedResolver):
    def __init__(self) -> None:
        super().__init__({"receiver.example": ["127.0.0.1", "127.0.0.2"]})
        self.asked = 0
        self.goes_on = asyncio.Event()

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[ResolveResult]:
        self.asked += 1
        await self.goes_on.wait()
        return await super().resolve(host, port, family)


async def test_many_who_ask_for_a_name_at_once_share_one_lookup_that_survives_those_who_leave() -> None:
    resolver = SlowResolver()
    cache = DnsCache(resolver, 60)
    askers = [asyncio.ensure_future(cache.addresses("receiver.example", 80)) for _ in range(10)]
    await asyncio.sleep(0)
    askers[0].cancel()
    await asyncio.sleep(0)
    resolver.goes_on.set()
    found = await asyncio.gather(*askers[1:])
    assert {len(each) for each in found} == {2}
    first = [(await cache.addresses("receiver.example", 80))[0][4][0] for _ in range(4)]
    assert first in (["127.0.0.1", "127.0.0.2"] * 2, ["127.0.0.2", "127.0.0.1"] * 2), "callers begin with different addresses"
    assert resolver.asked == 1
    await cache.close()


async def test_a_lookup_under_way_ends_when_the_deliverer_is_closed() -> None:
    resolver = SlowResolver()
    cache = DnsCache(resolver, 60)
    asker = asyncio.ensure_future(cache.addresses("receiver.example", 80))
    await asyncio.sleep(0)
    await cache.close()
    with pytest.raises(asyncio.CancelledError):
        await asker


async def test_a_failed_lookup_is_not_remembered() -> None:
    resolver = ScriptedResolver({})
    cache = DnsCache(resolver, 60)
    with pytest.raises(OSError, match="Name or service not known"):
        await cache.addresses("receiver.example", 80)
    resolver.addresses["receiver.example"] = ["127.0.0.1"]
    assert len(await cache.addresses("receiver.example", 80)) == 1
    await cache.close()


async def test_of_many_addresses_of_a_name_a_few_of_each_family_are_tried() -> None:
    """Each takes a socket while it does not answer."""
    many = [f"2001:db8::{n:x}" for n in range(1, 1_000)] + [f"192.0.2.{n}" for n in range(1, 255)]
    cache = DnsCache(ScriptedResolver({"many.example": many}), 60)
    found = {info[4][0] for info in await cache.addresses("many.example", 80)}
    assert found == {*many[:MAX_ADDRESSES], *many[999 : 999 + MAX_ADDRESSES]}
    await cache.close()
