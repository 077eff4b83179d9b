"""The bearer tokens of the service, and whether it requires one.

After the first token is created, the service requires one. It still does after the last one is revoked or expires, until `open`.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from datetime import datetime
from typing import Literal, cast, get_args

import msgspec

from tickler.access.bearer_tokens import MAX_LISTED, REMEMBERED_MS, BearerToken, BearerTokens
from tickler.clock import Clock
from tickler.errors import InvalidInput, TicklerError, VersionConflict
from tickler.model.schedule import check_name
from tickler.records.contract import RecordStore
from tickler.records.kinds import SERVER, TOKEN

Scope = Literal["read", "write", "operate"]  # see; change schedules and fires; tick, repair, and act on all owners

CLOSED = (SERVER, "closed")  # the record of whether a token is required, which outlives all tokens
SCOPES: tuple[Scope, ...] = get_args(Scope)
NONE_REMEMBERED_MS = 1_000  # how long the first token, created by another process, may not be required yet


class Token(BearerToken, frozen=True, kw_only=True):
    """The permissions of a token. With an `owner` it is limited to that owner's data."""

    scopes: tuple[Scope, ...]
    owner: str | None = None


class Tokens:
    """Creates, lists, checks and revokes tokens of the service, and opens and closes it."""

    def __init__(self, records: RecordStore, clock: Clock) -> None:
        self._records = records
        self._clock = clock
        self._tokens = BearerTokens(records, clock, Token, prefix="tk", record_kind=TOKEN)
        self._exist = False
        self._exist_until = 0  # `_exist` is valid until then

    async def create(
        self, scopes: Collection[Scope], *, owner: str | None = None, name: str = "", expires_at: int | datetime | None = None
    ) -> tuple[Token, str]:
        """Create a token. Return it with its text, which cannot be shown again."""
        if owner is not None:
            check_name("owner", owner)
            if "operate" in scopes:
                raise InvalidInput("scopes: operate covers all owners: leave it out, or leave out the owner")
        unchecked = cast("tuple[Scope, ...]", scopes)  # `BearerTokens` checks them
        created = await self._tokens.create(Token(scopes=unchecked, owner=owner, name=name), expires_at=expires_at)
        await self._close()  # after the token, so that a concurrent `open` sees one of the two
        self._exist_until = 0
        return created

    async def list(self) -> list[Token]:
        """Return the valid tokens, up to a thousand, ordered by id."""
        return (await self._tokens.list(limit=MAX_LISTED)).items

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
        if await self._tokens.are_any():
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
        self._exist_until = 0
        return await self._tokens.revoke(id)

    async def check(self, text: str) -> Token | None:
        """Return the token with that text, if it is valid. A wrong secret takes as long as the right one."""
        return await self._tokens.check(text)

    async def get(self, id: str) -> Token | None:
        """Return a token by its id, for callers that have proved possession before."""
        return await self._tokens.get(id)

    async def _is_closed(self) -> bool:
        """Return whether a token is required. A store of an earlier version has tokens but no such record: write it."""
        record = await self._records.get(*CLOSED, now_ms=self._clock.now_ms())
        if record is not None and record.value:
            return True
        if not await self._tokens.are_any():
            return False
        with suppress(TicklerError):
            await self._close(expected=0 if record is None else record.version)
        return True

    async def _close(self, closed: bool = True, *, expected: int | None = None) -> None:
        await self._records.put(*CLOSED, msgspec.json.encode(closed), now_ms=self._clock.now_ms(), expected=expected)
