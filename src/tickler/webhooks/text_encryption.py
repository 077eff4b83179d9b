"""Encryption of an application's own secrets, under the same keys as Tickler's."""

from __future__ import annotations

import msgspec

from tickler.errors import DecryptionFailed, InvalidInput
from tickler.webhooks.key_ring import NEW_KEY, KeyRing, is_encrypted

MAX_TEXT_BYTES = 32_768
MAX_PURPOSE_BYTES = 512


class _Text(msgspec.Struct, frozen=True, array_like=True, tag="application"):
    """In MessagePack, where no text becomes longer; the engine's own contents are JSON, so neither passes for the other."""

    purpose: str
    text: str


class TextEncryption:
    """Encrypts texts under the keys of TICKLER_KEY: with the first of them, and decrypts with any.

    `purpose` says what a text is and whose, such as "calendar token of u1". It is not secret, is bound to the encrypted text, and
    must be the same to decrypt it: so nobody who can write to your database can pass one user's secret off as another's.
    """

    def __init__(self, keys: KeyRing) -> None:
        self._keys = keys

    def __repr__(self) -> str:
        return f"<TextEncryption with {len(self._keys)} keys>"

    def encrypt(self, text: str, *, purpose: str) -> str:
        """Return the text encrypted, as ASCII without spaces, at most twice as long and 1,000 characters.

        The same text is encrypted differently each time. `InvalidInput` without a key, and for more than 32 KB.
        """
        _check(text, "text", MAX_TEXT_BYTES)
        _check_purpose(purpose)
        if not self._keys:
            raise InvalidInput(f"{purpose}: must be encrypted, and there is no key: {NEW_KEY}, in every process")
        return self._keys.encrypt(msgspec.msgpack.encode(_Text(purpose, text)))

    def decrypt(self, encrypted: str, *, purpose: str) -> str:
        """Return the text. `DecryptionFailed` if no key fits, if it was changed, or if it was encrypted for another purpose."""
        return self._decrypt(encrypted, purpose)

    def uses_old_key(self, encrypted: str, *, purpose: str) -> bool:
        """Tell whether a text is under another key than the first. `DecryptionFailed` as in `decrypt`."""
        self._decrypt(encrypted, purpose)
        return self._keys.decrypt(encrypted, first_key=True) is None

    def reencrypt(self, encrypted: str, *, purpose: str) -> str:
        """Return the text encrypted with the first key: unchanged if it is already. `DecryptionFailed` as in `decrypt`."""
        text = self._decrypt(encrypted, purpose)
        return encrypted if self._keys.decrypt(encrypted, first_key=True) is not None else self.encrypt(text, purpose=purpose)

    def _decrypt(self, encrypted: str, purpose: str) -> str:
        _check_purpose(purpose)
        if not self._keys:
            raise DecryptionFailed(purpose, "there is no key here: set TICKLER_KEY to the one that it was encrypted with")
        if not is_encrypted(encrypted):
            raise DecryptionFailed(purpose, "this is no encrypted text, or a part of one: pass what encrypt() returned")
        content = self._keys.decrypt(encrypted)
        if content is None:
            raise DecryptionFailed(
                purpose,
                "no key in TICKLER_KEY decrypts it, or it was changed: add the key that it was encrypted with, after a comma, "
                "or ask for the secret again",
            )
        try:
            decrypted = msgspec.msgpack.decode(content, type=_Text)
        except msgspec.MsgspecError:
            raise DecryptionFailed(purpose, "it was encrypted by Tickler for itself: pass what encrypt() returned") from None
        if decrypted.purpose != purpose:
            raise DecryptionFailed(purpose, "it was encrypted for another purpose: pass the purpose that it was encrypted with")
        return decrypted.text


def _check_purpose(purpose: object) -> None:
    _check(purpose, "purpose", MAX_PURPOSE_BYTES)
    if not purpose or not str(purpose).isprintable():
        raise InvalidInput("purpose: must be printable: say what the text is and whose, such as 'calendar token of u1'")


def _check(text: object, name: str, max_bytes: int) -> None:
    """Refuse what cannot be encrypted, without showing any of it."""
    if not isinstance(text, str):
        raise InvalidInput(f"{name}: is a {type(text).__name__}: pass a str, and bytes as base64")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidInput(f"{name}: has half a character, which UTF-8 cannot encode: pass bytes as base64") from None
    if size > max_bytes:
        raise InvalidInput(f"{name}: has {size:,} bytes, and {max_bytes:,} are allowed: store it elsewhere")
