"""Bad input gets a 4xx with a problem, never a 500, and does not hold up other requests."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any

import pytest

from server.served import PROBLEM, Api, serving
from tickler import ManualClock, Tickler, connect
from tickler.server.api import schedules
from tickler.server.middleware import gateway, uvicorn_protocol
from tickler.server.settings import ServerSettings
from tickler.when import When
from tickler.when.dst_marks import marked

PATH = "/v1/schedules/u1/digest"
JSON = {"content-type": "application/json"}
HOST = b"host: localhost\r\n"
BODY_S = 2.0


@pytest.fixture(params=uvicorn_protocol.PROTOCOLS, ids=lambda protocol: protocol.__name__)
async def api(request: pytest.FixtureRequest, t: Tickler) -> AsyncIterator[Api]:
    """The service with each of uvicorn's HTTP parsers."""
    async with serving(t, protocol=request.param) as served:
        yield served


@pytest.fixture
async def hasty(t: Tickler, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Api]:
    """A service with a short body timeout."""
    monkeypatch.setattr(uvicorn_protocol, "HEAD_TIMEOUT_S", 1.0)
    async with serving(t, ServerSettings(body_s=BODY_S)) as served:
        yield served


async def in_pieces(data: bytes, size: int = 65_536) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


def first(answer: bytes) -> tuple[int, dict[str, Any]]:
    """Return status and problem of the first response."""
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").lower().split("\r\n")
    assert f"content-type: {PROBLEM}" in lines, answer[:500]
    status = int(lines[0].split()[1])
    (length,) = (int(line.partition(":")[2]) for line in lines if line.startswith("content-length:"))
    problem = json.loads(body[:length])
    assert problem["status"] == status
    return status, problem


def request(method: str, path: str, *headers: bytes, body: bytes = b"") -> bytes:
    lines = [
        f"{method} {path} HTTP/1.1\r\n".encode("latin-1"),
        HOST,
        b"connection: close\r\n",
        *(each + b"\r\n" for each in headers),
    ]
    return b"".join([*lines, b"\r\n", body])


async def is_well(api: Api) -> None:
    """Check that the service still answers."""
    async with asyncio.timeout(10):
        assert (await api.put("/v1/schedules/else/where", {"when": "@daily"})).status in (200, 201)
        assert (await api.get("/v1/schedules?owner=else")).json["items"]


async def is_well_before(api: Api, slow: Sequence[asyncio.Task[Any]]) -> None:
    """Check that others are served while these requests run."""
    began = time.perf_counter()
    await is_well(api)
    took_s = time.perf_counter() - began
    assert not all(task.done() for task in slow), f"others waited {took_s:.1f} s"


# Bodies.

