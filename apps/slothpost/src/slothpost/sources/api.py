"""Requests to the API of a source, whose host the operator chose: conditional, limited, and with errors for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Literal, TypeVar

import aiohttp
import msgspec
from yarl import URL

from slothpost.sources import untrusted
from slothpost.sources.source_errors import Forbidden, Missing, SourceError, Throttled, TokenRejected
from tickler.errors import AddressRefused

MAX_ANSWER_BYTES = 10 * 1024 * 1024  # a page of a hundred pull requests can have several megabytes
TIMEOUT_S = 20.0
CONNECT_TIMEOUT_S = 10.0
LEAST_PAUSE = timedelta(minutes=1)  # after a limit of which the source does not say how long it lasts
MOST_PAUSE = timedelta(days=1)
MAX_REDIRECTS = 2

OpenSession = Callable[[], aiohttp.ClientSession]
Method = Literal["GET", "POST", "DELETE"]
T = TypeVar("T")

_REDIRECTS = frozenset({301, 302, 307, 308})


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request. `etag` makes it conditional: the answer is then 304 if nothing has changed."""

    path: str
    method: Method = "GET"
    token: str | None = None
    query: Mapping[str, str] = {}
    form: Mapping[str, str] | None = None
    json: Mapping[str, object] | None = None
    etag: str | None = None

    def __repr__(self) -> str:
        return f"<{self.method} {self.path}>"  # the rest has tokens


class Answer(msgspec.Struct, frozen=True):
    """An answer of 2xx, or 304. Names of headers are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_unchanged(self) -> bool:
        return self.status == HTTPStatus.NOT_MODIFIED

    @property
    def etag(self) -> str | None:
        return self.headers.get("etag")


class Api:
    """Sends requests to one source. `refuses` are the statuses, beside 401, by which it rejects a token."""

    def __init__(
        self,
        name: str,
        url: str,
        open_session: OpenSession,
        now: Callable[[], datetime],
        *,
        headers: Mapping[str, str] | None = None,
        refuses: frozenset[int] = frozenset(),
    ) -> None:
        self._name = name
        self._url = url.rstrip("/")
        self._open_session = open_session
        self._now = now
        self._headers = {"user-agent": "slothpost", "accept": "application/json", **(headers or {})}
        self._refuses = refuses | {HTTPStatus.UNAUTHORIZED}
        self._timeout = aiohttp.ClientTimeout(total=TIMEOUT_S, connect=CONNECT_TIMEOUT_S)

    async def read(self, call: Call, kind: type[T]) -> T:
        """Return the body of an answer; `SourceError` if it is not as documented."""
        return self.decode(await self.send(call), kind)

    def decode(self, answer: Answer, kind: type[T]) -> T:
        try:
            return untrusted.decoded(answer.body, kind)
        except untrusted.Unreadable as error:
            raise SourceError(f"{self._name} sent an answer that cannot be read: {error}") from None

    async def send(self, call: Call) -> Answer:
        """Return the answer, or raise what its status means. Redirects are followed on the same host only."""
        url = URL(self._url + call.path)
        for _ in range(1 + MAX_REDIRECTS):
            answer = await self._answer(url, call)
            if answer.status not in _REDIRECTS:
                return self._checked(answer)
            target = _redirected(url, answer.headers.get("location", ""))
            if target is None or call.method != "GET":
                break
            url = target
        raise SourceError(f"{self._name} answered with a redirect: check the address of its API")

    async def _answer(self, url: URL, call: Call) -> Answer:
        headers = dict(self._headers)
        if call.token is not None:
            headers["authorization"] = f"Bearer {call.token}"
        if call.etag is not None:
            headers["if-none-match"] = call.etag
        try:
            async with (
                self._open_session() as session,
                session.request(
                    call.method,
                    url.update_query(call.query),
                    headers=headers,
                    data=call.form,
                    json=call.json,
                    allow_redirects=False,
                    timeout=self._timeout,
                ) as response,
            ):
                body = bytearray()
                while len(body) <= MAX_ANSWER_BYTES and (chunk := await response.content.read(65_536)):
                    body += chunk
                answer = Answer(response.status, {name.lower(): value for name, value in response.headers.items()}, bytes(body))
        except TimeoutError:
            raise SourceError(f"{self._name} did not answer within {TIMEOUT_S:g} s") from None
        except (aiohttp.ClientError, OSError, AddressRefused, ValueError):  # its words may have what the request had
            raise SourceError(f"{self._name} could not be reached") from None
        if len(answer.body) > MAX_ANSWER_BYTES:
            raise SourceError(f"{self._name} answered with more than {MAX_ANSWER_BYTES // 1024 // 1024} MB")
        return answer

    def _checked(self, answer: Answer) -> Answer:
        status = answer.status
        if answer.is_unchanged or HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            return answer
        said = _said(answer)
        if _is_throttled(answer, said):
            raise Throttled(f"{self._name} asks to wait: {said}", self._until(answer))
        if status in self._refuses:
            raise TokenRejected(f"{self._name} does not accept the connection any more: {said}")
        if status == HTTPStatus.FORBIDDEN:
            raise Forbidden(f"{self._name} refuses: {said}")
        if status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
            raise Missing(f"{self._name} does not find it: {said}")
        raise SourceError(f"{self._name} failed: {said}")

    def _until(self, answer: Answer) -> datetime:
        """Return when a limit ends: after so many seconds, or at an instant that the source names."""
        now = self._now()
        after, reset = answer.headers.get("retry-after", ""), answer.headers.get("x-ratelimit-reset", "")
        if after.isdecimal() and len(after) < 9:
            until = now + timedelta(seconds=int(after))
        elif reset.isdecimal() and len(reset) < 12:
            until = datetime.fromtimestamp(int(reset), UTC)
        else:
            until = now
        return min(max(until, now + LEAST_PAUSE), now + MOST_PAUSE)


def poll_interval(answer: Answer) -> timedelta:
    """Return how long a source asks to wait before it is polled again."""
    given = answer.headers.get("x-poll-interval", "")
    return min(timedelta(seconds=int(given)), MOST_PAUSE) if given.isdecimal() and len(given) < 9 else timedelta(0)


def has_next_page(answer: Answer) -> bool:
    """Tell whether GitHub has another page. Its number is counted here: the address in the header is not followed."""
    return 'rel="next"' in answer.headers.get("link", "")


def _redirected(url: URL, location: str) -> URL | None:
    """Return where a redirect leads; None if that is another host, which must not learn the token."""
    try:
        target = url.join(URL(location))
        return target if target.origin() == url.origin() else None
    except ValueError:
        return None


def _is_throttled(answer: Answer, said: str) -> bool:
    if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
        return True
    headers = answer.headers
    is_limit = headers.get("x-ratelimit-remaining") == "0" or "retry-after" in headers or "rate limit" in said.lower()
    return answer.status == HTTPStatus.FORBIDDEN and is_limit


class _Error(msgspec.Struct):
    message: str | None = None
    code: str | None = None


class _Said(msgspec.Struct):
    """GitHub has a message at the top, Vercel an object, and OAuth two texts."""

    message: str | None = None
    error: _Error | str | None = None
    error_description: str | None = None


def _said(answer: Answer) -> str:
    """Return the words of an error, fit to be shown."""
    try:
        found = untrusted.decoded(answer.body, _Said)
    except untrusted.Unreadable:
        return f"status {answer.status}"
    error = found.error.message or found.error.code if isinstance(found.error, _Error) else found.error
    return untrusted.line(found.message or found.error_description or error, 300) or f"status {answer.status}"
