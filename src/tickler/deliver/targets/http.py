"""Delivers to an HTTP endpoint: a signed POST, limited in time and size whatever the receiver does."""

from __future__ import annotations

import asyncio
import errno
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from html import escape
from http import HTTPStatus
from urllib.parse import quote, quote_plus

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver
from aiohttp.http_exceptions import LineTooLong
from yarl import URL

from tickler.clock import Clock
from tickler.deliver.address_guard import AddressGuard, AddressRefused
from tickler.deliver.deadlines import Timeout, timeouts
from tickler.deliver.dns_resolver import SystemResolver
from tickler.deliver.exhaustion import exhaustion
from tickler.deliver.retry_after import read_retry_after
from tickler.deliver.targets.bounded_connector import MAX_RESPONSE_BYTES, READ_AHEAD_BYTES, BoundedConnector
from tickler.errors import StoreUnavailable
from tickler.model.delivery import Delivery, Obstacle, Outcome, Verdict
from tickler.model.fire import MAX_ANSWER_BYTES
from tickler.model.payload import encodable_payload
from tickler.model.target import REDACTED, HttpTarget
from tickler.version import VERSION
from tickler.webhooks.envelope import envelope, iso, passes_for_an_envelope
from tickler.webhooks.signature import sign

SecretsOf = Callable[[Delivery, HttpTarget], Awaitable[Sequence[str]]]
Unseal = Callable[[HttpTarget, str], HttpTarget]  # for an owner

CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 1.0  # for the rest of an answer, once its status is known
DNS_CACHE_S = 10

# The verdicts on statuses other than 2xx. Those not listed are retried:
#   3xx           redirects are not followed, they could lead anywhere; the receiver may be moving
#   400           receivers answer it to a bad signature, while a secret is being rotated
#   401 403 404 … a deploy may fix them
#   408 409 425 429 5xx  temporary by definition
VERDICTS: Mapping[int, Verdict] = {
    410: "gone",  # the receiver wants no more fires of this schedule
    413: "give_up",  # the body is too large, at every attempt
    414: "give_up",  # the URL is too long
    415: "give_up",  # the content type stays the same
    422: "give_up",  # understood and refused: the contents stay the same
    431: "give_up",  # the headers are too large
}

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(str).decode
_PLAIN = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@/-]+")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]+")
_ESCAPE = re.compile(r"%[0-9A-F]{2}")
_NO_SECRETS = frozenset({"accept", "accept-encoding", "accept-language", "content-type", "user-agent"})
_MIN_SECRET_LENGTH = 8
_LOOKALIKE = (
    "the payload looks like Tickler's own envelope (its type is 'schedule.fired'); signed, it would pass for another schedule's "
    "fire: change its type, or send it with body='json'"
)


