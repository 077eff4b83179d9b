"""Callers without a valid token have low limits, and do not use up those of others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from server.served import Api, serving
from server.test_hostile import HOST, drip, first, is_well, request
from tickler import ManualClock, Tickler, connect
from tickler.access import bearer_tokens as tokens
from tickler.records.activity import Event
from tickler.server.api import system
from tickler.server.app import make_app
from tickler.server.event_stream import EventStream, events_of
from tickler.server.middleware import gateway, uvicorn_protocol
from tickler.server.settings import ServerSettings
from tickler.web import rate_limit, sessions

FORM = b"content-type: application/x-www-form-urlencoded"
HANG_S = 20


def sign_in(address: str, length: int = 9) -> bytes:
    """Return the head of a request from a proxy on this machine."""
    return request("POST", "/login", FORM, f"content-length: {length}".encode(), f"x-forwarded-for: {address}".encode())


@asynccontextmanager
async def slow_sign_ins(api: Api, *addresses: str) -> AsyncIterator[None]:
    """Open sign-ins that send no body; returns once the last one is being read."""
    opened = [await asyncio.open_connection("127.0.0.1", api.port) for _ in addresses]
    try:
        for address, (_, writer) in zip(addresses, opened, strict=True):
            writer.write(sign_in(address))
        await asyncio.sleep(0.1)
        yield
    finally:
        for _, writer in opened:
            writer.close()


def status_of(answer: bytes) -> int:
    return int(answer.split()[1])


async def status_of_sign_in(api: Api, address: str) -> int:
    """Post a foreign form: 403, once it is read."""
    return status_of(await api.bytes_for(sign_in(address, 3) + b"a=b"))


async def test_slow_sign_ins_from_one_address_lock_out_no_other(t: Tickler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "MAX_ADDRESS_SIGN_INS", 2)
    monkeypatch.setattr(gateway, "MAX_REQUESTS_OF_CALLER", 4)
    await t.tokens.create(["read"])
    async with serving(t) as api, slow_sign_ins(api, *["192.0.2.1"] * 8):
        assert await status_of_sign_in(api, "192.0.2.1") == 429
        assert await status_of_sign_in(api, "192.0.2.2") == 403
        assert (await api.get("/login")).status == 200


async def test_slow_sign_ins_from_everywhere_leave_room_for_all_else(t: Tickler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "MAX_SIGN_INS", 2)
    _, text = await t.tokens.create(["read"])
    async with serving(t) as api, slow_sign_ins(api, "192.0.2.1", "192.0.2.2", "192.0.2.3"):
        assert await status_of_sign_in(api, "192.0.2.4") == 429
        assert (await api.get("/login")).status == 200
        assert (await api.bearing(text).get("/v1/stats")).status == 200


async def test_those_without_a_token_have_room_by_address_and_all_together(t: Tickler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "MAX_REQUESTS_OF_ADDRESS", 2)
    monkeypatch.setattr(gateway, "MAX_REQUESTS_OF_CALLER", 3)
    await t.tokens.create(["read"])
    settings, inside, go_on = ServerSettings(port=0), 0, asyncio.Event()
    app: Any = make_app(t, settings)
    within = app._app

    async def slowly(scope: Any, receive: Any, send: Any) -> None:
        nonlocal inside
        inside += 1
        await go_on.wait()
        await within(scope, receive, send)

    app._app = slowly
    async with serving(t, settings, app=app) as api:
        asked = [
            asyncio.create_task(api("GET", "/login", headers={"x-forwarded-for": f"192.0.2.{last}"})) for last in (1, 1, 1, 2, 3)
        ]
        async with asyncio.timeout(HANG_S):
            while inside + sum(each.done() for each in asked) < len(asked):
                await asyncio.sleep(0.01)
        refused = [each.result().json["detail"] for each in asked if each.done()]
        go_on.set()
        assert sorted(refused) == [
            "at most 2 requests from one address at once: wait until one has ended",
            "at most 3 requests without a token at once: wait until one has ended",
        ]
        assert sorted([(await each).status for each in asked]) == [200, 200, 200, 429, 429]


async def test_a_sign_in_has_to_be_short_and_quick(t: Tickler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "SIGN_IN_TIMEOUT_S", 0.2)
    await t.tokens.create(["read"])
    async with serving(t) as api:
        assert status_of(await drip(api, sign_in("192.0.2.1", 1_000))) == 408
        long = b"a" * (gateway.MAX_SIGN_IN_BYTES + 1)
        assert status_of(await api.bytes_for(sign_in("192.0.2.1", len(long)) + long)) == 413


async def test_wrong_tokens_are_slowed_down_and_right_ones_are_not(t: Tickler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "MAX_FAILURES_A_MINUTE", 3)
    _, right = await t.tokens.create(["read"])
    async with serving(t) as api:
        wrong = api.bearing(right[:-1] + ("0" if right[-1] != "0" else "1"))
        assert [(await wrong.get("/v1/stats")).status for _ in range(3)] == [401] * 3
        refused = await wrong.get("/v1/stats")
        assert (refused.status, refused.is_problem) == (429, True)
        assert 1 <= int(refused.headers["retry-after"]) <= 21
        assert (await api.bearing(right).get("/v1/stats")).status == 200
        assert (await wrong.get("/v1/stats", x_forwarded_for="192.0.2.7")).status == 401
        form = await api("GET", "/login")
        proof = form.body.partition(b'name="form_token" value="')[2][:64].decode()
        shown = {"content-type": FORM.decode().partition(": ")[2], "accept": "text/html"}
        for text, status in (("tk_wrong", 429), (right, 303)):
            answer = await api("POST", "/login", f"form_token={proof}&token={text}".encode(), headers=shown)
            assert answer.status == status


@pytest.mark.parametrize("name", ["Host", "Authorization", "Origin", "Content-Type"])
async def test_a_header_that_says_who_or_what_comes_once(t: Tickler, name: str) -> None:
    async with serving(t) as api:
        for path in ("/v1/schedules", "/health/live"):
            twice = "".join(f"{name}: {value}\r\n" for value in ("localhost", "evil.example"))
            sent = b"GET %s HTTP/1.1\r\n%b%b\r\n" % (path.encode(), b"" if name == "Host" else HOST, twice.encode())
            status, problem = first(await api.bytes_for(sent))
            assert (status, problem["field"]) == (400, name.lower())


GARBLED = {
    "after a body": request("POST", "/login", FORM, b"content-length: 3", body=b"a=bGARBAGE\r\n\r\n"),
    "within an import": request("POST", "/v1/schedules:import", b"transfer-encoding: chunked", body=b"3\r\n{}\n\r\nzz\r\n"),
    "behind another": b"GET /v1/schedules HTTP/1.1\r\n" + HOST + b"\r\nGARBAGE\r\n\r\n",
}


@pytest.mark.parametrize("protocol", uvicorn_protocol.PROTOCOLS, ids=lambda protocol: protocol.__name__)
async def test_a_request_that_turns_into_garbage_is_a_line_in_the_log(
    t: Tickler, protocol: type[asyncio.Protocol], caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(t, protocol=protocol) as api:
        for sent in GARBLED.values():
            with suppress(ConnectionResetError):
                await api.bytes_for(sent)
        await is_well(api)
    said = [record for record in caplog.records if record.levelno > logging.INFO]
    assert [record.getMessage() for record in said if record.exc_info or "\n" in record.getMessage()] == []


async def test_a_stream_ends_within_five_seconds_of_its_token(
    clock: ManualClock, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streams check every two seconds, and the result is cached for less than three."""
    assert system.PULSE_S * 1_000 + max(tokens.REMEMBERED_MS, sessions.CACHE_MS) < 5_000
    monkeypatch.setattr("tickler.server.api.system.PULSE_S", 0.02)
    async with connect(sqlite_url, clock=clock) as t, connect(sqlite_url, clock=clock) as other, serving(t) as api:
        made, text = await other.tokens.create(["read"])
        bearing = api.bearing(text)
        async with bearing.session.get(api.url("/v1/live"), headers=bearing.headers) as response:
            assert await response.content.readline()
            await other.tokens.revoke(made.id)
            clock.advance(3)
            async with asyncio.timeout(HANG_S):
                await response.content.read()


async def test_a_stream_looks_at_its_token_however_much_happens() -> None:
    live = EventStream()
    with live.subscribe() as queue:

        async def much() -> None:
            while True:
                live.publish(Event(owner="u1", key="k", nominal_at=0, at=0, attempt=1, happened="delivered"))
                await asyncio.sleep(0.005)

        happening = asyncio.create_task(much())
        try:
            async with asyncio.timeout(HANG_S):
                async for event in events_of(queue, None, 0.05):
                    if event is None:
                        break
        finally:
            happening.cancel()


def test_the_settings_say_who_is_a_proxy() -> None:
    assert ServerSettings.from_environment({"TICKLER_PROXIES": "10.0.0.0/8, 192.0.2.1"}).proxies == ("10.0.0.0/8", "192.0.2.1")
    assert ServerSettings.from_environment({"TICKLER_PROXIES": ""}).proxies == ()
