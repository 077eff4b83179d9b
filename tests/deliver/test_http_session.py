"""`t.http_session`: fetching URLs that users gave, from servers that mean no good."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import random
import ssl
import time
import tracemalloc
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import tickler
from deliver.hostile_sinks import (
    MEGABYTE,
    Behaviour,
    DnsResolver,
    FickleDns,
    ScriptedResolver,
    Sink,
    answers,
    asks_for_new_keys,
    drips,
    says_nothing,
    sends,
    sends_and_closes,
    sends_for_ever,
)
from deliver.test_address_guard import HOSTILE_URLS, NAMES
from deliver.test_http import Authority
from tickler.deliver import http_session
from tickler.deliver.address_guard import AddressGuard, GuardedResolver
from tickler.deliver.counted_tls import CountedContext
from tickler.deliver.http_session import MAX_CONNECTIONS_PER_HOST, open_session
from tickler.errors import AddressRefused, InvalidInput

HEAD = b"HTTP/1.1 200 OK\r\n"
ONLY_ONE = AddressGuard(["127.0.0.1/32"])  # 127.0.0.2 stands for a neighbour
LIMIT = 10_000


def session(
    guard: AddressGuard = ONLY_ONE, names: dict[str, list[str]] | None = None, timeout_s: float = 10.0, max_bytes: int = LIMIT
) -> aiohttp.ClientSession:
    resolver = ScriptedResolver({"receiver.example": ["127.0.0.1"], "neighbour.example": ["127.0.0.2"], **(names or {})})
    return open_session(guard, timeout_s=timeout_s, max_bytes=max_bytes, resolver=resolver)


async def body(url: str, **options: Any) -> bytes:
    async with session(**options) as client, client.get(url) as response:
        return await response.read()


async def body_of(behave: Behaviour, **options: Any) -> bytes:
    async with Sink(behave) as sink:
        return await body(sink.url, **options)


async def test_a_good_answer_is_read_and_nothing_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.2:1/")
    async with Sink(answers(200, b'{"a": 1}', content_type="application/json", set_cookie="a=b")) as sink:
        async with session() as client:
            for _ in range(2):
                async with client.get(f"{sink.url}?a=%2f&b=c+d") as response:
                    assert (response.status, await response.json()) == (200, {"a": 1})
        assert sink.connections == 1
        first, second = sink.received
    assert first == second, "no cookie came back"
    headers = {name.lower(): value for name, value in first.headers.items()}
    assert set(headers) == {"host", "accept", "accept-encoding", "user-agent"}
    assert headers["user-agent"] == f"Tickler/{tickler.__version__}"
    assert headers["accept-encoding"] == "gzip, deflate"


async def test_a_tickler_opens_one_with_its_own_allow_list(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Sink(answers(200, b"hello")) as sink:
        async with tickler.connect("memory://") as t, t.http_session() as client:
            with pytest.raises(AddressRefused, match=r"127\.0\.0\.1 is the worker itself .*TICKLER_ALLOW_NETWORKS"):
                await client.get(sink.url)
        assert sink.connections == 0
        async with tickler.connect("memory://", allow_networks=["127.0.0.1/32"]) as t:
            async with t.http_session(timeout=5, max_bytes=5) as client, client.get(sink.url) as response:
                assert await response.text() == "hello"
            async with t.http_session(max_bytes=4) as client:
                with pytest.raises(aiohttp.ClientPayloadError, match="longer than 4 bytes: pass max_bytes="):
                    async with client.get(sink.url) as response:
                        await response.read()


def test_settings_that_cannot_be_used_are_refused() -> None:
    t = tickler.connect("memory://")
    for options, why in (
        ({"timeout": 0}, "timeout: 0 allows no request"),
        ({"timeout": -1}, "timeout"),
        ({"max_bytes": 0}, "max_bytes: 0 is not a number of bytes"),
        ({"max_bytes": True}, "max_bytes: True"),
        ({}, "needs an event loop"),
    ):
        with pytest.raises(InvalidInput, match=why):
            t.http_session(**options)


# Where it connects.


# aiohttp leaves out what these have too much, and what remains is public.
PUBLIC_WHEN_READ = {"http://@8.8.8.8/", "http://public.example/\nx", "http://public.example\t/"}
REFUSED = (AddressRefused, aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError)


@pytest.mark.parametrize("url", [url for url in HOSTILE_URLS if url not in PUBLIC_WHEN_READ], ids=ascii)
async def test_a_hostile_address_is_refused(url: str) -> None:
    async with session(AddressGuard(), NAMES) as client:
        with pytest.raises(REFUSED):
            await client.get(url)


@pytest.mark.parametrize("url", ["ftp://receiver.example/", "file:///etc/passwd", "data:,x", "//receiver.example/", "x", ""])
async def test_what_is_no_http_url_is_refused(url: str) -> None:
    async with session() as client:
        with pytest.raises(REFUSED):
            await client.get(url)
        with pytest.raises(AddressRefused, match="must start with http"):
            await client.ws_connect("ws://receiver.example/")


async def test_a_user_name_in_a_url_is_refused() -> None:
    async with Sink(answers(200)) as sink, session() as client:
        with pytest.raises(AddressRefused, match="contains a user name"):
            await client.get(f"http://ada:hunter2@receiver.example:{sink.port}/")
        assert sink.connections == 0


def redirects(location: str, status: int = 302) -> Behaviour:
    return answers(status, location=location)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_followed_where_a_request_may_go(status: int) -> None:
    async with Sink(answers(200, b"hello")) as there:
        for location in (there.url, f"http://receiver.example:{there.port}/", f"//127.0.0.1:{there.port}/x"):
            assert await body_of(redirects(location, status)) == b"hello"


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.2:{port}/",
        "http://2130706434:{port}/",
        "//127.0.0.2:{port}/",
        "http://[::ffff:127.0.0.2]:{port}/",
        "http://neighbour.example:{port}/",
        "http://ada:hunter2@127.0.0.1:{port}/",
        "http://localhost.:{port}/",
        "ftp://127.0.0.1:{port}/",
        "file:///etc/passwd",
        "http://127.0.0.2:{port}/ x",
    ],
)
async def test_a_redirect_is_refused_where_a_request_may_not_go(location: str) -> None:
    async with Sink(answers(200, b"secret")) as good, Sink(answers(200, b"secret"), "127.0.0.2", good.port) as neighbour:
        async with Sink(answers(200)) as closed:
            port = closed.port if "ada:" in location else neighbour.port
        with pytest.raises((AddressRefused, aiohttp.InvalidURL)):
            await body_of(redirects(location.format(port=port)), names={"localhost.": ["127.0.0.2"]})
        assert neighbour.connections == 0


async def test_a_hop_is_checked_behind_redirects_that_were_allowed() -> None:
    async with (
        Sink(answers(200, b"secret"), "127.0.0.2") as neighbour,
        Sink(redirects(neighbour.url)) as second,
        Sink(redirects(second.url)) as first,
    ):
        with pytest.raises(AddressRefused):
            await body(first.url)
        assert (first.connections, second.connections, neighbour.connections) == (1, 1, 0)


async def test_redirects_end() -> None:
    with pytest.raises(aiohttp.TooManyRedirects):
        await body_of(redirects("/again"))


async def test_a_name_that_changes_its_mind_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_session, "DNS_CACHE_S", 0)
    async with Sink(answers(200, b"hello", connection="close")) as good, Sink(answers(200), "127.0.0.2", good.port) as neighbour:
        async with FickleDns(["127.0.0.1"], ["127.0.0.2"], ["127.0.0.1"]) as dns:
            url = f"http://rebinding.example:{good.port}/"
            async with open_session(ONLY_ONE, timeout_s=10, max_bytes=LIMIT, resolver=DnsResolver(dns)) as client:
                async with client.get(url) as response:
                    assert await response.read() == b"hello"
                with pytest.raises(AddressRefused, match=r"rebinding\.example resolves to a blocked address"):
                    await client.get(url)
                async with client.get(url) as response:
                    assert await response.read() == b"hello"
            assert len(dns.asked) == 3, "what was checked is what is connected to: nothing is looked up twice"
        assert neighbour.connections == 0


async def test_the_socket_is_checked_even_if_everything_before_it_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GuardedResolver, "resolve", lambda self, *asked, **also: self._resolver.resolve(*asked, **also))
    async with Sink(answers(200), "127.0.0.2") as neighbour:
        with pytest.raises(AddressRefused, match=r"127\.0\.0\.2 is the worker itself"):
            await body(f"http://neighbour.example:{neighbour.port}/")
        assert neighbour.connections == 0


async def test_a_proxy_is_refused() -> None:
    async with Sink(answers(200)) as sink, session() as client:
        with pytest.raises(InvalidInput, match="proxy: this session uses none"):
            await client.get("http://receiver.example/", proxy=sink.url)
        assert sink.connections == 0


async def test_middlewares_of_a_request_do_not_pass_the_guard() -> None:
    async def through(request: aiohttp.ClientRequest, handler: Any) -> aiohttp.ClientResponse:
        response: aiohttp.ClientResponse = await handler(request)
        return response

    async with Sink(answers(200), "127.0.0.2") as neighbour, session() as client:
        with pytest.raises(AddressRefused):
            await client.get(neighbour.url, middlewares=[through])
        assert neighbour.connections == 0


async def test_one_host_gets_a_few_connections_at_once() -> None:
    async with Sink(says_nothing) as sink, session() as client:
        requests = [asyncio.ensure_future(client.get(sink.url)) for _ in range(40)]
        async with asyncio.timeout(10):
            while len(sink.received) < MAX_CONNECTIONS_PER_HOST:
                await asyncio.sleep(0.01)
        for _ in range(100):
            await asyncio.sleep(0)
        assert sink.connections == MAX_CONNECTIONS_PER_HOST
        for request in requests:
            request.cancel()
        await asyncio.wait(requests)


# What it reads.


@cache
def compressed(data: bytes, coding: str) -> bytes:
    return gzip.compress(data) if coding == "gzip" else zlib.compress(data)


def encoded(data: bytes, coding: str) -> Behaviour:
    return answers(200, compressed(data, coding), content_encoding=coding)


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_compressed_body_is_decompressed_up_to_the_limit(coding: str) -> None:
    data = b"0123456789" * 1_000
    assert len(data) == LIMIT
    assert await body_of(encoded(data, coding)) == data
    with pytest.raises(aiohttp.ClientPayloadError, match=r"longer than 10,000 bytes"):
        await body_of(encoded(data + b"x", coding))


@pytest.mark.parametrize("coding", ["gzip", "deflate", None])
async def test_a_large_body_is_read_as_it_was_sent_however_slowly_it_is_read(coding: str | None) -> None:
    data = random.Random(1).randbytes(MEGABYTE)
    sent = answers(200, data) if coding is None else encoded(data, coding)
    async with Sink(sent) as sink, session(max_bytes=2 * MEGABYTE) as client:
        async with client.get(sink.url) as response:
            assert await response.read() == data
        async with client.get(sink.url) as response:
            read = b""
            async for chunk in response.content.iter_chunked(3_000):
                read += chunk
                await asyncio.sleep(0)
            assert read == data
        assert sink.connections == 1


@pytest.mark.parametrize("coding", ["br", "zstd"])
async def test_a_compression_that_was_not_asked_for_is_refused_before_it_is_decompressed(
    coding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    decompressed: list[bytes] = []

    class Decompressor:
        data_available = False

        def decompress_sync(self, data: bytes, max_length: int = 0) -> bytes:
            decompressed.append(data)
            return b""

        def flush(self) -> bytes:
            return b""

    for name in ("Brotli", "ZSTD"):
        monkeypatch.setattr(f"aiohttp.http_parser.HAS_{name.upper()}", True)
        monkeypatch.setattr(f"aiohttp.http_parser.{name}Decompressor", Decompressor)
    for split in (b"", b"\r\n"):
        with pytest.raises(aiohttp.ClientPayloadError, match=f"compressed as {coding}"):
            await body_of(sends(split + HEAD + f"content-encoding: {coding}\r\ncontent-length: 9\r\n\r\n123456789".encode()))
    assert decompressed == []


async def read_all(response: aiohttp.ClientResponse) -> None:
    await response.read()


async def read_in_chunks(response: aiohttp.ClientResponse) -> None:
    read = 0
    async for chunk in response.content.iter_chunked(1_000):
        read += len(chunk)
        assert read <= 100_000


async def read_any(response: aiohttp.ClientResponse) -> None:
    while await response.content.readany():
        pass


READERS = (read_all, read_in_chunks, read_any)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_bomb_does_not_explode(coding: str, read: Callable[..., Any]) -> None:
    bomb = encoded(bytes(10 * MEGABYTE), coding)
    async with Sink(bomb) as sink, session(max_bytes=100_000) as client:
        tracemalloc.start()
        try:
            with pytest.raises(aiohttp.ClientPayloadError, match="longer than 100,000 bytes"):
                async with client.get(sink.url) as response:
                    await read(response)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert most < 4 * MEGABYTE


CHUNK = b"400\r\n" + b"x" * 1_024 + b"\r\n"
ENDLESS = {
    "a body until the end": sends_for_ever(HEAD + b"\r\n", b"x" * 1_000),
    "chunks": sends_for_ever(HEAD + b"transfer-encoding: chunked\r\n\r\n", CHUNK),
    "a promised body": sends_for_ever(HEAD + b"content-length: 1000000000\r\n\r\n", b"x" * 1_000),
    "a little more than allowed": sends(HEAD + b"content-length: 10001\r\n\r\n" + b"x" * 10_001),
    "chunk extensions": sends_for_ever(HEAD + b"transfer-encoding: chunked\r\n\r\n1;", b"x" * 1_000),
    "trailers": sends_for_ever(HEAD + b"transfer-encoding: chunked\r\n\r\n0\r\n", b"a: b\r\n" * 100),
    "tiny chunks": sends_for_ever(HEAD + b"transfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 100),
}


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("behave", ENDLESS.values(), ids=ENDLESS)
async def test_an_endless_body_ends(behave: Behaviour, read: Callable[..., Any]) -> None:
    async with Sink(behave) as sink, session() as client:
        with pytest.raises(aiohttp.ClientError):
            async with client.get(sink.url) as response:
                await read(response)


@pytest.mark.parametrize(
    "behave",
    [
        sends_for_ever(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
        sends_for_ever(HEAD, b"a: b\r\n" * 100),
        sends_for_ever(HEAD, b"a" * 1_000),
        sends_for_ever(b"", b"\r\n" * 1_000),
    ],
    ids=["1xx", "headers", "a header", "lines"],
)
async def test_an_endless_head_ends(behave: Behaviour) -> None:
    with pytest.raises(aiohttp.ClientError):
        await body_of(behave)


async def test_a_head_is_limited_however_long_a_body_may_be() -> None:
    with pytest.raises(aiohttp.ClientPayloadError, match="the head of the answer is longer than 64 KB"):
        await body_of(sends_for_ever(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100), max_bytes=1_000 * MEGABYTE)


async def test_a_body_of_just_the_limit_is_read_and_the_connection_is_used_again() -> None:
    async with Sink(answers(200, b"x" * LIMIT)) as sink, session() as client:
        for _ in range(20):  # each has the whole limit
            async with client.get(sink.url) as response:
                assert len(await response.read()) == LIMIT
        assert sink.connections == 1


async def test_a_head_may_announce_any_length() -> None:
    announces = sends(HEAD + b"content-length: 1000000000\r\n\r\n")
    async with Sink(announces) as sink, session() as client, client.head(sink.url) as response:
        assert response.content_length == 1_000_000_000


@pytest.mark.parametrize(
    "behave",
    [says_nothing, drips(b"HTTP/1.1 200 O", 0.05), drips(HEAD + b"content-length: 1000\r\n\r\n", 0.05)],
    ids=["silence", "a slow head", "a slow body"],
)
async def test_a_slow_answer_ends_in_time(behave: Behaviour) -> None:
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        await body_of(behave, timeout_s=0.3)
    assert time.monotonic() - began < 5


async def test_a_body_that_is_cut_off_is_an_error() -> None:
    with pytest.raises(aiohttp.ClientPayloadError):
        await body_of(sends_and_closes(HEAD + b"content-length: 100\r\n\r\nhalf"))


# Over TLS.


async def test_over_tls_each_answer_has_the_whole_limit_and_no_more(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    sizes = iter([LIMIT] * 30 + [LIMIT + 1])

    async def answer(writer: asyncio.StreamWriter) -> None:
        await answers(200, b"x" * next(sizes))(writer)

    async with Sink(answer, tls=authority.server("receiver.example")) as sink, session() as client:
        url, trusted = f"https://receiver.example:{sink.port}/", authority.trusted()
        for _ in range(30):
            async with client.get(url, ssl=trusted) as response:
                assert len(await response.read()) == LIMIT
        with pytest.raises(aiohttp.ClientPayloadError, match="longer than 10,000 bytes"):
            async with client.get(url, ssl=trusted) as response:
                await response.read()
        assert sink.connections == 1


async def test_a_certificate_is_checked_and_may_be_known_by_its_fingerprint(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with Sink(answers(200, b"hello"), tls=authority.server("receiver.example")) as sink, session() as client:
        url = f"https://receiver.example:{sink.port}/"
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await client.get(url)
        with pytest.raises(aiohttp.ServerFingerprintMismatch):
            await client.get(url, ssl=aiohttp.Fingerprint(bytes(32)))
        der = ssl.PEM_cert_to_DER_cert("-----BEGIN CERT" + authority.file.read_text().partition("-----BEGIN CERT")[2])
        async with client.get(url, ssl=aiohttp.Fingerprint(hashlib.sha256(der).digest())) as response:
            assert await response.read() == b"hello"


async def test_what_tls_keeps_to_itself_counts_as_well(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    converse = asks_for_new_keys(authority.server("receiver.example"), tmp_path / "keys", times=6_000)
    async with await asyncio.start_server(converse, "127.0.0.1", 0) as receiver, session() as client:
        url = f"https://receiver.example:{receiver.sockets[0].getsockname()[1]}/"
        with pytest.raises(aiohttp.ClientOSError, match="the answer is too long"):
            await client.post(url, ssl=authority.trusted())  # a GET would be tried again


def test_a_handshake_without_end_ends() -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = CountedContext(ssl.create_default_context()).wrap_bio(incoming, outgoing, server_hostname="receiver.example")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    incoming.write(b"\x16\3\3\x3f\xff" * 20_000)
    with pytest.raises(ssl.SSLError, match="the answer is too long"):
        tls.do_handshake()


async def test_a_connection_on_which_nothing_counts_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path)
    monkeypatch.setattr(http_session, "counted", lambda context: context)
    async with Sink(answers(200, b"hello"), tls=authority.server("receiver.example")) as sink, session() as client:
        with pytest.raises(RuntimeError, match="nothing counts what TLS consumes"):
            await client.post(f"https://receiver.example:{sink.port}/", ssl=authority.trusted())
        assert sink.received == []
