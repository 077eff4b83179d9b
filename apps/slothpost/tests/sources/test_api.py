"""Requests to sources: what their answers mean, and what a hostile one cannot do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta

import aiohttp
import msgspec
import pytest
from aiohttp import web

from slothpost.errors import InvalidField
from slothpost.sources import api
from slothpost.sources.api import MAX_ANSWER_BYTES, MOST_PAUSE, Api, Call, has_next_page, poll_interval
from slothpost.sources.source_errors import Forbidden, Missing, SourceError, Throttled, TokenRejected
from slothpost.sources.source_settings import SourceSettings
from slothpost.standins.loopback import Loopback

NOW = datetime(2027, 3, 1, 8, 0, tzinfo=UTC)
TOKEN = "github_pat_secret"

Answering = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """Answers as a test says, and keeps what it was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[web.Request] = []
        self.answer: Answering = self._nothing

    async def _nothing(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({})

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        return await self.answer(request)

    def answers(self, status: int, content: object = None, **headers: str) -> None:
        async def answer(request: web.Request) -> web.StreamResponse:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return web.Response(body=msgspec.json.encode(content), status=status, headers=named)

        self.answer = answer


@pytest.fixture
async def servers() -> AsyncIterator[list[Server]]:
    """Two of them, at addresses of their own."""
    started = []
    found = [Server(), Server()]
    for server in found:
        loopback = Loopback()
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", server.handle)
        server.url = await loopback.start(app)
        started.append(loopback)
    yield found
    for loopback in started:
        await loopback.stop()


@pytest.fixture
def server(servers: list[Server]) -> Server:
    return servers[0]


@pytest.fixture
def asking(server: Server) -> Api:
    return Api("GitHub", server.url, aiohttp.ClientSession, lambda: NOW)


async def test_a_request_has_its_token_its_query_and_its_etag(server: Server, asking: Api) -> None:
    await asking.send(Call(path="/user/repos", token=TOKEN, query={"a": "b c"}, etag='"e"'))
    (request,) = server.asked
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert (request.headers["if-none-match"], request.query["a"]) == ('"e"', "b c")
    assert request.headers["user-agent"] == "slothpost"


@pytest.mark.parametrize(
    ("status", "content", "kind", "text"),
    [
        (401, {"message": "Bad credentials"}, TokenRejected, "GitHub does not accept the connection any more: Bad credentials"),
        (403, {"message": "Resource not accessible"}, Forbidden, "GitHub refuses: Resource not accessible"),
        (404, {"message": "Not Found"}, Missing, "GitHub does not find it: Not Found"),
        (422, {"message": "Validation Failed"}, SourceError, "GitHub failed: Validation Failed"),
        (400, {"error": "invalid_grant", "error_description": "Used before"}, SourceError, "GitHub failed: Used before"),
        (500, {"error": {"code": "internal_server_error"}}, SourceError, "GitHub failed: internal_server_error"),
        (502, "<html>", SourceError, "GitHub failed: status 502"),
        (418, {"message": "x\x1b[0m" + "y" * 900}, SourceError, "GitHub failed: x[0m" + "y" * 296),
        (429, {}, Throttled, "GitHub asks to wait: status 429"),
        (403, {"message": "You have exceeded a secondary rate limit."}, Throttled, "GitHub asks to wait: You have exceeded a"),
    ],
)
async def test_each_status_has_its_meaning_with_the_words_of_the_source(
    server: Server, asking: Api, status: int, content: object, kind: type[SourceError], text: str
) -> None:
    server.answers(status, content)
    with pytest.raises(SourceError) as raised:
        await asking.send(Call(path="/x", token=TOKEN))
    assert type(raised.value) is kind
    assert str(raised.value).startswith(text)
    assert TOKEN not in repr(raised.value)


@pytest.mark.parametrize(
    ("headers", "until"),
    [
        ({"retry_after": "90"}, timedelta(seconds=90)),
        ({"x_ratelimit_reset": str(int((NOW + timedelta(minutes=20)).timestamp()))}, timedelta(minutes=20)),
        ({"retry_after": "5"}, timedelta(minutes=1)),
        ({"x_ratelimit_reset": "1"}, timedelta(minutes=1)),
        ({}, timedelta(minutes=1)),
        ({"retry_after": "99999999"}, MOST_PAUSE),
        ({"retry_after": "9" * 40}, timedelta(minutes=1)),
        ({"retry_after": "-5", "x_ratelimit_reset": "soon"}, timedelta(minutes=1)),
        ({"retry_after": "٣"}, timedelta(minutes=1)),
    ],
)
async def test_a_limit_lasts_as_long_as_the_source_says_within_reason(
    server: Server, asking: Api, headers: dict[str, str], until: timedelta
) -> None:
    server.answers(429, {}, **headers)
    with pytest.raises(Throttled) as raised:
        await asking.send(Call(path="/x"))
    assert raised.value.until - NOW in (until, timedelta(minutes=1))
    if headers.get("retry_after", "").isascii():
        assert raised.value.until - NOW == until


async def test_a_redirect_is_followed_on_the_same_host_only(servers: list[Server], asking: Api) -> None:
    server, other = servers

    async def moved(request: web.Request) -> web.StreamResponse:
        if request.path == "/repos/old/name":
            raise web.HTTPMovedPermanently(f"{server.url}/repositories/7")
        return web.json_response({"path": request.path})

    server.answer = moved
    answer = await asking.send(Call(path="/repos/old/name", token=TOKEN))
    assert msgspec.json.decode(answer.body) == {"path": "/repositories/7"}

    for target in (f"{other.url}/x", "http://169.254.169.254/", "//example.com/", "file:///etc/passwd"):
        server.answers(302, {}, location=target)
        with pytest.raises(SourceError, match="answered with a redirect"):
            await asking.send(Call(path="/x", token=TOKEN))
    assert not other.asked, "it never learns the token"

    server.answers(307, {}, location="/again")
    before = len(server.asked)
    with pytest.raises(SourceError, match="answered with a redirect"):
        await asking.send(Call(path="/again"))
    assert len(server.asked) - before == 3
    with pytest.raises(SourceError, match="answered with a redirect"):
        await asking.send(Call(path="/hooks", method="POST", json={}))
    assert len(server.asked) - before == 4, "what changes something is not repeated elsewhere"


async def test_an_answer_without_end_is_cut(server: Server, asking: Api) -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        sent = 0
        while sent < MAX_ANSWER_BYTES + 2_000_000:
            await response.write(b" " * 1_000_000)
            sent += 1_000_000
        return response

    server.answer = endless
    with pytest.raises(SourceError, match="answered with more than 10 MB"):
        await asking.send(Call(path="/x"))


async def test_a_source_that_does_not_answer_is_not_waited_for(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "TIMEOUT_S", 0.2)
    asking = Api("GitHub", server.url, aiohttp.ClientSession, lambda: NOW)
    silence = asyncio.Event()

    async def silent(request: web.Request) -> web.StreamResponse:
        await silence.wait()
        return web.Response()

    server.answer = silent
    with pytest.raises(SourceError, match=r"GitHub did not answer within 0\.2 s"):
        await asking.send(Call(path="/x"))
    silence.set()


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "http://nowhere.invalid"])
async def test_a_source_that_is_not_there_could_not_be_reached(url: str) -> None:
    asking = Api("GitHub", url, aiohttp.ClientSession, lambda: NOW)
    with pytest.raises(SourceError, match="GitHub could not be reached"):
        await asking.send(Call(path="/x", token=TOKEN))


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"id": "seven"}', b"\xff"])
async def test_an_answer_that_is_not_as_documented_is_an_error(server: Server, asking: Api, body: bytes) -> None:
    class Expected(msgspec.Struct):
        id: int

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(body=body)

    server.answer = answer
    with pytest.raises(SourceError, match="GitHub sent an answer that cannot be read"):
        await asking.read(Call(path="/x"), Expected)


async def test_what_a_source_asks_for_is_read_from_its_headers(server: Server, asking: Api) -> None:
    server.answers(200, {}, x_poll_interval="120", link='<https://evil.example/?page=2>; rel="next"')
    answer = await asking.send(Call(path="/x"))
    assert (poll_interval(answer), has_next_page(answer)) == (timedelta(seconds=120), True)
    server.answers(200, {}, x_poll_interval="never", link='<x>; rel="prev"')
    answer = await asking.send(Call(path="/x"))
    assert (poll_interval(answer), has_next_page(answer)) == (timedelta(0), False)


@pytest.mark.parametrize(
    "url",
    ["", "not a url", "http://", "http://[::1", "ftp://example.com", "https://example.com?x=1", "https://a\nb", "http://a:99999"],
)
def test_an_address_of_an_api_that_is_none_is_refused_when_the_application_starts(url: str) -> None:
    with pytest.raises(InvalidField, match=r"itunes_url: .* is not an address"):
        SourceSettings(itunes_url=url)


def test_no_token_is_in_the_repr_of_a_call() -> None:
    assert repr(Call(path="/x", token=TOKEN, form={"client_secret": TOKEN})) == "<GET /x>"
