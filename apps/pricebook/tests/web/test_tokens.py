"""Tokens of programs."""

from __future__ import annotations

import pytest

from graphql_server import serving
from pricebook.access.caller import Caller
from pricebook.errors import InvalidField
from pricebook.web.tokens import PriceToken, caller_of
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


def test_the_caller_of_a_token_has_its_roles_and_stores() -> None:
    token = PriceToken(id="0123456789abcdef", scopes=("read", "edit"), stores=("10", "2"), name="a till")
    caller = caller_of(Visitor(user=token.id, token=token))
    assert caller == Caller(token.id, frozenset({"read", "edit"}), ("10", "2"))
    assert [caller.may_see(store) for store in ("10", "101", "2", "1", "30")] == [True, True, True, False, False]


def test_who_has_no_token_has_no_roles() -> None:
    assert caller_of(Visitor(user="somebody")).roles == frozenset()
