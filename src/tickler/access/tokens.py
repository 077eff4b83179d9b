"""Who may do what: bearer tokens with scopes, kept as records. The store has a hash of each; its text is shown once.

The first token closes the service, and it stays closed when the last one is revoked or expires: only `open` opens it again.
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

Scope = Literal["read", "write", "operate"]  # look; change schedules and fires; tick, repair and what concerns all owners

CLOSED = (SERVER, "closed")  # the record that outlives all tokens: whether one is needed
SCOPES: tuple[Scope, ...] = get_args(Scope)
MAX_LISTED = 1_000
MAX_TOKEN_NAME_LENGTH = 100
REMEMBERED_MS = 2_500  # so long a token that was revoked elsewhere may still be taken; a stream looks every two seconds
NONE_REMEMBERED_MS = 1_000  # so long the first token of a store, made elsewhere, may not be asked for yet
MAX_REMEMBERED = 10_000

_TEXT = re.compile(r"tk_([0-9a-f]{16})_([0-9a-f]{64})")


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """What a token lets its bearer do. With an `owner` it is for that owner's data alone."""

    id: str
    scopes: tuple[Scope, ...]
    owner: str | None = None
    name: str = ""
    created_at: int = 0
    expires_at: int | None = None


class Tokens:
    """Makes, lists, checks and revokes tokens. What was checked is remembered for a few seconds."""

    def __init__(self, records: RecordStore, clock: Clock) -> None:
        self._records = records
        self._clock = clock
        self._known: dict[str, tuple[int, bytes, Token]] = {}  # by id: until when, the hash, the token
        self._exist = False
        self._exist_until = 0  # whether a token is needed is known until then

    async def create(
        self,
        scopes: Collection[Scope],
        *,
        owner: str | None = None,
        name: str = "",
        expires_at: int | datetime | None = None,
    ) -> tuple[Token, str]:
        """A new token, and its text, which nobody can be shown again."""
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
        await self._close()  # after the token: an `open` at this moment sees one of the two
        self._exist_until = 0
        return token, f"tk_{token.id}_{secret}"

    async def list(self) -> list[Token]:
        """All that are valid, up to a thousand, by id."""
        found = [_read(record) for record in await self._page(MAX_LISTED)]
        return [read[1] for read in found if read is not None]

    async def exist(self) -> bool:
        """Whether there was ever any since the service was last open: until then, nobody needs one."""
        now_ms = self._clock.now_ms()
        if now_ms >= self._exist_until:
            self._exist = await self._is_closed()
            self._exist_until = now_ms + (REMEMBERED_MS if self._exist else NONE_REMEMBERED_MS)
        return self._exist

    async def open(self) -> bool:
        """Let this machine in without a token again; whether it was closed. Refused while there is a token."""
        record = await self._records.get(*CLOSED, now_ms=self._clock.now_ms())
        if await self._page(1):
            raise InvalidInput("there are tokens: revoke them first, see `tickler token list`")
        if record is None or not record.value:
            return False
        try:
            await self._close(False, expected=record.version)
        except VersionConflict:
            raise InvalidInput("a token was made just now: revoke it first, see `tickler token list`") from None
        self._exist_until = 0
        return True

    async def revoke(self, id: str) -> bool:
        """Whether there was one. Processes that have just seen it may take it for five seconds more."""
        await self._is_closed()  # noted while there is a token, also in a store of an earlier version
        self._known.pop(id, None)
        self._exist_until = 0
        return bool(_TEXT.fullmatch(f"tk_{id}_{'0' * 64}")) and await self._records.delete(TOKEN, id)

    async def check(self, text: str) -> Token | None:
        """The token of that text, if it is one and valid. Takes as long for a wrong secret as for the right one."""
        parts = _TEXT.fullmatch(text)
        if parts is None:
            return None
        found = await self._find(parts[1])
        right, token = found if found is not None else (bytes(32), None)
        return token if hmac.compare_digest(right, _hash(parts[2])) else None

    async def get(self, id: str) -> Token | None:
        """By its id alone, for who has proved before that it is theirs."""
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
        """A store of an earlier version has tokens and no record: it gets one now, or at the next look."""
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
    """Its hash, and what it lets do. None for what a newer version wrote: nobody knows here what that lets do."""
    kept = value_of(record, _StoredToken)
    if kept is None:
        return None
    return bytes.fromhex(kept.hash), Token(**{name: getattr(kept, name) for name in Token.__struct_fields__})


def _hash(secret: str) -> bytes:
    """Of 256 random bits: nothing slower is needed to keep them secret."""
    return hashlib.sha256(secret.encode()).digest()


def _checked_scopes(scopes: Collection[Scope], owner: str | None) -> tuple[Scope, ...]:
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not scopes or isinstance(scopes, str):
        raise InvalidInput(f"scopes: {list(scopes)!r} are not some of {', '.join(SCOPES)}")
    if owner is not None:
        check_name("owner", owner)
        if "operate" in scopes:
            raise InvalidInput("scopes: operate concerns all owners: leave it out, or leave the owner out")
    return tuple(scope for scope in SCOPES if scope in scopes)


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or len(name) > MAX_TOKEN_NAME_LENGTH or not name.isprintable():
        raise InvalidInput(f"name: {str(name)[:40]!r} does not fit: give up to {MAX_TOKEN_NAME_LENGTH} printable characters")
    return name


def _checked_expiry(expires_at: int | datetime | None, now_ms: int) -> int | None:
    if expires_at is None:
        return None
    until = to_ms(expires_at, "expires_at")
    if until <= now_ms:
        raise InvalidInput("expires_at: has passed: give an instant that lies ahead")
    return until
