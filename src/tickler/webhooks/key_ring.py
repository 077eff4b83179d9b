"""The keys of TICKLER_KEY: encrypts with the first and decrypts with any, so that keys can be rotated."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import NamedTuple

from tickler.distribution import install_command
from tickler.errors import InvalidInput

NEW_KEY = """set TICKLER_KEY to what `python -c "import tickler; print(tickler.new_key())"` prints"""
MAX_ENCRYPTED_LENGTH = 65_536

_TOKEN = re.compile(rf"[A-Za-z0-9_=-]{{1,{MAX_ENCRYPTED_LENGTH}}}")


class _Cipher(NamedTuple):
    encrypt: Callable[[bytes], bytes]
    decrypt: Callable[[str], bytes | None]  # None if no key fits
    decrypt_by_first: Callable[[str], bytes | None]


def new_key() -> str:
    """Return a new key for TICKLER_KEY. Keep it outside the database, so that nobody gets both together."""
    return base64.urlsafe_b64encode(os.urandom(32)).decode()


def is_encrypted(text: object) -> bool:
    """Tell whether a text looks like one that a key ring made."""
    return isinstance(text, str) and _TOKEN.fullmatch(text) is not None


class KeyRing:
    """False if it has no keys: then it can neither encrypt nor decrypt."""

    def __init__(self, keys: Sequence[str] = ()) -> None:
        for number, key in enumerate(keys, 1):
            if not _is_key(key):
                raise InvalidInput(f"TICKLER_KEY: key {number} of {len(keys)} is not a key: {NEW_KEY}")
        self._keys = tuple(keys)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> KeyRing:
        """Read the keys from TICKLER_KEY, separated by commas."""
        return cls([key.strip() for key in environ.get("TICKLER_KEY", "").split(",") if key.strip()])

    def __len__(self) -> int:
        return len(self._keys)

    def __repr__(self) -> str:
        return f"<KeyRing with {len(self)} keys>"

    def encrypt(self, content: bytes) -> str:
        return self._cipher.encrypt(content).decode()

    def decrypt(self, encrypted: str, *, first_key: bool = False) -> bytes | None:
        """Return the content, or None if no key fits; with `first_key`, if the first does not."""
        if not is_encrypted(encrypted):
            return None
        return self._cipher.decrypt_by_first(encrypted) if first_key else self._cipher.decrypt(encrypted)

    def subkeys(self, purpose: bytes) -> list[bytes]:
        """Return a key for another purpose from each key, in their order. It says nothing about the key that encrypts."""
        raw = (base64.b64decode(key, altchars=b"-_") for key in self._keys)
        return [hashlib.blake2b(key=each, digest_size=32, person=purpose).digest() for each in raw]

    @cached_property
    def _cipher(self) -> _Cipher:
        """Import `cryptography`, which only encryption needs, and build the cipher."""
        try:
            from cryptography.fernet import Fernet, InvalidToken, MultiFernet
        except ImportError:
            raise InvalidInput(f"encryption needs the package cryptography: {install_command('http')}") from None
        first, *_ = each = [Fernet(key) for key in self._keys]
        every = MultiFernet(each)

        def decrypt(by: Fernet | MultiFernet, encrypted: str) -> bytes | None:
            try:
                return by.decrypt(encrypted)
            except InvalidToken:
                return None

        return _Cipher(first.encrypt, partial(decrypt, every), partial(decrypt, first))


def _is_key(key: object) -> bool:
    try:
        return isinstance(key, str) and len(base64.b64decode(key, altchars=b"-_", validate=True)) == 32
    except (binascii.Error, ValueError):
        return False
