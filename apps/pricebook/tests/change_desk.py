"""A desk at which change sets are made, approved and carried on: what happens there, in few words. Prices are EUR."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from book import euros
from pricebook.access.caller import Caller, Role
from pricebook.app import Pricebook
from pricebook.change_sets import Line, NewChangeSet
from pricebook.editions.pages import PageArgs
from pricebook.editions.timing import Timing
from pricebook.model import AuditEntry, ChangeSet, ChangeStore, Edition, EndedState, Head, PriceKey
from tickler import ManualClock, RetryLater

READER = Caller("rita", frozenset(["read"]))
EDITOR = Caller("ed", frozenset(["read", "edit"]))
APPROVER = Caller("anna", frozenset(["read", "edit", "approve"]))

MAX_CALLS = 50
Prices = Mapping[str, int | None]


def lines_of(prices: Mapping[str, Prices], channel: str = "ALL") -> list[Line]:
    """Return the lines of products by store."""
    return [
        Line(PriceKey(store, channel, "Base", product), euros(minor))
        for store, products in prices.items()
        for product, minor in products.items()
    ]


class ChangeDesk:
    def __init__(self, book: Pricebook, clock: ManualClock) -> None:
        self.book = book
        self.clock = clock
        self.change_sets = book.change_sets
        self.timing: Timing = book.timing

    def pass_(self, time: timedelta | None = None) -> None:
        """Let time pass, by default enough for what was sealed to count."""
        self.clock.advance((self.timing.margin if time is None else time).total_seconds())

    async def stores(self, *stores: str, tz: str = "UTC", prices: Prices | None = None) -> None:
        """Make stores whose prices are settled."""
        for store in stores:
            await self.book.switch.open_store(store, tz=tz)
        if prices:
            await self.carried((await self.change_now(dict.fromkeys(stores, prices))).id)
            self.pass_()
            for store in stores:
                await self.book.settling.settle(store)

    async def draft(self, prices: Mapping[str, Prices], *, caller: Caller = EDITOR, **when: Any) -> ChangeSet:
        made = await self.change_sets.create(caller, NewChangeSet(**{"title": "spring prices", **when}))
        await self.change_sets.put_lines(caller, made.id, lines_of(prices))
        return await self.get(made.id)

    async def submitted(self, prices: Mapping[str, Prices], **when: Any) -> ChangeSet:
        return await self.change_sets.submit(EDITOR, (await self.draft(prices, **when)).id)

    async def approving(self, prices: Mapping[str, Prices], **when: Any) -> ChangeSet:
        return await self.approve((await self.submitted(prices, **when)).id)

    async def approved(self, prices: Mapping[str, Prices], **when: Any) -> ChangeSet:
        found = await self.carried((await self.approving(prices, **when)).id)
        assert found.state == "approved", found.refused
        return found

    async def approve(self, id: str, **why: str) -> ChangeSet:
        return await self.change_sets.approve(APPROVER, id, rev=(await self.get(id)).rev, **why)

    async def change_now(self, prices: Mapping[str, Prices]) -> ChangeSet:
        return await self.change_sets.change_now(APPROVER, lines_of(prices), title="now", reason="the prices were wrong")

    async def rolled_back(self, id: str) -> ChangeSet:
        """Roll a change set back in all its stores. Returns the one that did."""
        made = await self.change_sets.roll_back(APPROVER, id, reason="a mistake")
        other = Caller("otto", APPROVER.roles)
        await self.change_sets.approve(other, made.id, rev=made.rev)
        return await self.carried(made.id)

    async def carried(self, id: str) -> ChangeSet:
        """Carry a change set on as the engine does, until there is nothing more to do."""
        await self.carry_on(id)
        return await self.get(id)

    async def carry_on(self, id: str) -> str:
        for _ in range(MAX_CALLS):
            try:
                return await self.change_sets.carry_on(id)
            except RetryLater as later:
                self.pass_(later.after)
        raise AssertionError(f"{id} does not come to an end")

    async def get(self, id: str) -> ChangeSet:
        return await self.change_sets.get(APPROVER, id)

    async def ended(self, state: EndedState, caller: Caller = READER) -> list[str]:
        page = await self.change_sets.ended(caller, state, PageArgs(first=2_048))
        return [each.id for each in page.nodes]

    async def in_store(self, id: str, store: str = "1") -> ChangeStore:
        found = await self.book.db.get(ChangeStore.key.id(id, store))
        assert found is not None
        return found

    async def settle(self, *stores: str) -> None:
        for store in stores:
            await self.book.settling.settle(store)

    async def editions(self, store: str = "1") -> dict[int, Edition]:
        head = await self.book.db.get(Head.key.id(store))
        assert head is not None
        return head.editions

    async def shown(self, store: str = "1", channel: str = "ALL") -> dict[str, int]:
        page = await self.book.prices.of_store(store, channel=channel, page=PageArgs(first=2_048))
        return {node.product: node.amount.minor for node in page.nodes}

    async def history(self, id: str) -> list[AuditEntry]:
        """Return what was done to a change set, oldest first."""
        page = await self.book.audit.of_change_set(APPROVER, id, PageArgs(first=2_048))
        return page.nodes[::-1]

    async def actions(self, id: str) -> list[str]:
        return [entry.action for entry in await self.history(id)]

    async def history_of_store(self, store: str = "1") -> list[AuditEntry]:
        page = await self.book.audit.of_store(APPROVER, store, PageArgs(first=2_048))
        return page.nodes[::-1]


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def only_of(stores: Iterable[str], *roles: Role) -> Caller:
    """Return somebody who has these stores."""
    return Caller("sam", frozenset(roles) or APPROVER.roles, tuple(stores))