DEEP = 100_000
BODIES: dict[str, tuple[bytes, set[int]]] = {
    "nothing": (b"", {400}),
    "blank": (b"  \n ", {400}),
    "NUL bytes": (b"\0\0\0", {400}),
    "a NUL in a text": (b'{"when": "@daily\0"}', {400}),
    "an escaped NUL in a text": (b'{"when": "@daily\\u0000"}', {422}),
    "an escaped NUL in a zone": (b'{"when": "@daily", "tz": "UTC\\u0000"}', {422}),
    "an escaped NUL in a URL": (b'{"when": "@daily", "target": "https://example.org/\\u0000"}', {422}),
    "no UTF-8": (b'{"when": "\xff\xfe"}', {400}),
    "UTF-8 of a surrogate": (b'{"when": "\xed\xa0\x80"}', {400}),
    "overlong UTF-8": (b'{"when": "\xc0\xaf"}', {400}),
    "UTF-16": ('{"when": "@daily"}'.encode("utf-16"), {400}),
    "a byte order mark": (b'\xef\xbb\xbf{"when": "@daily"}', {400}),
    "half a surrogate pair": (b'{"when": "@daily", "payload": "\\ud800"}', {400}),
    "half a surrogate pair as a name": (b'{"when": "@daily", "payload": {"\\udfff": 1}}', {400}),
    "surrogates the wrong way round": (b'{"when": "@daily", "payload": "\\udc00\\ud800"}', {400}),
    "a name twice": (b'{"when": "@daily", "when": "@hourly"}', {400}),
    "a name twice, deep inside": (b'{"when": "@daily", "payload": [{"a": {"b": 1, "b": 1}}]}', {400}),
    "NaN": (b'{"when": "@daily", "payload": NaN}', {400}),
    "infinity": (b'{"when": "@daily", "payload": -Infinity}', {400}),
    "a fraction that is infinite": (b'{"when": "@daily", "payload": 1e400}', {400}),
    "5,000 digits": (b'{"when": "@daily", "payload": ' + b"9" * 5_000 + b"}", {400}),
    "5,000 digits as a bound": (b'{"when": "@daily", "starts_at": ' + b"9" * 5_000 + b"}", {400}),
    "a fraction with 5,000 digits": (b'{"when": "@daily", "starts_at": 1.' + b"9" * 5_000 + b"}", {422}),
    "2**64": (b'{"when": "@daily", "payload": 18446744073709551616}', {400}),
    "less than -2**63": (b'{"when": "@daily", "payload": -9223372036854775809}', {400}),
    "2**64 - 1 as a bound": (b'{"when": "@daily", "starts_at": 18446744073709551615}', {422}),
    "-2**63 as a bound": (b'{"when": "@daily", "ends_at": -9223372036854775808}', {422}),
    "2**64 - 1 attempts": (b'{"when": "@daily", "policy": {"attempts": 18446744073709551615}}', {422}),
    "a year of 10,000 digits": (b'{"when": "at(' + b"9" * 10_000 + b'-01-01T00:00:00)"}', {422}),
    "an interval without end": (b'{"when": "rate(' + b"9" * 4_000 + b' days)"}', {422}),
    "a cron field of 100,000 numbers": (b'{"when": "' + b"1," * 100_000 + b'1 * * * *"}', {422}),
    "a zone out of bounds": (b'{"when": "@daily", "tz": "../../../etc/passwd"}', {422}),
    "a zone of 100,000 letters": (b'{"when": "@daily", "tz": "' + b"A" * 100_000 + b'"}', {422}),
    "deep lists": (b'{"when": "@daily", "payload": ' + b"[" * DEEP + b"]" * DEEP + b"}", {400}),
    "deep objects": (b'{"when": "@daily", "payload": ' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}", {400}),
    "deep lists without an end": (b"[" * 900_000, {400}),
    "lists that are too deep for a payload": (b'{"when": "@daily", "payload": ' + b"[" * 150 + b"]" * 150 + b"}", {400, 422}),
    "a payload that is too large": (b'{"when": "@daily", "payload": "' + b"x" * 300_000 + b'"}', {422}),
    "100,000 fields": (b"{" + b",".join(b'"f%d":1' % n for n in range(60_000)) + b"}", {422}),
    "a target of every kind of nonsense": (b'{"when": "@daily", "target": {"type": "http", "url": "http://[::1"}}', {422}),
    "headers with line ends": (
        b'{"when": "@daily", "target": {"type": "http", "url": "https://example.org/", "headers": {"a\\r\\nb": "c\\r\\nd"}}}',
        {422},
    ),
    "a list": (b"[1, 2]", {400}),
    "null": (b"null", {400}),
    "two values": (b'{"when": "@daily"} {}', {400}),
    "an unfinished one": (b'{"when": "@dai', {400}),
    "a comment": (b'{"when": "@daily"} // yes', {400}),
    "single quotes": (b"{'when': '@daily'}", {400}),
}


@pytest.mark.parametrize(("body", "statuses"), BODIES.values(), ids=BODIES)
async def test_a_body_that_cannot_be_is_refused(t: Tickler, body: bytes, statuses: set[int]) -> None:
    async with serving(t) as api:
        answer = await api("PUT", PATH, body, headers=JSON)
        assert answer.status in statuses, answer.body[:300]
        assert answer.is_problem
        assert len(answer.body) < 5_000
        again = await api("POST", "/v1/fires:retry", body, headers=JSON)
        assert again.status in (400, 422)
        lines = (await api("POST", "/v1/schedules:import", body)).lines
        assert all("error" in each for each in lines)
    assert (await t.schedules.list()).items == []


ODD = [
    "18446744073709551615",
    "-9223372036854775808",
    "9007199254740993",
    "0.1",
    "-0.0",
    "1e300",
    '"\\u0000"',
    '"\\ud83d\\ude00"',
    '{"": ""}',
    "[" * 90 + "]" * 90,
]


