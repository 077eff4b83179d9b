"""Creates and finds people."""

from __future__ import annotations

import re
from collections.abc import Sequence
from zoneinfo import available_timezones

from pricebook.access.caller import ROLES, Role
from pricebook.editions.timing import Now
from pricebook.errors import InvalidField, NotAllowed
from pricebook.people.person import Person
from tickler.errors import ConditionFailed
from tickler.table import OpenTable

MAX_NAME = 80

_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_NOT_IN_IDS = re.compile(r"[^a-z0-9]+")


class People:
    def __init__(self, db: OpenTable, now: Now) -> None:
        self._db = db
        self._now = now

    async def create(
        self,
        name: str,
        roles: Sequence[Role] = ROLES,
        *,
        stores: Sequence[str] = ("",),
        zone: str = "UTC",
        id: str | None = None,
    ) -> Person:
        """Create a person. The id is the actor in the audit and never changes; by default it is made of the name."""
        chosen = _NOT_IN_IDS.sub("-", name.lower()).strip("-") if id is None else id
        if not _ID.fullmatch(chosen):
            raise InvalidField("id", f"{chosen[:60]!r} is invalid: use up to 40 lower-case letters, digits and -")
        person = Person(
            id=chosen,
            name=_checked_name(name),
            zone=_checked_zone(zone),
            roles=set(_checked_roles(roles)),
            stores=list(stores) or [""],
            created_at=self._now(),
        )
        try:
            return await self._db.create(person)
        except ConditionFailed:
            raise NotAllowed(f"there is a person {chosen!r} already: choose another id with --id") from None

    async def get(self, id: str) -> Person | None:
        return await self._db.get(Person.key.id(id))

    async def everyone(self) -> list[Person]:
        return [person async for person in self._db.iterate(Person.everyone())]


def _checked_name(name: str) -> str:
    line = " ".join(name.split())
    if not 1 <= len(line) <= MAX_NAME or not line.isprintable():
        raise InvalidField("name", f"use 1 to {MAX_NAME} printable characters")
    return line


def _checked_zone(zone: str) -> str:
    if zone not in available_timezones():
        raise InvalidField("zone", f"{zone[:60]!r} is not a time zone: use a name such as Europe/Paris")
    return zone


def _checked_roles(roles: Sequence[Role]) -> Sequence[Role]:
    if not roles or any(role not in ROLES for role in roles):
        raise InvalidField("roles", f"use one or more of {', '.join(ROLES)}")
    return roles
