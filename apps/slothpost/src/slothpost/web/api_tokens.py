"""Tokens with which a user's scripts call the API."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from slothpost.errors import InvalidField, NotFound
from slothpost.model import IssuedToken, User
from slothpost.text.invisible import visible_line
from tickler.table import OpenTable
from tickler.web import BearerToken, BearerTokens

ApiScope = Literal["read", "write"]
API_TOKEN_PREFIX = "sp"  # noqa: S105  # not a secret: the text of every token begins with it
MAX_NAME = 60
MAX_TOKENS = 20


class ApiToken(BearerToken, frozen=True, kw_only=True):
    """A token acts for one user, and reaches what that user reaches."""

    scopes: tuple[ApiScope, ...]
    user: str


class ApiTokens:
    """Issues and revokes the tokens of users. The engine checks them; this is what their users see in a list."""

    def __init__(self, db: OpenTable, tokens: BearerTokens[ApiToken]) -> None:
        self._db = db
        self._tokens = tokens

    async def issue(self, user: User, name: str, *, writes: bool) -> str:
        """Create a token, and return its text, which cannot be shown again."""
        wanted = visible_line(name)
        if not 1 <= len(wanted) <= MAX_NAME:
            raise InvalidField("token_name", f"use 1 to {MAX_NAME} characters, so that you know it again")
        if len(await self.list(user)) >= MAX_TOKENS:
            raise InvalidField("token_name", f"you have {MAX_TOKENS} tokens: revoke one that you do not use")
        scopes: tuple[ApiScope, ...] = ("read", "write") if writes else ("read",)
        token, text = await self._tokens.create(ApiToken(scopes=scopes, user=user.id, name=wanted))
        created_at = datetime.fromtimestamp(token.created_at / 1000, UTC)
        await self._db.put(IssuedToken(user=user.id, id=token.id, name=wanted, scopes=list(scopes), created_at=created_at))
        return text

    async def list(self, user: User) -> list[IssuedToken]:
        found = [token async for token in self._db.iterate(IssuedToken.key(user.id))]
        return sorted(found, key=lambda token: token.created_at)

    async def revoke(self, user: User, id: str) -> None:
        """Revoke a token of a user; `NotFound` also if it is somebody else's."""
        if await self._db.get(IssuedToken.key.id(user.id, id)) is None:
            raise NotFound("token")
        await self._tokens.revoke(id)
        await self._db.delete(IssuedToken.key.id(user.id, id))