async def test_what_is_odd_but_right_is_kept_as_it_was(any_url: str) -> None:
    async with connect(any_url, create=True) as t, serving(t) as api:
        for number, payload in enumerate(ODD):
            path, body = f"/v1/schedules/u1/{number}", b'{"when": "@daily", "payload": %s}' % payload.encode()
            assert (await api("PUT", path, body, headers=JSON)).status == 201
            assert (await api.get(path)).json["payload"] == json.loads(payload)
            assert (await api("PUT", path, body, headers=JSON)).json["version"] == 1
        exported = (await api.get("/v1/schedules:export")).lines
        assert [each["payload"] for each in exported] == [json.loads(payload) for payload in ODD]


@pytest.mark.parametrize(
    "kind",
    [
        "",
        "text/plain",
        "application/xml",
        "multipart/form-data; boundary=x",
        "application/x-www-form-urlencoded",
        "application/jsonp",
        "json",
        "application/json/x",
        "\xff",
    ],
)
async def test_a_content_type_that_is_not_json_is_refused(api: Api, kind: str) -> None:
    sent = request("PUT", PATH, b"content-type: " + kind.encode("latin-1"), b"content-length: 18", body=b'{"when": "@daily"}')
    status, problem = first(await api.bytes_for(sent))
    assert (status, problem["field"]) == (415, "content-type")


async def test_kinds_of_json_are_taken(api: Api) -> None:
    for kind in ("application/json", "APPLICATION/JSON; charset=utf-8", "application/vnd.tickler+json"):
        assert (await api("PUT", PATH, b'{"when": "@daily"}', headers={"content-type": kind})).status in (200, 201)


# Sizes.


@pytest.mark.parametrize("path", [PATH, f"{PATH}/pause", "/v1/fires:retry", "/v1/tick", "/v1/nothing"])
async def test_a_body_of_10_mb_is_refused_and_its_answer_is_read(api: Api, path: str) -> None:
    method = "PUT" if path == PATH else "POST"
    for chunked in (False, True):
        body = b"x" * 10_000_000
        headers = {**JSON} if chunked else {**JSON, "content-length": str(len(body))}
        answer = await api(method, path, in_pieces(body), headers=headers)
        assert answer.status in (413, 404), answer
        assert answer.is_problem
    await is_well(api)


async def test_a_length_that_is_too_much_is_refused_before_anything_is_sent(api: Api) -> None:
    for length in ("1048577", "99999999999999999999"):
        sent = request(
            "PUT", PATH, b"content-type: application/json", f"content-length: {length}".encode(), b"expect: 100-continue"
        )
        answer = await api.bytes_for(sent)
        assert b"100 Continue" not in answer
        assert first(answer)[0] in (400, 413)


@pytest.mark.parametrize("size", [1_048_576, 1_048_577])
async def test_the_limit_is_exact(api: Api, size: int) -> None:
    body = b'{"when": "@daily"}'.ljust(size)
    for chunked in (True, False):
        answer = await api("PUT", PATH, in_pieces(body), headers={**JSON} if chunked else {**JSON, "content-length": str(size)})
        assert answer.status in ((200, 201) if size == 1_048_576 else (413,))


async def test_queries_of_10000_parameters_are_refused(api: Api) -> None:
    for path in ("/v1/schedules", "/v1/preview", "/v1/tick", "/schedules", "/"):
        many = "&".join(f"a{n}=1" for n in range(10_000))
        assert (await api("GET", f"{path}?{many[:8_000]}", check=False)).status in (200, 400)
        assert first(await api.bytes_for(request("GET", f"{path}?{many}")))[0] in (400, 414, 431)
    assert (await api.get("/v1/schedules?" + "&" * 5_000)).status == 200
    assert (await api.get("/v1/schedules?" + "limit=1&" * 900)).status == 400
    await is_well(api)


