"""Tokens of programs."""

from __future__ import annotations

import pytest

from book import MARCH
from graphql_server import serving
from pricebook.access.caller import Caller
from pricebook.errors import InvalidField
from pricebook.people import Person
from pricebook.web.tokens import PriceToken, caller_of, programs
from tickler import ManualClock
from tickler.web import Visitor


async def test_a_token_needs_a_role_and_stores(clock: ManualClock) -> None:
    async with serving("memory://", clock) as server:
        tokens = server.app.tokens
        for roles, stores in (
            ((), ("",)),
            (("admin",), ("",)),
            (("read",), ()),
            (("read",), ("x" * 65,)),
            (("read",), ("1",) * 101),
        ):
            with pytest.raises(InvalidField):
                await tokens.issue("a till", roles, stores)  # type: ignore[arg-type]  # roles that do not exist
        id, text = await tokens.issue("a till", ["read"], ["10", "11"])
        assert text.startswith(f"pb_{id}_")


async def test_tokens_are_listed_without_their_texts(clock: ManualClock) -> None:
    async with serving("memory://", clock) as server:
        tokens = server.app.tokens
        issued = {(await tokens.issue(f"till {n}", ["read"], [str(n)]))[0] for n in range(102)}
        listed = await tokens.list()
        assert {token.id for token in listed} == issued
        assert {(token.name, token.stores) for token in listed} == {(f"till {n}", (str(n),)) for n in range(102)}


def test_the_caller_of_a_token_has_its_roles_and_stores() -> None:
    token = PriceToken(id="0123456789abcdef", scopes=("read", "edit"), stores=("10", "2"), name="a till")
    caller = caller_of(Visitor(user=programs(), token=token))
    assert caller == Caller(token.id, frozenset({"read", "edit"}), ("10", "2"))
    assert [caller.may_see(store) for store in ("10", "101", "2", "1", "30")] == [True, True, True, False, False]


def test_the_caller_of_a_session_is_the_person() -> None:
    person = Person(id="anna", name="Anna", roles={"read"}, stores=["1"], created_at=MARCH)
    assert caller_of(Visitor(user=person)) == Caller("anna", frozenset({"read"}), ("1",))


def test_nobody_may_do_anything_by_being_a_program_without_a_token() -> None:
    caller = caller_of(Visitor(user=programs()))
    assert (caller.roles, caller.stores) == (frozenset(), ())
    assert not caller.may_see("1")


async def test_a_person_with_a_session_asks_as_a_program_does(clock: ManualClock) -> None:
    async with serving("memory://", clock) as server:
        await server.opened.people.create("Anna", ["read"], stores=["1"])
        await server.book.a_store("1", {"P1": 1999})
        cookie = (await server.app.web.sessions.cookie_for("anna")).partition(";")[0]
        query = '{ basePrices(store: "1") { nodes { product } } }'
        assert (await server.post(query, cookie=cookie)).status == 200
        assert (await server.post(query, cookie=cookie, origin="https://elsewhere.example")).status == 403
        await server.opened.db.delete(Person.key.id("anna"))
        assert (await server.post(query, cookie=cookie)).status == 401
