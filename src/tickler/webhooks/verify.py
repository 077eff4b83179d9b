"""Verification of deliveries, for receivers. Needs only the core package."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal
from urllib.parse import unquote

import msgspec

from tickler.clock import Clock, SystemClock, datetime_ms, to_datetime
from tickler.errors import InvalidInput, InvalidSignature
from tickler.model.fire import fire_id
from tickler.webhooks.signature import check_secret, is_signed
from tickler.when import read_instant

Secret = str | Sequence[str]  # one, or several during a rotation
SecretOf = Callable[[str], Secret | None]  # the secret of an owner, or None

_ID = re.compile(r"fire_[0-9a-f]{32}")
_WHOLE_NUMBER = re.compile(r"[0-9]{1,12}")

_FORGED = "reject it: something between Tickler and here has changed it"
_STRIPPED = "was it sent by Tickler, and does every proxy in between pass its headers on?"
_RAW_BODY = "pass the bytes as they were received: request.get_data() in Flask, request.body in Django, await request.body()"


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """A fire as it was received. `id` is the same on every attempt: store it, and do nothing the second time.

    `body` is the request's body. `payload` is the schedule's, taken from a JSON body. If the body is the payload alone
    (`HttpTarget(…, body="raw")`), `payload` is None and `attempt` comes from a header, which the signature does not cover.
    """

    id: str
    timestamp_s: int  # when this attempt was sent
    owner: str
    key: str
    nominal_at: int  # the instant the schedule named, in milliseconds
    attempt: int  # counted from 1
    payload: Any  # any JSON value
    body: bytes

    @property
    def nominal(self) -> datetime:
        """The instant the schedule named."""
        return to_datetime(self.nominal_at)


class _Data(msgspec.Struct):
    id: str
    owner: str
    key: str
    nominal_at: int | str  # milliseconds, or ISO 8601 as in the header
    attempt: int
    payload: Any = None


class _Envelope(msgspec.Struct):
    type: Literal["schedule.fired"]
    data: _Data


def verify(
    body: bytes, headers: Mapping[str, str], secret: Secret | SecretOf, *, tolerance_s: int = 300, clock: Clock | None = None
) -> Received:
    """Verify a delivery and return the fire. `InvalidSignature` unless Tickler provably sent it, within `tolerance_s` of now.

    `body` is the received bytes, `headers` the request's headers as any framework has them. `secret` is the one that signs
    deliveries, or several during a rotation. If owners have their own secrets, pass a function from an owner to its secret or
    None: it is called with the owner that the fire names, so that no owner can sign for another. Any Standard Webhooks library
    can verify the signature alone.

    Everything in a JSON body is signed. For a raw body, owner, key and nominal time come from unsigned headers, but must match
    the signed id, which is derived from them. Only `attempt` is unverified then.
    """
    if not isinstance(body, bytes | bytearray | memoryview):
        raise InvalidInput(f"body: is a {type(body).__name__}, but the signature covers bytes: {_RAW_BODY}")
    secrets = None if callable(secret) else _checked_secrets(secret)
    if isinstance(tolerance_s, bool) or not isinstance(tolerance_s, int) or tolerance_s < 0:
        raise InvalidInput(f"tolerance_s: {tolerance_s!r} is not a whole number of seconds, such as 300")
    found = _Headers(headers)
    received = bytes(body)
    id = found.matching("webhook-id", _ID)
    timestamp_s = int(found.matching("webhook-timestamp", _WHOLE_NUMBER))
    signatures = found.get("webhook-signature")
    _check_time(timestamp_s, tolerance_s, clock or SystemClock())
    if secrets is not None:
        _check_signature(signatures, secrets, id, timestamp_s, received)
    data = _from_body(received) or _from_headers(found, id)
    if callable(secret):  # the body is not trusted before this
        _check_signature(signatures, _secrets_of(data.owner, secret), id, timestamp_s, received)
    if data.id != id:
        raise InvalidSignature("the id in the body differs from webhook-id", _FORGED)
    nominal_at = _nominal_at(data.nominal_at)
    if not _is_of(id, data.owner, data.key, nominal_at):
        raise InvalidSignature("owner, key and nominal time do not match webhook-id", _FORGED)
    _check_headers(data, found)
    return Received(
        id=id,
        timestamp_s=timestamp_s,
        owner=data.owner,
        key=data.key,
        nominal_at=nominal_at,
        attempt=data.attempt,
        payload=data.payload,
        body=received,
    )


class _Headers:
    """Case-insensitive headers, from any framework's mapping or a dict."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        if not callable(getattr(headers, "items", None)):
            raise InvalidInput(f"headers: is a {type(headers).__name__}: pass the request's, a mapping of names to values")
        self._values: dict[str, object] = {}
        self._doubtful: set[str] = set()
        for name, value in headers.items():
            if isinstance(name, str) and self._values.setdefault(name.lower(), value) != value:
                self._doubtful.add(name.lower())

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def get(self, name: str) -> str:
        value = self._values.get(name)
        if value is None:
            raise InvalidSignature(f"the header {name} is missing", _STRIPPED)
        if name in self._doubtful:
            raise InvalidSignature(f"the header {name} occurs twice, with different values", _FORGED)
        if not isinstance(value, str):
            raise InvalidSignature(f"the header {name} is a {type(value).__name__}", "pass headers as a mapping of text to text")
        return value

    def matching(self, name: str, pattern: re.Pattern[str]) -> str:
        value = self.get(name).strip()
        if not pattern.fullmatch(value):
            raise InvalidSignature(f"the header {name} is not what Tickler sends", _STRIPPED)
        return value

    def unquoted(self, name: str) -> str:
        try:
            return unquote(self.get(name), errors="strict")
        except UnicodeDecodeError:
            raise InvalidSignature(f"the header {name} is not text", _STRIPPED) from None


