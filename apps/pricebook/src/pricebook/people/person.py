"""A person, with the roles and the stores that a token has, too."""

from __future__ import annotations

from datetime import datetime

from pricebook.access.caller import ROLES, Caller
from pricebook.model import pricebook
from tickler.table import Attr, Entity, Index, Key, attr


class Person(Entity, table=pricebook):
    """`stores` are prefixes of store ids; the empty one is all stores. Times are shown to a person in `zone`."""

    id: Attr[str] = attr()
    name: Attr[str]
    zone: Attr[str] = attr(default="UTC")
    roles: Attr[set[str]]
    stores: Attr[list[str]]
    created_at: Attr[datetime]

    key = Key("PERSON" / id, "PERSON")
    everyone = Index("gsi1", "PEOPLE", id)

    @property
    def caller(self) -> Caller:
        """Return who acts when this person does."""
        return Caller(self.id, frozenset(role for role in ROLES if role in self.roles), tuple(self.stores))

    def may(self, role: str) -> bool:
        return role in self.roles
