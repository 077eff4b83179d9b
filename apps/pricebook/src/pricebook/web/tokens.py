"""Tokens of programs: with roles, and for all stores or some."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from pricebook.access.caller import ROLES, Caller, Role
from pricebook.errors import InvalidField
from pricebook.people import Person
from tickler.web import BearerToken, BearerTokens, Visitor

TOKEN_PREFIX = "pb"  # noqa: S105  # not a secret: the text of every token begins with it
PROGRAMS = ":programs"
"""The subject of all tokens. No person has such an id."""
MAX_PREFIXES = 100
MAX_PREFIX_LENGTH = 64


class PriceToken(BearerToken, frozen=True, kw_only=True):
    """A token of a program. `stores` are prefixes of store ids; the empty one is all stores."""

    scopes: tuple[Role, ...]
    stores: tuple[str, ...]


class PriceTokens:
    """Issues and revokes tokens."""

    def __init__(self, tokens: BearerTokens[PriceToken]) -> None:
        self._tokens = tokens

    async def issue(self, name: str, roles: Sequence[Role], stores: Sequence[str] = ("",)) -> tuple[str, str]:
        """Create a token, and return its id and its text, which cannot be shown again."""
        unknown = [role for role in roles if role not in ROLES]
        if unknown or not roles:
            raise InvalidField("roles", f"use one or more of {', '.join(ROLES)}")
        if not 1 <= len(stores) <= MAX_PREFIXES or not all(len(prefix) <= MAX_PREFIX_LENGTH for prefix in stores):
            raise InvalidField("stores", f"name 1 to {MAX_PREFIXES} beginnings of store ids, or the empty text for all stores")
        token, text = await self._tokens.create(PriceToken(scopes=tuple(roles), stores=tuple(stores), name=name))
        return token.id, text

    async def list(self) -> list[PriceToken]:
        """Return all tokens, by id, without their texts."""
        page = await self._tokens.list()
        found = page.items
        while page.next is not None:
            page = await self._tokens.list(after=page.next)
            found += page.items
        return found

    async def revoke(self, id: str) -> bool:
        """Return whether there was such a token."""
        return await self._tokens.revoke(id)


def programs() -> Person:
    """Return whose the tokens are. This person may do nothing: what a program may do is in its token."""
    return Person(id=PROGRAMS, name="programs", roles=set(), stores=[], created_at=datetime.fromtimestamp(0, UTC))


def caller_of(visitor: Visitor[Person]) -> Caller:
    """Return who calls: a program with a token, or a person with a session. Anybody else is refused with 401."""
    person = visitor.require()
    token = visitor.token
    return Caller(token.id, frozenset(token.scopes), token.stores) if isinstance(token, PriceToken) else person.caller
