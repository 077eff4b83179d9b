"""Delivers to an HTTP endpoint: a signed POST, bounded in time and size whatever the other side does."""

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

CONNECT_S = 10.0
ANSWER_S = 1.0  # for the rest of an answer, once its status is known
DNS_CACHE_S = 10

# What an answer other than 2xx means. What is not listed is tried again:
#   3xx           a redirect is not followed, it could lead anywhere; the receiver may be moving
#   400           receivers say it of a signature, while a secret is being changed
#   401 403 404 … are put right by a deploy
#   408 409 425 429 5xx  say themselves that they pass
VERDICTS: Mapping[int, Verdict] = {
    410: "gone",  # the receiver wants no more of these, ever
    413: "give_up",  # too large, and every attempt is as large
    414: "give_up",  # the address is too long, and stays so
    415: "give_up",  # every attempt has the same content type
    422: "give_up",  # read, understood and refused: the contents stay as they are
    431: "give_up",  # the headers are too large, and stay so
}

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(str).decode
_PLAIN = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@/-]+")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]+")
_ESCAPE = re.compile(r"%[0-9A-F]{2}")
_NO_SECRETS = frozenset({"accept", "accept-encoding", "accept-language", "content-type", "user-agent"})
_MIN_SECRET_LENGTH = 8
_LOOKALIKE = (
    "the payload reads like a message of Tickler's own (its type is 'schedule.fired'), and signed it would pass for another's "
    "fire: change its type, or send it with body='json'"
)


