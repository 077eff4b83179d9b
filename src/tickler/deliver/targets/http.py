"""Delivers to an HTTP endpoint: a signed POST, limited in time and size whatever the receiver does."""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from html import escape
from http import HTTPStatus
from urllib.parse import quote, quote_plus

import msgspec
from aiohttp.abc import AbstractResolver

from tickler.clock import Clock
from tickler.deliver.address_guard import AddressGuard
from tickler.deliver.deadlines import Timeout, timeouts
from tickler.deliver.dns_resolver import SystemResolver
from tickler.deliver.exhaustion import exhaustion
from tickler.deliver.http_client.client import HttpClient
from tickler.deliver.http_client.connection import MAX_RESPONSE_BYTES
from tickler.deliver.http_client.endpoint import Origin, endpoint_of
from tickler.deliver.http_client.errors import (
    CertificateRejected,
    ConnectionClosed,
    ConnectionLost,
    ConnectTimedOut,
    HeadersTooLong,
    InvalidResponse,
    NameNotResolved,
    NotConnected,
    RequestFailed,
    ResponseTooLong,
    TlsFailed,
)
from tickler.deliver.http_client.response import ResponseReader
from tickler.deliver.retry_after import read_retry_after
from tickler.errors import AddressRefused, StoreUnavailable
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

_DEFAULTS = {"accept": "*/*", "accept-encoding": "identity", "user-agent": f"Tickler/{VERSION}"}
_OURS = frozenset(
    {"content-length", "host", "webhook-id", "webhook-timestamp", "webhook-signature"}
    | {f"tickler-{name}" for name in ("owner", "key", "nominal-at", "attempt")}
)
_LINE_BREAK = re.compile(r"[\r\n\0]")
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
        self._endpoint = lru_cache(maxsize=4_096)(lambda url: endpoint_of(guard.check_url(url)))
        self._timeouts = timeouts()
        self._client: HttpClient | None = None

    async def open(self) -> None:
        resolver = self._resolver or SystemResolver()
        self._client = HttpClient(self._guard, resolver, dns_cache_s=DNS_CACHE_S, max_connections=self._max_connections)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            self._timeouts.close()
            await client.close()
            if self._resolver is not None:
                await self._resolver.close()

    async def deliver(self, delivery: Delivery, target: HttpTarget) -> Outcome:
        client = self._client
        if client is None:
            raise RuntimeError("this deliverer is not open: await open() first")
        try:
            endpoint = self._endpoint(target.url)
        except AddressRefused as refused:
            return Outcome(verdict="give_up", detail=str(refused))
        target = self._unseal(target, delivery.owner)
        body, content_type = _body(delivery, target)
        if target.body == "raw" and passes_for_an_envelope(body):
            return Outcome(verdict="give_up", detail=_LOOKALIKE)
        timestamp_s = self._clock.now_ms() // 1000
        try:
            secrets = await self._secrets_of(delivery, target)
        except StoreUnavailable as error:
            obstacle: Obstacle | None = "exhausted" if exhaustion(error) else None
            return Outcome(verdict="release", detail="could not read the signing secrets", obstacle=obstacle)
        signature = sign(secrets, delivery.id, timestamp_s, body)
        fields = _fields(delivery, target, content_type, timestamp_s, signature, len(body))
        seconds = _seconds(delivery.timeout_s)
        try:
            with Timeout(self._timeouts, seconds) as limit:
                connection = await client.post(endpoint, fields, body, min(seconds, CONNECT_TIMEOUT_S))
        except AddressRefused as refused:
            return Outcome(verdict="give_up", detail=str(refused))
        except (RequestFailed, TimeoutError) as error:
            return _failed(error, endpoint.origin, delivery.timeout_s)
        try:
            response = connection.response
            if not response.ended:
                await connection.read_rest(min(limit.at, asyncio.get_running_loop().time() + ANSWER_TIMEOUT_S))
        finally:
            client.release(connection)
        return self._outcome(response, _shown(response.body, target.headers))

    def _outcome(self, response: ResponseReader, answer: str | None) -> Outcome:
        status = response.status
        if 200 <= status < 300:
            return Outcome(verdict="delivered", status=status, answer=answer)
        verdict = VERDICTS.get(status, "retry")
        detail = f"answered {status} {_phrase(status)}".rstrip()
        if verdict != "gone" and response.headers.get(b"webhook-delivery", b"").strip().lower() == b"abort-message":
            return Outcome(verdict="give_up", status=status, answer=answer, detail=f"{detail}, and asked for no retries")
        if verdict != "retry":
            return Outcome(verdict=verdict, status=status, answer=answer, detail=detail)
        if 300 <= status < 400:
            detail += ", and redirects are not followed: use the URL that it redirects to"
        asked = response.headers.get(b"retry-after")
        retry_after_ms = read_retry_after(None if asked is None else asked.decode(errors="replace"), self._clock.now_ms())
        return Outcome(verdict="retry", status=status, answer=answer, detail=detail, retry_after_ms=retry_after_ms)


