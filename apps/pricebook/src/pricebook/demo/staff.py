"""The people of the demo. Whoever starts it is the first of them; the others make what there is to approve."""

from __future__ import annotations

from pricebook.access.caller import Caller, Role
from pricebook.app import Pricebook

DEMO_PERSON = "demo"
EDITOR = "mara"
APPROVER = "tom"

_STAFF: tuple[tuple[str, str, tuple[Role, ...], tuple[str, ...]], ...] = (
    (DEMO_PERSON, "Demo", ("read", "edit", "approve"), ("",)),
    (EDITOR, "Mara Lindqvist", ("read", "edit"), ("",)),
    (APPROVER, "Tom Okafor", ("read", "approve"), ("",)),
    ("till", "Store 10007", ("read",), ("10007",)),
)


async def hire(book: Pricebook, zone: str) -> None:
    for id, name, roles, stores in _STAFF:
        await book.people.create(name, roles, stores=stores, zone=zone, id=id)


async def caller_of(book: Pricebook, id: str) -> Caller:
    person = await book.people.get(id)
    assert person is not None, "the demo has made this person"
    return person.caller