class HttpDeliverer:
    """Sends fires to HTTP endpoints that `guard` allows.

    `unseal` decrypts the headers of a target, and `secrets_of` returns the secrets to sign with for that decrypted target.
    `resolver` looks names up, and is closed with the deliverer; the default is the system's. With `max_connections` at 0 the
    callers limit the number of connections. An attempt ends within its `timeout_s`, not counting the lookup of the secrets.
    """

    bounded = True

    def __init__(
        self,
        guard: AddressGuard,
        secrets_of: SecretsOf,
        unseal: Unseal,
        clock: Clock,
        *,
        max_connections: int = 0,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._guard = guard
        self._secrets_of = secrets_of
        self._unseal = unseal
        self._clock = clock
        self._max_connections = max_connections
        self._resolver = resolver
        self._checked_url = lru_cache(maxsize=4_096)(guard.check_url)
        self._timeouts = timeouts()
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        connector = BoundedConnector(
            self._guard, self._resolver or SystemResolver(), limit=self._max_connections, dns_cache_s=DNS_CACHE_S
        )
        # Nothing is decompressed: no zip bombs.
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers={"user-agent": f"Tickler/{VERSION}", "accept-encoding": "identity"},
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            read_bufsize=READ_AHEAD_BYTES,
        )

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            self._timeouts.close()
            await session.close()
            if self._resolver is not None:
                await self._resolver.close()

    async def deliver(self, delivery: Delivery, target: HttpTarget) -> Outcome:
        if self._session is None:
            raise RuntimeError("this deliverer is not open: await open() first")
        try:
            url = self._checked_url(target.url)
        except AddressRefused as refused:
            return Outcome(verdict="give_up", detail=str(refused))
        target = self._unseal(target, delivery.owner)
        body, content_type = _body(delivery, target)
        if target.body == "raw" and passes_for_an_envelope(body):
            return Outcome(verdict="give_up", detail=_LOOKALIKE)
        headers = {"content-type": content_type, **(target.headers or {})}
        headers |= {**(delivery.context or {}), **_headers(delivery)}
        timestamp_s = self._clock.now_ms() // 1000
        headers["webhook-timestamp"] = str(timestamp_s)
        try:
            secrets = await self._secrets_of(delivery, target)
        except StoreUnavailable as error:
            obstacle: Obstacle | None = "exhausted" if exhaustion(error) else None
            return Outcome(verdict="release", detail="could not read the signing secrets", obstacle=obstacle)
        headers["webhook-signature"] = sign(secrets, delivery.id, timestamp_s, body)
        seconds, timeout = _limits(delivery.timeout_s)
        try:
            with Timeout(self._timeouts, seconds) as limit:
                response = await self._session.post(url, data=body, headers=headers, timeout=timeout, allow_redirects=False)
        except (AddressRefused, aiohttp.ClientError, TimeoutError, OSError) as error:
            return _failed(error, url, delivery.timeout_s)
        try:
            answer = await _read_answer(response, limit.at)
        finally:
            if not response.closed:  # more is coming
                response.close()
        return self._outcome(response, _shown(answer, target.headers))

    def _outcome(self, response: aiohttp.ClientResponse, answer: str | None) -> Outcome:
        status = response.status
        if 200 <= status < 300:
            return Outcome(verdict="delivered", status=status, answer=answer)
        verdict = VERDICTS.get(status, "retry")
        detail = f"answered {status} {_phrase(status)}".rstrip()
        if verdict != "gone" and response.headers.get("webhook-delivery", "").strip().lower() == "abort-message":
            return Outcome(verdict="give_up", status=status, answer=answer, detail=f"{detail}, and asked for no retries")
        if verdict != "retry":
            return Outcome(verdict=verdict, status=status, answer=answer, detail=detail)
        if 300 <= status < 400:
            detail += ", and redirects are not followed: use the URL that it redirects to"
        retry_after_ms = read_retry_after(response.headers.get("retry-after"), self._clock.now_ms())
        return Outcome(verdict="retry", status=status, answer=answer, detail=detail, retry_after_ms=retry_after_ms)


def _body(delivery: Delivery, target: HttpTarget) -> tuple[bytes, str]:
    """Return the body and its content type."""
    if target.body == "json":
        return envelope(delivery), "application/json"
    encoded = _encode(encodable_payload(delivery))
    if encoded.startswith(b'"'):
        return _decode(encoded).encode(), "text/plain; charset=utf-8"
    return encoded, "application/json"


def _headers(delivery: Delivery) -> dict[str, str]:
    """Return headers that identify the fire without its body."""
    return {
        "webhook-id": delivery.id,
        "tickler-owner": _quoted(delivery.owner),
        "tickler-key": _quoted(delivery.key),
        "tickler-nominal-at": iso(delivery.nominal_at),
        "tickler-attempt": str(delivery.attempt),
    }


def _quoted(name: str) -> str:
    """Percent-encode a name so that every text survives in a header; most stay the same."""
    return name if _PLAIN.fullmatch(name) else quote(name, safe="!$&'()*+,;=:@/")


@lru_cache(maxsize=256)
def _limits(timeout_s: float) -> tuple[float, aiohttp.ClientTimeout]:
    """Return the time limit of an attempt: a little less than its timeout, so that a status that came in time is still read."""
    seconds = timeout_s - min(timeout_s / 10, 0.25)
    # aiohttp rounds up timeouts longer than its threshold.
    return seconds, aiohttp.ClientTimeout(total=None, sock_connect=min(seconds, CONNECT_TIMEOUT_S), ceil_threshold=float("inf"))


async def _read_answer(response: aiohttp.ClientResponse, until_s: float) -> bytes:
    """Read the beginning of the body, as far as it arrives soon. Errors are ignored: the status is known."""
    content = response.content
    if content.is_eof() and content.exception() is None:
        return content.read_nowait(MAX_ANSWER_BYTES)
    answer = b""
    try:
        async with asyncio.timeout_at(min(until_s, asyncio.get_running_loop().time() + ANSWER_TIMEOUT_S)):
            while len(answer) < MAX_ANSWER_BYTES and not content.at_eof():
                answer += await content.read(MAX_ANSWER_BYTES - len(answer))
    except (TimeoutError, aiohttp.ClientError, OSError, RuntimeError):  # RuntimeError: the connection was lost just before
        pass
    return answer


