"""Digests that tell whether content is the same as before, and tell nothing else to those who can read them.

A plain hash would confirm a guess: whoever reads the store could try every code of six digits. So a digest depends on a key of
TICKLER_KEY, if there is one, and on a salt of its own, so that equal content cannot be found by equal digests.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Sequence

from tickler.errors import InvalidInput

_NO_KEY = "none"
_SALT_BYTES = 16


class ContentDigests:
    """Makes digests with the first of its secrets and compares them with any, so that the keys behind them can be rotated."""

    def __init__(self, secrets: Sequence[bytes]) -> None:
        self._secrets = {_name_of(secret): secret for secret in reversed(secrets)}
        self._first = _name_of(secrets[0]) if secrets else _NO_KEY

    def make(self, content: bytes) -> str:
        """Return a new digest: the name of its key, its salt, and the hash."""
        salt = os.urandom(_SALT_BYTES)
        return f"{self._first}.{salt.hex()}.{self._hash(self._first, salt, content)}"

    def fits(self, digest: str, content: bytes, name: str) -> bool:
        """Tell whether a digest was made of this content. `InvalidInput` if its key is not here; `name` is whose it is."""
        key, salt, hashed = digest.split(".")
        if key != _NO_KEY and key not in self._secrets:
            raise InvalidInput(
                f"{name}: cannot be compared with what was sent before: add the key of that time to TICKLER_KEY, after a comma"
            )
        return hmac.compare_digest(hashed, self._hash(key, bytes.fromhex(salt), content))

    def _hash(self, key: str, salt: bytes, content: bytes) -> str:
        secret = self._secrets.get(key, b"")
        return hashlib.blake2b(content, digest_size=16, key=secret, salt=salt, person=b"tickler-content").hexdigest()


def _name_of(secret: bytes) -> str:
    """Return the name of a key in its digests."""
    return hashlib.blake2b(secret, digest_size=4, person=b"tickler-keyname").hexdigest()