@pytest.mark.parametrize("size", [9_000, 100_000, 3_000_000])
async def test_addresses_that_are_too_long_are_refused(api: Api, size: int) -> None:
    for path in (
        "/v1/schedules/u1/" + "x" * size,
        "/v1/schedules/u1/" + "%41" * (size // 3),
        "/v1/schedules?owner=" + "x" * size,
    ):
        assert first(await api.bytes_for(request("GET", path)))[0] in (400, 414, 431)
    await is_well(api)


@pytest.mark.parametrize(
    "headers",
    [
        [b"x: " + b"y" * 40_000],
        [b"x: " + b"y" * 5_000_000],
        [b"x%d: y" % n for n in range(5_000)],
        [b"x%d: y" % n for n in range(200_000)],
        [b"a" * 100_000 + b": y"],
    ],
    ids=["40 KB", "5 MB", "5,000", "200,000", "a long name"],
)
async def test_header_bombs_are_refused(api: Api, headers: list[bytes]) -> None:
    status, _ = first(await api.bytes_for(request("GET", "/v1/schedules", *headers)))
    assert status in (400, 431)
    await is_well(api)


async def test_a_head_is_not_waited_for_without_end(api: Api) -> None:
    answer = await api.bytes_for(
        b"GET /v1/schedules HTTP/1.1\r\nx: " + b"y" * 300_000, within_s=uvicorn_protocol.HEAD_TIMEOUT_S - 1
    )
    assert first(answer)[0] in (400, 431)


# Time.


async def _until_it_ends(reader: asyncio.StreamReader) -> bytes:
    answer = b""
    with suppress(ConnectionResetError):
        while piece := await reader.read(65_536):
            answer += piece
    return answer


async def drip(api: Api, head: bytes, *, byte: bytes = b" ", every_s: float = 0.1, times: int = 50) -> bytes:
    """Send a head, then single bytes slowly; return the last response before the service closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    answer = asyncio.create_task(_until_it_ends(reader))
    try:
        writer.write(head)
        for _ in range(times):
            await asyncio.wait([answer], timeout=every_s)
            if answer.done():
                break
            writer.write(byte)
        return await asyncio.wait_for(answer, 10)
    finally:
        answer.cancel()
        writer.transport.abort()


async def test_a_body_that_drips_is_given_up_and_others_are_served_meanwhile(hasty: Api) -> None:
    heads = [
        request("PUT", PATH, b"content-type: application/json", b"content-length: 1000"),
        request("POST", f"{PATH}/trigger", b"content-length: 1000"),
        request("POST", "/v1/fires:retry", b"content-type: application/json", b"content-length: 1000", b"idempotency-key: k"),
        request("POST", "/v1/tick", b"content-length: 1000"),
    ]
    began = time.perf_counter()
    dripping = [asyncio.create_task(drip(hasty, head)) for head in heads * 10]
    await asyncio.sleep(0.2)
    await is_well_before(hasty, dripping)
    for answer in await asyncio.gather(*dripping):
        assert first(answer)[0] == 408
    assert time.perf_counter() - began < 15


async def test_a_head_that_never_ends_is_given_up(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uvicorn_protocol, "HEAD_TIMEOUT_S", 0.3)
    began = time.perf_counter()
    heads = [b"G", b"GET /", b"GET / HTTP/1.1\r\nx: "]
    dripping = [asyncio.create_task(drip(api, head, byte=b"E" if head == b"G" else b"x")) for head in heads]
    silent = asyncio.create_task(drip(api, b"", byte=b""))
    assert [answer for answer in await asyncio.gather(*dripping, silent) if answer and first(answer)[0] != 400] == []
    assert time.perf_counter() - began < 15
    after_another = b"GET /health/live HTTP/1.1\r\n" + HOST + b"\r\nGET /health/l"
    assert (await drip(api, after_another, byte=b"x")).count(b"HTTP/1.1") == 1
    assert time.perf_counter() - began < 30


async def test_somebody_who_does_not_read_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uvicorn_protocol, "STALL_TIMEOUT_S", 0.3)
    async with connect("sqlite://") as t, serving(t) as api:
        for key in "abcdefgh":
            await api.put(f"/v1/schedules/u1/{key}", {"when": "@daily", "payload": "x" * 250_000})
        times, whole = 20, 20 * len((await api.get("/v1/schedules:export")).body)
        loop = asyncio.get_running_loop()
        with socket.socket() as lazy:
            lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            lazy.setblocking(False)
            await loop.sock_connect(lazy, ("127.0.0.1", api.port))
            await loop.sock_sendall(lazy, (b"GET /v1/schedules:export HTTP/1.1\r\n" + HOST + b"\r\n") * times)
            await asyncio.sleep(1)
            got = 0
            with suppress(ConnectionResetError):
                async with asyncio.timeout(10):
                    while piece := await loop.sock_recv(lazy, 1_000_000):
                        got += len(piece)
        assert got < whole
        await is_well(api)


async def test_what_takes_long_to_work_out_holds_nobody_up(hasty: Api) -> None:
    sundays = "/v1/preview?n=100&tz=Europe/Paris&when=0+0+29+2+*/7"
    previews = [asyncio.create_task(hasty.get(sundays)) for _ in range(2)]
    await asyncio.sleep(0.05)
    await is_well_before(hasty, previews)
    assert [len((await preview).json["next"]) for preview in previews] == [100, 100]


async def test_more_than_there_is_room_for_is_told_to_come_back(hasty: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "MAX_REQUESTS", 2)
    head = request("PUT", PATH, b"content-type: application/json", b"content-length: 1000")
    dripping = [asyncio.create_task(drip(hasty, head)) for _ in range(4)]
    await asyncio.wait(dripping, timeout=BODY_S, return_when=asyncio.FIRST_COMPLETED)  # two are inside, two are told so
    answer = await hasty("GET", "/v1/schedules", check=False)
    assert (answer.status, answer.is_problem, answer.headers["retry-after"]) == (503, True, "5")
    await asyncio.gather(*dripping)
    await is_well(hasty)


async def test_one_token_does_not_take_the_room_of_others(t: Tickler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "MAX_REQUESTS_OF_CALLER", 3)
    greedy, other = [(await t.tokens.create(["read", "write"]))[1] for _ in range(2)]
    head = request(
        "PUT", PATH, b"content-type: application/json", b"content-length: 9", b"authorization: Bearer " + greedy.encode()
    )
    async with serving(t) as api:
        slow = [await asyncio.open_connection("127.0.0.1", api.port) for _ in range(3)]
        for _, writer in slow:
            writer.write(head)
        async with asyncio.timeout(10):
            while (refused := await api.bearing(greedy).get("/v1/schedules")).status == 200:
                await asyncio.sleep(0.01)
        assert (refused.status, refused.is_problem, refused.headers["retry-after"]) == (429, True, "1")
        assert (await api.bearing(other).get("/v1/schedules")).status == 200
        assert (await api.get("/v1/schedules")).status == 401
        for _, writer in slow:
            writer.transport.abort()
        async with asyncio.timeout(10):
            while (await api.bearing(greedy).get("/v1/schedules")).status == 429:
                await asyncio.sleep(0.01)


async def test_strangers_take_no_stylesheet_from_those_who_are_let_in(t: Tickler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "MAX_REQUESTS_OF_CALLER", 0)
    await t.tokens.create(["read"])
    async with serving(t) as api:
        assert (await api.get("/login")).status == 429
        assert (await api.get("/static/style.css")).status == 200


async def test_many_who_ask_whether_it_is_ready_share_one_look_at_the_store(
    t: Tickler, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    async def slow() -> None:
        nonlocal looks
        looks += 1
        await asyncio.sleep(0.05)

    monkeypatch.setattr(t.store.index, "next_due", slow)
    answers = await asyncio.gather(*(api.get("/health/ready") for _ in range(50)))
    assert ({answer.status for answer in answers}, looks) == ({200}, 1)


async def test_a_caller_has_so_many_streams_and_no_more(t: Tickler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "MAX_STREAMS", 2)
    texts = [(await t.tokens.create(["read"]))[1] for _ in range(2)]
    async with serving(t) as api, AsyncExitStack() as streams:
        first, second = (api.bearing(text) for text in texts)
        for asking in (first, first, second):
            response = await streams.enter_async_context(asking.session.get(asking.url("/v1/live"), headers=asking.headers))
            assert response.status == 200
        refused = await first.get("/v1/live")
        assert (refused.status, refused.is_problem, refused.headers["retry-after"]) == (429, True, "1")
        assert (await first.get("/v1/stats")).status == 200
        await streams.aclose()
        async with asyncio.timeout(10):
            while (again := await first("HEAD", "/v1/live")).status == 429:
                await asyncio.sleep(0.01)
        assert again.status == 200


async def test_who_watches_over_it_is_answered_however_much_is_asked(t: Tickler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "MAX_REQUESTS", 0)
    monkeypatch.setattr(gateway, "MAX_REQUESTS_OF_CALLER", 0)
    async with serving(t) as api:
        assert (await api("GET", "/v1/schedules", check=False)).status == 503
        for path in ("/health/live", "/health/ready"):
            assert (await api.get(path)).status == 200


async def test_previews_of_one_caller_hold_up_neither_others_nor_what_else_runs_on_threads(
    t: Tickler, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def slowly(when: When, *args: Any) -> Any:
        assert when.tz == "UTC" or go_on.wait(20)
        return marked(when, *args)

    monkeypatch.setattr(schedules, "marked", slowly)
    greedy, other = [(await t.tokens.create(["read"]))[1] for _ in range(2)]
    async with serving(t) as api:
        path = "/v1/preview?when=@daily&tz=Europe/Paris"
        many = [asyncio.create_task(api.bearing(greedy).get(path)) for _ in range(60)]
        try:
            async with asyncio.timeout(10):
                await asyncio.sleep(0.1)
                assert await asyncio.to_thread(lambda: 1) == 1
                assert (await api.bearing(other).get("/v1/preview?when=@daily")).status == 200
            assert not any(task.done() for task in many)
        finally:
            go_on.set()
        assert {answer.status for answer in await asyncio.gather(*many)} == {200}


async def test_many_slow_clients_hold_nobody_up(t: Tickler) -> None:
    head = request("PUT", PATH, b"content-type: application/json", b"content-length: 1000")
    async with serving(t) as api:
        dripping = [asyncio.create_task(drip(api, head)) for _ in range(200)]
        await asyncio.sleep(0.2)
        await is_well_before(api, dripping)
        for task in dripping:
            task.cancel()
        await asyncio.gather(*dripping, return_exceptions=True)


# The HTTP protocol.

GARBAGE = {
    "nothing like it": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "only line ends": b"\r\n" * 10 + b"x\r\n\r\n",
    "another protocol": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a header without a colon": b"GET / HTTP/1.1\r\nhost localhost\r\n\r\n",
    "a NUL in a header": b"GET /v1/schedules HTTP/1.1\r\nhost: localhost\r\nx: a\0b\r\n\r\n",
    "a NUL in the path": b"GET /v1/\0 HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "a space in the path": b"GET /v1/ x HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "a length that is none": b"PUT /v1/schedules/u1/a HTTP/1.1\r\nhost: localhost\r\ncontent-length: x\r\n\r\n",
    "a negative length": b"PUT /v1/schedules/u1/a HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
    "two lengths": b"PUT /v1/schedules/u1/a HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
    "a chunk that is none": (
        b"PUT /v1/schedules/u1/a HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"transfer-encoding: chunked\r\n\r\nzz\r\n"
    ),
    "a length and chunks": (
        b"PUT /v1/schedules/u1/a HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"
        b"GET /v1/tick HTTP/1.1\r\nhost: localhost\r\n\r\n"
    ),
}


@pytest.mark.parametrize("sent", GARBAGE.values(), ids=GARBAGE)
async def test_what_is_no_request_gets_a_problem_for_an_answer(api: Api, sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uvicorn_protocol, "HEAD_TIMEOUT_S", 1.0)
    answer = await api.bytes_for(sent)
    if answer:
        assert 400 <= first(answer)[0] < 500
        assert b"200 OK" not in answer
    await is_well(api)


async def test_a_connection_that_is_half_closed_breaks_nothing(api: Api) -> None:
    whole = request("GET", "/v1/schedules")
    partly = request("PUT", PATH, b"content-type: application/json", b"content-length: 100", body=b'{"when"')
    for sent in (whole, partly, b"GET /v1", b""):
        answer = await api.bytes_for(sent, half_close=True)
        assert b" 500 " not in answer
    await is_well(api)


async def test_clients_that_go_away_break_nothing(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    heads = [
        request("PUT", PATH, b"content-type: application/json", b"content-length: 100", body=b'{"when"'),
        request("POST", f"{PATH}/trigger", b"content-length: 100", b"idempotency-key: k"),
        request("POST", "/v1/schedules:import", b"content-length: 100", body=b'{"owner"'),
        request("GET", "/v1/schedules:export"),
        request("GET", "/v1/live"),
    ]
    for head in heads:
        _, writer = await asyncio.open_connection("127.0.0.1", api.port)
        writer.write(head)
        await asyncio.sleep(0.02)
        writer.transport.abort()
    await asyncio.sleep(0.05)
    await is_well(api)
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize("protocol", uvicorn_protocol.PROTOCOLS)
async def test_answers_are_sent_at_once(t: Tickler, protocol: Any) -> None:
    """Also if the listening socket names no protocol, which asyncio relies on."""
    options: list[int] = []

    class Seen(protocol):  # type: ignore[misc]
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            options.append(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    async with serving(t, protocol=Seen) as api:
        assert (await api.get("/health/live")).status == 200
    assert options == [1]


async def test_requests_one_behind_the_other_are_answered_in_order(api: Api) -> None:
    paths = ["/health/live", "/v1/nothing", "/v1/schedules", "/health/ready"]
    sent = b"".join(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode() for path in paths[:-1]) + request("GET", paths[-1])
    answer = await api.bytes_for(sent)
    assert re.findall(rb"HTTP/1\.1 (\d+)", answer) == [b"200", b"404", b"200", b"200"]


async def test_a_body_where_nobody_reads_one_is_refused(api: Api) -> None:
    for path in ("/v1/schedules", "/v1/live", "/v1/schedules:export", "/health/live", "/v1/tick"):
        answer = await api("GET", path, in_pieces(b"x" * 200_000, 100))
        assert (answer.status, answer.is_problem) == (400, True)
    assert (await api("DELETE", PATH, b"{1}")).status == 400


async def test_upgrades_are_not_taken(api: Api) -> None:
    for upgrade in (b"websocket", b"h2c"):
        sent = request(
            "GET",
            "/v1/schedules",
            b"connection: upgrade",
            b"upgrade: " + upgrade,
            b"sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==",
            b"sec-websocket-version: 13",
        )
        async with asyncio.timeout(10):
            reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
            writer.write(sent)
            assert b"101" not in await reader.readline()
            writer.transport.abort()
    await is_well(api)


# Pages.


@pytest.mark.parametrize(
    "query",
    [
        "after=x",
        "after=%00",
        "owner=%FF",
        "owner=%00",
        "key=%0A&owner=u1",
        "state=no",
        "notice=%3Cscript%3E",
        "owner=" + "x" * 600,
        "after=" + "9" * 300,
        "next=%00",
        "after=1-%F0%9F%98%80",
        "a&b&&=;",
    ],
)
async def test_pages_do_not_break_either(t: Tickler, query: str) -> None:
    async with serving(t) as api:
        for path in (
            "/",
            "/schedules",
            "/failed",
            "/failed/retry-all",
            "/audit",
            "/doctor",
            "/forecast",
            "/login",
            "/new-schedule",
            "/schedules/%F0%9F%98%80/x",
            "/schedules/u1/%00",
            "/schedules/u1/%0A/edit",
            "/static/..%2F..%2Fdoor.py",
        ):
            answer = await api("GET", f"{path}?{query}", headers={"accept": "text/html"})
            assert b"<script>" not in answer.body


async def test_forms_with_nonsense_in_them_are_answered_with_a_page(t: Tickler, clock: ManualClock) -> None:
    async with serving(t) as api:
        await api.put(PATH, {"when": "@daily"})
        page = await api("GET", "/login", headers={"accept": "text/html"})
        token = page.body.partition(b'name="form_token" value="')[2][:64].decode()
        for fields in (
            "owner=u1&key=a&when=no&kind=none",
            "owner=&key=&when=&kind=",
            "owner=%00&key=a&when=@daily&kind=none",
            "owner=u1&key=a&when=@daily&kind=http&to=%00",
            "owner=u1&key=a&when=@daily&kind=none&payload=%5B%5B",
            "owner=u1&key=a&when=@daily&kind=none&payload=" + "%5B" * 5_000,
            "owner=u1&key=a&when=@daily&kind=none&attempts=" + "9" * 5_000,
            "owner=u1&key=a&when=@daily&kind=none&attempts=1e999",
            "owner=u1&key=a&when=@daily&kind=none&spread=NaN",
            "owner=u1&key=a&when=@daily&kind=none&starts_at=x",
            "owner=u1&key=a&when=@daily&kind=none&version=1&tz=%2e%2e",
            "owner=u1&key=a&when=@daily&kind=none&payload=%22%5Cud800%22",
        ):
            for path in ("/new-schedule", "/schedules/u1/digest/edit"):
                body = f"form_token={token}&{fields}".encode()
                headers = {"content-type": "application/x-www-form-urlencoded", "accept": "text/html"}
                assert 400 <= (await api("POST", path, body, headers=headers)).status < 500, fields[:80]
