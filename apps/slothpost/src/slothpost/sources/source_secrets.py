"""The secrets and tokens of connections, encrypted for one product and one source."""

from __future__ import annotations

import logging
import secrets

from slothpost.model import Connection, Source
from tickler import Tickler
from tickler.errors import DecryptionFailed, InvalidInput
from tickler.table import MISSING

logger = logging.getLogger(__name__)

SECRET_BYTES = 32


class SourceSecrets:
    """Encrypts and decrypts. What was copied from another product's item decrypts for nobody."""

    def __init__(self, t: Tickler) -> None:
        self._encryption = t.encryption
        self._decoy: str | None = None

    def new_secret(self) -> str:
        return secrets.token_hex(SECRET_BYTES)

    def encrypt_secret(self, product: str, source: Source, secret: str) -> str:
        return self._encryption.encrypt(secret, purpose=_purpose("secret", product, source))

    def encrypt_token(self, product: str, source: Source, token: str) -> str:
        return self._encryption.encrypt(token, purpose=_purpose("token", product, source))

    def encrypt_installation(self, user: str, token: str) -> str:
        return self._encryption.encrypt(token, purpose=_installation_purpose(user))

    def token(self, connection: Connection) -> str | None:
        """Return the token of a connection; `DecryptionFailed` if the operator has taken the key away."""
        if connection.token is MISSING:
            return None
        return self._encryption.decrypt(connection.token, purpose=_purpose("token", connection.product, connection.source))

    def installation_token(self, user: str, encrypted: str) -> str:
        return self._encryption.decrypt(encrypted, purpose=_installation_purpose(user))

    def signing_secret(self, connection: Connection | None) -> str:
        """Return what deliveries of a connection are signed with; without one, what nobody knows.

        Both take the same time, so that nobody learns by it which products there are.
        """
        if connection is None or connection.secret is MISSING:
            return self._decoyed()
        purpose = _purpose("secret", connection.product, connection.source)
        try:
            return self._encryption.decrypt(connection.secret, purpose=purpose)
        except DecryptionFailed as error:
            logger.error("deliveries are refused: %s", error)
            return secrets.token_hex(SECRET_BYTES)

    def _decoyed(self) -> str:
        nobodys = secrets.token_hex(SECRET_BYTES)
        try:
            if self._decoy is None:
                self._decoy = self._encryption.encrypt(nobodys, purpose=_DECOY)
            return self._encryption.decrypt(self._decoy, purpose=_DECOY)
        except InvalidInput:  # without a key nothing is encrypted, and no connection has a secret
            return nobodys


_DECOY = "slothpost: secret of no product"


def _purpose(what: str, product: str, source: Source) -> str:
    return f"slothpost: {source} {what} of {product}"


def _installation_purpose(user: str) -> str:
    return f"slothpost: vercel token of {user}"
