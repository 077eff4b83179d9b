"""Encryption at rest of targets' headers and secrets, and of signing secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Literal, TypeVar
from urllib.parse import urlsplit

import msgspec

from tickler.errors import InvalidInput, InvalidSchedule
from tickler.model.target import REDACTED, HttpTarget
from tickler.webhooks.content_digest import ContentDigests
from tickler.webhooks.key_ring import NEW_KEY, KeyRing, is_encrypted
from tickler.webhooks.signature import check_secret

MAX_REMEMBERED = 1_000  # decrypted targets that stay in memory, since each delivery needs one

_PORT = re.compile(r":[0-9]*\Z")
_PORTS = {"http": 80, "https": 443}
_OTHER_KEY = "no key in TICKLER_KEY decrypts it: add the key that it was encrypted with, after a comma, or pass"


class _Parts(msgspec.Struct, frozen=True, array_like=True, tag="target"):
    """The encrypted part of a target, and the owner and origin that it is bound to."""

    owner: str
    origin: str
    headers: dict[str, str]
    secret: str | None


class _Text(msgspec.Struct, frozen=True, array_like=True, tag="text"):
    purpose: str
    text: str


T = TypeVar("T", _Parts, _Text)


class Encryption:
    """Encrypts with the first of its keys and decrypts with any, so that keys can be rotated. Without a key it refuses both.

    Encrypted text is bound to its purpose. The headers of a target are sent only for the same owner and to the same scheme, host
    and port: otherwise a reader of a stored schedule could have its headers sent to a host of their own.
    """

    def __init__(self, keys: Sequence[str] | KeyRing = ()) -> None:
        self._keys = keys if isinstance(keys, KeyRing) else KeyRing(keys)
        self._remembered = lru_cache(MAX_REMEMBERED)(self._decrypted)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Encryption:
        """Read the keys from TICKLER_KEY, separated by commas."""
        return cls(KeyRing.from_environment(environ))

    @property
    def has_keys(self) -> bool:
        return bool(self._keys)

    @cached_property
    def digests(self) -> ContentDigests:
        """Digests of content that only those who have a key can compare with a guess."""
        return ContentDigests(self._keys.subkeys(b"tickler-digests"))

    def __repr__(self) -> str:
        return f"<Encryption with {len(self._keys)} keys>"

    def encrypt_target(self, target: HttpTarget, owner: str, before: HttpTarget | None = None) -> HttpTarget:
        """Return the target as it is stored, with its secrets encrypted.

        If `before`, the stored target, has the same secrets, its encrypted text is kept, unless another key than the first was
        used: then it is encrypted again, so that an old key falls out of use.
        """
        if target.sealed is not None:
            return self._read_back(target, target.sealed, owner, before)
        if not target.has_secrets:
            return target
        if not self._keys:
            field = "target.headers" if target.headers else "target.secret"
            raise InvalidSchedule(field, f"must be encrypted, and there is no key: {NEW_KEY}, here and for every worker")
        _check_secret(target.secret)
        parts = _Parts(owner, origin_of(target.url), dict(target.headers or {}), target.secret)
        return self._stored(target, parts, None if before is None else before.sealed)

    def decrypt_target(self, target: HttpTarget, owner: str) -> HttpTarget:
        """Return the target with its headers and secret. `InvalidSchedule` if no key fits, or if they belong to another owner."""
        if target.sealed is None:
            return target
        return self._remembered(target.url, target.body, target.sealed, owner)

    def encrypt_text(self, text: str, purpose: str) -> str:
        """Encrypt text. `purpose` says what it is and whose, and must be the same to decrypt it."""
        if not self._keys:
            raise InvalidInput(f"{purpose}: must be encrypted, and there is no key: {NEW_KEY}, here and for every worker")
        return self._encrypt(_Text(purpose, text))

    def decrypt_text(self, sealed: str, purpose: str) -> str:
        """Decrypt text. `InvalidInput` if no key fits, or if it was encrypted for another purpose."""
        if not self._keys:
            raise InvalidInput(f"{purpose}: there is no key here: set TICKLER_KEY to the one that it was encrypted with")
        decrypted = self._decrypt(sealed, _Text)
        if decrypted is None or decrypted.purpose != purpose:
            raise InvalidInput(f"{purpose}: {_OTHER_KEY} the secret again")
        return decrypted.text

    def _stored(self, target: HttpTarget, parts: _Parts, *known: str | None) -> HttpTarget:
        """Reuse the first of the known texts with the same content under the first key, or else encrypt again."""
        for text in known:
            inside = None if text is None else self._decrypt(text, _Parts, first_key=True)
            if inside == parts:
                return _redacted(target, inside, text)
        return _redacted(target, parts, self._encrypt(parts))

    def _read_back(self, target: HttpTarget, sealed: str, owner: str, before: HttpTarget | None) -> HttpTarget:
        """Check a target that was read from a stored schedule and put again. Without a key it is accepted unchecked."""
        if not {target.secret, *(target.headers or {}).values()} <= {REDACTED, None}:
            raise InvalidSchedule(
                "target.headers",
                "have values in addition to `sealed`: pass all values without `sealed`, or all of it as it was read",
            )
        if not is_encrypted(sealed):
            raise InvalidSchedule("target.sealed", "was not read from a schedule: pass the headers and the secret again")
        if not self._keys:
            return target
        parts = self._bound(sealed, target.url, owner)
        whole = self._stored(target, parts, sealed, None if before is None else before.sealed)
        if (target.headers or None, target.secret) not in ((None, None), (whole.headers, whole.secret)):
            raise InvalidSchedule(
                "target.headers", "are not the ones in `sealed`: pass all headers with their values, without `sealed`"
            )
        return whole

    def _decrypted(self, url: str, body: Literal["json", "raw"], sealed: str, owner: str) -> HttpTarget:
        parts = self._bound(sealed, url, owner)
        return HttpTarget(url, body, parts.headers or None, parts.secret)

    def _bound(self, sealed: str, url: str, owner: str) -> _Parts:
        if not self._keys:
            raise InvalidSchedule("target.sealed", "there is no key here: set TICKLER_KEY to the one that it was encrypted with")
        parts = self._decrypt(sealed, _Parts)
        if parts is None:
            raise InvalidSchedule("target.sealed", f"{_OTHER_KEY} the headers and the secret again")
        if (parts.owner, parts.origin) != (owner, origin_of(url)):
            raise InvalidSchedule(
                "target.sealed", "was encrypted for another owner or host: pass the headers and the secret again"
            )
        return parts

    def _encrypt(self, content: _Parts | _Text) -> str:
        return self._keys.encrypt(msgspec.json.encode(content))

    def _decrypt(self, sealed: str, kind: type[T], *, first_key: bool = False) -> T | None:
        """Decrypt. None if no key fits (with `first_key`, if the first does not), or if it is of another kind."""
        decrypted = self._keys.decrypt(sealed, first_key=first_key)
        try:
            return None if decrypted is None else msgspec.json.decode(decrypted, type=kind)
        except msgspec.MsgspecError:
            return None


def _check_secret(secret: str | None) -> None:
    if secret is not None:
        try:
            check_secret(secret)
        except InvalidInput as error:
            raise InvalidSchedule("target.secret", str(error).removeprefix("secret: ")) from None


def _redacted(target: HttpTarget, parts: _Parts, sealed: str | None) -> HttpTarget:
    """Return the target as stored, with headers in the encrypted order, so that another order is not a change."""
    return HttpTarget(target.url, target.body, parts.headers or None, parts.secret).redacted(sealed)


def origin_of(url: str) -> str:
    """Return scheme, host and port. Two URLs have the same origin only if they lead to the same host.

    Hosts outside ASCII keep their case: `urlsplit` would merge letters that DNS distinguishes, such as the two forms of sigma.
    """
    parts = urlsplit(url)
    host = parts.hostname if parts.netloc.isascii() else _PORT.sub("", parts.netloc)
    return f"{parts.scheme}://{host}:{parts.port or _PORTS[parts.scheme]}"