class HttpDeliverer:
    """Sends fires to HTTP endpoints that `guard` allows.

    `unseal` gives a target with its headers readable, and that target is what `secrets_of` gets, to say what to sign with.
    `resolver` looks names up, and is closed with it; by default the system does. With `most_connections` at 0 there is no
    limit but the callers'. An attempt ends within its `timeout_s`, the secrets not counted.
    """

    bounded = True

    def __init__(
        self,
        guard: AddressGuard,
        secrets_of: SecretsOf,
        unseal: Unseal,
        clock: Clock,
        *,
        most_connections: int = 0,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._guard = guard
        self._secrets_of = secrets_of
        self._unseal = unseal
        self._clock = clock
        self._most_connections = most_connections
        self._resolver = resolver
        self._checked_url = lru_cache(maxsize=4_096)(guard.check_url)
        self._timeouts = timeouts()
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        connector = BoundedConnector(
            self._guard, self._resolver or SystemResolver(), limit=self._most_connections, dns_cache_s=DNS_CACHE_S
        )
        # Nothing is decompressed, so there is no such thing as a zip bomb.
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
            return Outcome(verdict="release", detail="the signing secrets could not be read", obstacle=obstacle)
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
            if not response.closed:  # more is coming, and it is not waited for
                response.close()
        return self._outcome(response, _shown(answer, target.headers))

    def _outcome(self, response: aiohttp.ClientResponse, answer: str | None) -> Outcome:
        status = response.status
        if 200 <= status < 300:
            return Outcome(verdict="delivered", status=status, answer=answer)
        verdict = VERDICTS.get(status, "retry")
        detail = f"answered {status} {_phrase(status)}".rstrip()
        if verdict != "gone" and response.headers.get("webhook-delivery", "").strip().lower() == "abort-message":
            return Outcome(verdict="give_up", status=status, answer=answer, detail=f"{detail}, and asked for no more attempts")
        if verdict != "retry":
            return Outcome(verdict=verdict, status=status, answer=answer, detail=detail)
        if 300 <= status < 400:
            detail += ", and redirects are not followed: give the address that it leads to"
        retry_after_ms = read_retry_after(response.headers.get("retry-after"), self._clock.now_ms())
        return Outcome(verdict="retry", status=status, answer=answer, detail=detail, retry_after_ms=retry_after_ms)


def _body(delivery: Delivery, target: HttpTarget) -> tuple[bytes, str]:
    """What is sent, and its content type."""
    if target.body == "json":
        return envelope(delivery), "application/json"
    encoded = _encode(encodable_payload(delivery))
    if encoded.startswith(b'"'):
        return _decode(encoded).encode(), "text/plain; charset=utf-8"
    return encoded, "application/json"


def _headers(delivery: Delivery) -> dict[str, str]:
    """What a receiver can know without reading the body."""
    return {
        "webhook-id": delivery.id,
        "tickler-owner": _quoted(delivery.owner),
        "tickler-key": _quoted(delivery.key),
        "tickler-nominal-at": iso(delivery.nominal_at),
        "tickler-attempt": str(delivery.attempt),
    }


def _quoted(name: str) -> str:
    """As in the path of a URL, so that every text survives the way; most are the same as before."""
    return name if _PLAIN.fullmatch(name) else quote(name, safe="!$&'()*+,;=:@/")


@lru_cache(maxsize=256)
def _limits(timeout_s: float) -> tuple[float, aiohttp.ClientTimeout]:
    """How long an attempt may take: a little less, since whoever waits for that long gives up at the same instant, and would not
    hear of a status that came before it.
    """
    seconds = timeout_s - min(timeout_s / 10, 0.25)
    # aiohttp would round up what is longer than its threshold.
    return seconds, aiohttp.ClientTimeout(total=None, sock_connect=min(seconds, CONNECT_S), ceil_threshold=float("inf"))


async def _read_answer(response: aiohttp.ClientResponse, until_s: float) -> bytes:
    """Its beginning, or as much of that as arrives soon, and until then. The verdict stands, whatever happens here."""
    content = response.content
    if content.is_eof() and content.exception() is None:
        return content.read_nowait(MAX_ANSWER_BYTES)
    answer = b""
    try:
        async with asyncio.timeout_at(min(until_s, asyncio.get_running_loop().time() + ANSWER_S)):
            while len(answer) < MAX_ANSWER_BYTES and not content.at_eof():
                answer += await content.read(MAX_ANSWER_BYTES - len(answer))
    except (TimeoutError, aiohttp.ClientError, OSError, RuntimeError):  # RuntimeError: the connection was lost just before
        pass
    return answer


def _shown(answer: bytes, sent: Mapping[str, str] | None) -> str | None:
    """As text that may be kept: without the headers' values, which some receivers send back."""
    text = answer.decode(errors="replace").replace("\0", "")
    if sent and text:
        for secret in _secrets_in(sent, len(text)):
            text = _without(secret, text)
    if not text.isascii():  # what replaces a byte has three
        text = text.encode()[:MAX_ANSWER_BYTES].decode(errors="ignore")
    return text or None


def _secrets_in(headers: Mapping[str, str], most: int) -> list[str]:
    """Whole values and their words, as in 'Bearer …', in each way that they may be written; the longest first. Of each as much
    as a text of that length can have of it.
    """
    values = [value[:most] for name, value in headers.items() if name not in _NO_SECRETS]
    words = {word for value in values for word in (value, *value.split()) if len(word) >= _MIN_SECRET_LENGTH}
    return sorted({form for word in words for form in (word, *_escaped(word))}, key=len, reverse=True)


def _escaped(word: str) -> set[str]:
    """As JSON, URLs and HTML write it, if that is another way: most have nothing in them to be escaped."""
    if _UNRESERVED.fullmatch(word):
        return set()
    in_json = _encode(word).decode()[1:-1]
    in_urls = {quote(word, safe=""), quote(word), quote_plus(word)}
    in_urls |= {_ESCAPE.sub(lambda found: found[0].lower(), url) for url in in_urls}
    return {in_json, in_json.replace("/", r"\/"), escape(word), *in_urls}


def _without(secret: str, text: str) -> str:
    """Also where the answer was cut off in the middle of it."""
    text = text.replace(secret, REDACTED)
    start = max(len(text) - len(secret) + 1, 0)
    beginning = secret[:_MIN_SECRET_LENGTH]
    while (start := text.find(beginning, start)) >= 0:
        if secret.startswith(text[start:]):
            return text[:start] + REDACTED
        start += 1
    return text


def _phrase(status: int) -> str:
    """Ours, not what was sent: that is anybody's text."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _failed(error: Exception, url: URL, timeout_s: float) -> Outcome:
    """There was no answer. Sentences are ours: those of the errors have whole URLs in them, and what the other side sent."""
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
            return f"no connection to {url.raw_host} within {min(timeout_s, CONNECT_S):g} s"
        case aiohttp.ClientConnectorDNSError(os_error=TimeoutError() as late):
            return late.strerror
        case aiohttp.ClientConnectorDNSError():
            return f"no address was found for {url.raw_host}: {error.os_error.strerror or error.os_error}"
        case aiohttp.ClientConnectorCertificateError():
            reason = getattr(error.certificate_error, "verify_message", "") or "it does not fit"
            return f"the certificate of {url.raw_host} was not accepted: {reason}"
        case aiohttp.ClientConnectorSSLError():
            return f"no TLS with {url.raw_host}: {getattr(error.os_error, 'reason', None) or 'the handshake failed'}"
        case aiohttp.ClientConnectorError():
            return f"no connection to {url.raw_host} at port {url.port}: {_why(error.os_error)}"
    return None


def _no_answer(error: Exception, timeout_s: float) -> str:
    match error:
        case TimeoutError():
            return f"no answer within {timeout_s:g} s"
        case aiohttp.ServerDisconnectedError():
            return "the connection was closed before an answer came"
        case aiohttp.ClientResponseError():
            cause = error.__cause__ and error.__cause__.__cause__
            return "the answer's headers are too long" if isinstance(cause, LineTooLong) else "what came cannot be read as HTTP"
        case OSError(errno=errno.EMSGSIZE):
            return f"more than {MAX_RESPONSE_BYTES // 1024} KB came, and no answer among them"
        case OSError():
            return f"the connection was lost before an answer came: {_why(error)}"
    return f"the request failed: {type(error).__name__}"


def _why(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else "no reason is known"