def _checked_secrets(secret: object) -> list[str]:
    secrets = list(secret) if isinstance(secret, Sequence) and not isinstance(secret, str | bytes) else [secret]
    if not secrets:
        raise InvalidInput("secret: is empty: pass the one that signs this owner's deliveries")
    return [check_secret(each) for each in secrets]


def _check_time(timestamp_s: int, tolerance_s: int, clock: Clock) -> None:
    late_s = clock.now_ms() / 1000 - timestamp_s
    if abs(late_s) > tolerance_s:
        when = f"{late_s:.0f} s ago" if late_s > 0 else f"{-late_s:.0f} s from now"
        raise InvalidSignature(
            f"it was sent {when}, outside the tolerance of {tolerance_s} s",
            "check this machine's clock; if that is right, this is a replay of an old message",
        )


def _secrets_of(owner: str, secret_of: SecretOf) -> list[str]:
    """Return an owner's secrets. Requests can name any owner, so a missing secret is `InvalidSignature`, not `InvalidInput`."""
    secret = secret_of(owner)
    if not secret:
        raise InvalidSignature("that owner has no secret", "if the owner is one of yours, give the function its secret")
    return _checked_secrets(secret)


def _check_signature(signatures: str, secrets: Sequence[str], id: str, timestamp_s: int, body: bytes) -> None:
    if not is_signed(signatures, secrets, id, timestamp_s, body):
        raise InvalidSignature(
            "no signature matches", f"is this the secret of that owner? pass both while rotating; and {_RAW_BODY}"
        )


def _from_body(body: bytes) -> _Data | None:
    try:
        return msgspec.json.decode(body, type=_Envelope).data
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _from_headers(headers: _Headers, id: str) -> _Data:
    owner, key = headers.unquoted("tickler-owner"), headers.unquoted("tickler-key")
    attempt = int(headers.matching("tickler-attempt", _WHOLE_NUMBER))
    return _Data(id, owner, key, headers.get("tickler-nominal-at"), attempt)


def _check_headers(data: _Data, headers: _Headers) -> None:
    """Compare the unsigned headers with the body: the caller may have chosen the secret by one of them."""
    for name, said in (("tickler-owner", data.owner), ("tickler-key", data.key)):
        if name in headers and headers.unquoted(name) != said:
            raise InvalidSignature(f"the header {name} differs from the body", _FORGED)


def _nominal_at(given: int | str) -> int:
    try:
        return given if isinstance(given, int) else datetime_ms(read_instant(given, "nominal_at"), "nominal_at")
    except (ValueError, OverflowError):
        raise InvalidSignature("the nominal time is not ISO 8601", _STRIPPED) from None


def _is_of(id: str, owner: str, key: str, nominal_at: int) -> bool:
    try:
        return id in (fire_id(owner, key, nominal_at), fire_id(owner, key, nominal_at, triggered=True))
    except UnicodeEncodeError:
        return False
