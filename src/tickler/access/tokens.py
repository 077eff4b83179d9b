"""Bearer tokens with scopes, kept as records. The store has only a hash of each; its text is shown once.

After the first token is created, the service requires one. It still does after the last one is revoked or expires, until `open`.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Literal, get_args

import msgspec

from tickler.clock import Clock, to_ms
from tickler.errors import InvalidInput, TicklerError, VersionConflict
from tickler.model.record import Record, value_of
from tickler.model.schedule import check_name
from tickler.records.contract import RecordStore
from tickler.records.kinds import SERVER, TOKEN

Scope = Literal["read", "write", "operate"]  # see; change schedules and fires; tick, repair, and act on all owners

CLOSED = (SERVER, "closed")  # the record of whether a token is required, which outlives all tokens
SCOPES: tuple[Scope, ...] = get_args(Scope)
MAX_LISTED = 1_000
MAX_TOKEN_NAME_LENGTH = 100
REMEMBERED_MS = 2_500  # how long a token revoked by another process may still be accepted; event streams check every two seconds
NONE_REMEMBERED_MS = 1_000  # how long the first token, created by another process, may not be required yet
MAX_REMEMBERED = 10_000

_TEXT = re.compile(r"tk_([0-9a-f]{16})_([0-9a-f]{64})")


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """The permissions of a token. With an `owner` it is limited to that owner's data."""

    id: str
    scopes: tuple[Scope, ...]
    owner: str | None = None
    name: str = ""
    created_at: int = 0
    expires_at: int | None = None


class Tokens:
    """Creates, lists, checks and revokes tokens. Checked tokens are cached for a few seconds."""

    def __init__(self, records: RecordStore, clock: Clock) -> None:
        self._records = records
        self._clock = clock
        self._known: dict[str, tuple[int, bytes, Token]] = {}  # by id: the end of caching, the hash, the token
        self._exist = False
        self._exist_until = 0  # `_exist` is valid until then

    async def create(
        self, scopes: Collection[Scope], *, owner: str | None = None, name: str = "", expires_at: int | datetime | None = None
    ) -> tuple[Token, str]:
        """Create a token. Return it with its text, which cannot be shown again."""
        now_ms = self._clock.now_ms()
        token = Token(
            id=secrets.token_hex(8),
            scopes=_checked_scopes(scopes, owner),
            owner=owner,
            name=_checked_name(name),
            created_at=now_ms,
            expires_at=_checked_expiry(expires_at, now_ms),
        )
        secret = secrets.token_hex(32)
        kept = {**msgspec.to_builtins(token), "hash": _hash(secret).hex()}
        await self._records.put(
            TOKEN, token.id, msgspec.json.encode(kept), now_ms=now_ms, expires_at=token.expires_at, expected=0
        )
        await self._close()  # after the token, so that a concurrent `open` sees one of the two
        self._exist_until = 0
        return token, f"tk_{token.id}_{secret}"

    async def list(self) -> list[Token]:
        """Return the valid tokens, up to a thousand, ordered by id."""
        found = [_read(record) for record in await self._page(MAX_LISTED)]
        return [read[1] for read in found if read is not None]

    async def exist(self) -> bool:
        """Return whether a token was created since the service was last open, so that callers need one."""
        now_ms = self._clock.now_ms()
        if now_ms >= self._exist_until:
            self._exist = await self._is_closed()
            self._exist_until = now_ms + (REMEMBERED_MS if self._exist else NONE_REMEMBERED_MS)
        return self._exist

    async def open(self) -> bool:
        """Stop requiring a token on this machine. Return whether one was required. Refused while there are tokens."""
        record = await self._records.get(*CLOSED, now_ms=self._clock.now_ms())
        if await self._page(1):
            raise InvalidInput("there are tokens: list them with `tickler token list` and revoke them first")
        if record is None or not record.value:
            return False
        try:
            await self._close(False, expected=record.version)
        except VersionConflict:
            raise InvalidInput("a token was just created: find it with `tickler token list` and revoke it first") from None
        self._exist_until = 0
        return True

    async def revoke(self, id: str) -> bool:
        """Delete a token, and return whether it existed. Other processes may accept it for five more seconds."""
        await self._is_closed()  # records that a token is required while there still is one
        self._known.pop(id, None)
        self._exist_until = 0
        return bool(_TEXT.fullmatch(f"tk_{id}_{'0' * 64}")) and await self._records.delete(TOKEN, id)

    async def check(self, text: str) -> Token | None:
        """Return the token with that text, if it is valid. A wrong secret takes as long as the right one."""
        parts = _TEXT.fullmatch(text)
        if parts is None:
            return None
        found = await self._find(parts[1])
        right, token = found if found is not None else (bytes(32), None)
        return token if hmac.compare_digest(right, _hash(parts[2])) else None

    async def get(self, id: str) -> Token | None:
        """Return a token by its id, for callers that have proved possession before."""
        found = await self._find(id)
        return None if found is None else found[1]

    async def _find(self, id: str) -> tuple[bytes, Token] | None:
        now_ms = self._clock.now_ms()
        known = self._known.get(id)
        if known is not None and now_ms < known[0]:
            return known[1:] if known[2].expires_at is None or now_ms < known[2].expires_at else None
        record = await self._records.get(TOKEN, id, now_ms=now_ms)
        read = None if record is None else _read(record)
        if read is None:
            self._known.pop(id, None)
            return None
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        self._known[id] = (now_ms + REMEMBERED_MS, *read)
        return read

    async def _is_closed(self) -> bool:
        """Return whether a token is required. A store of an earlier version has tokens but no such record: write it."""
        record = await self._records.get(*CLOSED, now_ms=self._clock.now_ms())
        if record is not None and record.value:
            return True
        if not await self._page(1):
            return False
        with suppress(TicklerError):
            await self._close(expected=0 if record is None else record.version)
        return True

    async def _close(self, closed: bool = True, *, expected: int | None = None) -> None:
        await self._records.put(*CLOSED, msgspec.json.encode(closed), now_ms=self._clock.now_ms(), expected=expected)

    async def _page(self, limit: int) -> Sequence[Record]:
        return await self._records.list(TOKEN, now_ms=self._clock.now_ms(), limit=limit)