def _body(delivery: Delivery, target: HttpTarget) -> tuple[bytes, str]:
    """Return the body and its content type."""
    if target.body == "json":
        return envelope(delivery), "application/json"
    encoded = _encode(encodable_payload(delivery))
    if encoded.startswith(b'"'):
        return _decode(encoded).encode(), "text/plain; charset=utf-8"
    return encoded, "application/json"


def _fields(delivery: Delivery, target: HttpTarget, content_type: str, timestamp_s: int, signature: str, length: int) -> bytes:
    """Return the lines of all headers but Host, with a blank line at the end. Nothing that is given replaces ours."""
    owner, key = delivery.owner, delivery.key
    if not _PLAIN.fullmatch(owner + key):
        owner, key = _quoted(owner), _quoted(key)
    given = target.headers or delivery.context
    others = _default_lines(content_type) if not given else _given_lines(content_type, target.headers, delivery.context)
    return (
        f"{others}content-length: {length}\r\nwebhook-id: {delivery.id}\r\nwebhook-timestamp: {timestamp_s}\r\n"
        f"webhook-signature: {signature}\r\ntickler-owner: {owner}\r\ntickler-key: {key}\r\n"
        f"tickler-nominal-at: {iso(delivery.nominal_at)}\r\ntickler-attempt: {delivery.attempt}\r\n\r\n"
    ).encode()


@lru_cache(maxsize=16)
def _default_lines(content_type: str) -> str:
    return _lines({**_DEFAULTS, "content-type": content_type}.items())


def _given_lines(content_type: str, of_target: Mapping[str, str] | None, context: Mapping[str, str] | None) -> str:
    given = {**_DEFAULTS, "content-type": content_type, **(of_target or {}), **(context or {})}
    return _lines((name, value) for name, value in given.items() if name not in _OURS)


def _lines(headers: Iterable[tuple[str, str]]) -> str:
    lines = [f"{name}: {value}" for name, value in headers]
    if any(_LINE_BREAK.search(line) for line in lines):
        raise ValueError("a header contains a line break")
    return "".join([f"{line}\r\n" for line in lines])


def _quoted(name: str) -> str:
    """Percent-encode a name so that every text survives in a header."""
    return quote(name, safe="!$&'()*+,;=:@/")


def _seconds(timeout_s: float) -> float:
    """Return the time limit of an attempt: a little less than its timeout, so that a status that came in time is still read."""
    return timeout_s - min(timeout_s / 10, 0.25)


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


def _failed(error: RequestFailed | TimeoutError, origin: Origin, timeout_s: float) -> Outcome:
    """Return the outcome of a request without a response."""
    if isinstance(error, NotConnected) and (out_of := exhaustion(error)) is not None:
        return Outcome(verdict="release", detail=f"the worker could not connect: {out_of}", obstacle="exhausted")
    detail = _no_connection(error, origin, timeout_s) if isinstance(error, NotConnected) else _no_answer(error, timeout_s)
    return Outcome(verdict="retry", detail=detail)


def _no_connection(error: NotConnected, origin: Origin, timeout_s: float) -> str:
    match error:
        case ConnectTimedOut():
            return f"could not connect to {origin.host} within {min(timeout_s, CONNECT_TIMEOUT_S):g} s"
        case NameNotResolved(os_error=TimeoutError() as late):
            return late.strerror or f"no address for {origin.host} in time"
        case NameNotResolved():
            return f"could not resolve {origin.host}: {error.os_error.strerror or error.os_error}"
        case CertificateRejected():
            reason = getattr(error.os_error, "verify_message", "") or "it is not valid"
            return f"the certificate of {origin.host} was rejected: {reason}"
        case TlsFailed():
            return f"TLS with {origin.host} failed: {getattr(error.os_error, 'reason', None) or 'handshake error'}"
    return f"could not connect to {origin.host} port {origin.port}: {_reason(error.os_error)}"


def _no_answer(error: RequestFailed | TimeoutError, timeout_s: float) -> str:
    match error:
        case TimeoutError():
            return f"no answer within {timeout_s:g} s"
        case ConnectionClosed():
            return "the receiver closed the connection without an answer"
        case HeadersTooLong():
            return "the headers of the answer are too long"
        case InvalidResponse():
            return "the answer is not valid HTTP"
        case ResponseTooLong():
            return f"received more than {MAX_RESPONSE_BYTES // 1024} KB without an answer"
        case ConnectionLost():
            return f"the connection was lost before the answer: {_reason(error.os_error)}"
    return f"the request failed: {type(error).__name__}"


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):  # whose errno is none of the system's
        return (error.reason or "TLS error").lower().replace("_", " ")
    return os.strerror(error.errno).lower() if error.errno else "unknown reason"
