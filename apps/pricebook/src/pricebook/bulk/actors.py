"""Who a job acts for: the one who has started it, with what they may do now."""

from __future__ import annotations

from typing import Protocol

from pricebook.access.caller import ROLES, Caller
from pricebook.model import BulkActor
from pricebook.people import Person


class FindPerson(Protocol):
    async def get(self, id: str) -> Person | None: ...


class Actors:
    """Lets a job do no more than when it was started, and no more than its person may today.

    A token is not looked up: what it allowed when the job was started holds to its end.
    """

    def __init__(self, people: FindPerson) -> None:
        self._people = people

    async def now(self, actor: BulkActor) -> Caller:
        then = Caller(actor.id, frozenset(role for role in ROLES if role in actor.roles), tuple(actor.stores))
        person = await self._people.get(actor.id)
        return then if person is None else both(then, person.caller)


def actor_of(caller: Caller) -> BulkActor:
    return BulkActor(id=caller.id, roles=set(caller.roles), stores=list(caller.stores))


def both(one: Caller, other: Caller) -> Caller:
    """Return what two callers with the same id may both do."""
    stores = [a if a.startswith(b) else b for a in one.stores for b in other.stores if a.startswith(b) or b.startswith(a)]
    return Caller(one.id, one.roles & other.roles, tuple(dict.fromkeys(stores)))