class _StoredToken(Token, frozen=True, kw_only=True):
    """A token as it is stored."""

    hash: str


def _read(record: Record) -> tuple[bytes, Token] | None:
    """Return the hash and the token. None if a newer version wrote it: its permissions are unknown here."""
    kept = value_of(record, _StoredToken)
    if kept is None:
        return None
    return bytes.fromhex(kept.hash), Token(**{name: getattr(kept, name) for name in Token.__struct_fields__})


def _hash(secret: str) -> bytes:
    """Hash a secret. A fast hash is enough for 256 random bits."""
    return hashlib.sha256(secret.encode()).digest()


def _checked_scopes(scopes: Collection[Scope], owner: str | None) -> tuple[Scope, ...]:
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not scopes or isinstance(scopes, str):
        raise InvalidInput(f"scopes: {list(scopes)!r} is not a list of scopes: use {', '.join(SCOPES)}")
    if owner is not None:
        check_name("owner", owner)
        if "operate" in scopes:
            raise InvalidInput("scopes: operate covers all owners: leave it out, or leave out the owner")
    return tuple(scope for scope in SCOPES if scope in scopes)


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or len(name) > MAX_TOKEN_NAME_LENGTH or not name.isprintable():
        raise InvalidInput(f"name: {str(name)[:40]!r} is invalid: use up to {MAX_TOKEN_NAME_LENGTH} printable characters")
    return name


def _checked_expiry(expires_at: int | datetime | None, now_ms: int) -> int | None:
    if expires_at is None:
        return None
    until = to_ms(expires_at, "expires_at")
    if until <= now_ms:
        raise InvalidInput("expires_at: has passed: pass an instant in the future")
    return until