def _shown(answer: bytes, sent: Mapping[str, str] | None) -> str | None:
    """Return the answer as text to keep, without the header values that some receivers echo."""
    text = answer.decode(errors="replace").replace("\0", "")
    if sent and text:
        for secret in _secrets_in(sent, len(text)):
            text = _without(secret, text)
    if not text.isascii():  # a replacement character has three bytes
        text = text.encode()[:MAX_ANSWER_BYTES].decode(errors="ignore")
    return text or None


def _secrets_in(headers: Mapping[str, str], max_length: int) -> list[str]:
    """Return the header values and their words, as in 'Bearer …', in every spelling, the longest first. Values are cut to
    `max_length`, the length of the text to search.
    """
    values = [value[:max_length] for name, value in headers.items() if name not in _NO_SECRETS]
    words = {word for value in values for word in (value, *value.split()) if len(word) >= _MIN_SECRET_LENGTH}
    return sorted({form for word in words for form in (word, *_escaped(word))}, key=len, reverse=True)


def _escaped(word: str) -> set[str]:
    """Return the spellings of a word in JSON, URLs and HTML; none if there is nothing to escape."""
    if _UNRESERVED.fullmatch(word):
        return set()
    in_json = _encode(word).decode()[1:-1]
    in_urls = {quote(word, safe=""), quote(word), quote_plus(word)}
    in_urls |= {_ESCAPE.sub(lambda found: found[0].lower(), url) for url in in_urls}
    return {in_json, in_json.replace("/", r"\/"), escape(word), *in_urls}


def _without(secret: str, text: str) -> str:
    """Redact a secret, also where the answer was cut off in the middle of it."""
    text = text.replace(secret, REDACTED)
    start = max(len(text) - len(secret) + 1, 0)
    beginning = secret[:_MIN_SECRET_LENGTH]
    while (start := text.find(beginning, start)) >= 0:
        if secret.startswith(text[start:]):
            return text[:start] + REDACTED
        start += 1
    return text


def _phrase(status: int) -> str:
    """Return the standard phrase, not the receiver's: that could be any text."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _failed(error: Exception, url: URL, timeout_s: float) -> Outcome:
    """Return the outcome of a request without an answer. The errors' own texts contain URLs and received data: use none."""
    cause = error.os_error.__cause__ if isinstance(error, aiohttp.ClientConnectorError) else None
    for refused in (error, cause):
        if isinstance(refused, AddressRefused):
            return Outcome(verdict="give_up", detail=str(refused))
    if isinstance(error, aiohttp.ClientConnectorError) and (out_of := exhaustion(error)) is not None:
        return Outcome(verdict="release", detail=f"the worker could not connect: {out_of}", obstacle="exhausted")
    return Outcome(verdict="retry", detail=_no_connection(error, url, timeout_s) or _no_answer(error, timeout_s))


def _no_connection(error: Exception, url: URL, timeout_s: float) -> str | None:
    match error:
        case aiohttp.ConnectionTimeoutError():
            return f"could not connect to {url.raw_host} within {min(timeout_s, CONNECT_TIMEOUT_S):g} s"
        case aiohttp.ClientConnectorDNSError(os_error=TimeoutError() as late):
            return late.strerror
        case aiohttp.ClientConnectorDNSError():
            return f"could not resolve {url.raw_host}: {error.os_error.strerror or error.os_error}"
        case aiohttp.ClientConnectorCertificateError():
            reason = getattr(error.certificate_error, "verify_message", "") or "it is not valid"
            return f"the certificate of {url.raw_host} was rejected: {reason}"
        case aiohttp.ClientConnectorSSLError():
            return f"TLS with {url.raw_host} failed: {getattr(error.os_error, 'reason', None) or 'handshake error'}"
        case aiohttp.ClientConnectorError():
            return f"could not connect to {url.raw_host} port {url.port}: {_reason(error.os_error)}"
    return None


def _no_answer(error: Exception, timeout_s: float) -> str:
    match error:
        case TimeoutError():
            return f"no answer within {timeout_s:g} s"
        case aiohttp.ServerDisconnectedError():
            return "the receiver closed the connection without an answer"
        case aiohttp.ClientResponseError():
            cause = error.__cause__ and error.__cause__.__cause__
            return "the headers of the answer are too long" if isinstance(cause, LineTooLong) else "the answer is not valid HTTP"
        case OSError(errno=errno.EMSGSIZE):
            return f"received more than {MAX_RESPONSE_BYTES // 1024} KB without an answer"
        case OSError():
            return f"the connection was lost before the answer: {_reason(error)}"
    return f"the request failed: {type(error).__name__}"


def _reason(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else "unknown reason"
