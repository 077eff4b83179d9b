"""Changes prices over GraphQL in tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pricebook.access.caller import ROLES
from pricebook.change_sets import ChangeSets
from query_client import SCHEMA, QueryClient

CHANGE_SET = "changeSet { id state rev }"


def mutation(name: str, fields: str = CHANGE_SET) -> str:
    """Return the text of a mutation, whose variable is its input."""
    assert SCHEMA.mutation_type is not None
    type_ = SCHEMA.mutation_type.fields[name].args["input"].type
    return f"mutation ($input: {type_}) {{ {name}(input: $input) {{ {fields} }} }}"


def prices(amounts: Mapping[str, int | None], store: str = "1", **others: Any) -> list[dict[str, Any]]:
    """Return prices of products as mutations take them, in minor units of EUR."""
    return [
        {"store": store, "product": product, "price": None if minor is None else {"minor": minor, "currency": "EUR"}, **others}
        for product, minor in amounts.items()
    ]


class ChangeClient(QueryClient):
    """Does mutations, as a caller with all roles unless it is told otherwise."""

    def __init__(self, services: Any, **arguments: Any) -> None:
        super().__init__(services=services, **{"roles": ROLES, "now": services.now(), **arguments})
        self.change_sets: ChangeSets = services.change_sets

    async def do(self, name: str, fields: str = CHANGE_SET, **input: Any) -> dict[str, Any]:
        """Return the payload of a mutation that is done."""
        payload: dict[str, Any] = (await self.data(mutation(name, fields), input=input))[name]
        return payload

    async def refused(self, name: str, **input: Any) -> dict[str, Any]:
        """Return the extensions of the only error of a mutation, and its message."""
        answer = await self.ask(mutation(name), input=input)
        assert answer["data"] == {name: None}, answer
        (error,) = answer["errors"]
        return {**error["extensions"], "message": error["message"]}

    async def draft(self, *lines: Sequence[dict[str, Any]], **new: Any) -> str:
        """Create a draft with prices, and return its id."""
        made = await self.do("createPriceChange", **{"title": "Spring", **new})
        id: str = made["changeSet"]["id"]
        for some in lines:
            await self.do("addPrices", id=id, prices=list(some))
        return id

    async def submitted(self, *lines: Sequence[dict[str, Any]], **new: Any) -> tuple[str, int]:
        """Submit a change set with prices, and return its id and its rev."""
        id = await self.draft(*lines, **new)
        return id, (await self.do("submitPriceChange", id=id))["changeSet"]["rev"]

    async def approved(self, *lines: Sequence[dict[str, Any]], **new: Any) -> str:
        """Approve a change set with prices, and let that be carried out. Returns its id."""
        id, rev = await self.submitted(*lines, **new)
        await self.by_another("approvePriceChange", id=id, rev=rev)
        await self.change_sets.carry_on(id)
        return id

    async def by_another(self, name: str, **input: Any) -> dict[str, Any]:
        """Do a mutation as somebody else, such as one who approves what this caller has submitted."""
        other = QueryClient(services=self.services, roles=ROLES, now=self.now, id="another")
        payload: dict[str, Any] = (await other.data(mutation(name), input=input))[name]
        return payload
