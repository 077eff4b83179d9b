"""Writes audit entries of stores, and reads the audit in pages, newest first, as far as a caller may see it."""

from __future__ import annotations

from datetime import date, datetime

from pricebook.access.caller import Caller
from pricebook.access.filtered_pages import filtered_page
from pricebook.access.scope import may_see_scope
from pricebook.audit.entries import change_subject, entry_of_edition, store_subject
from pricebook.editions.head_writes import Transition
from pricebook.editions.keyset_pages import KeysetPages, Listed
from pricebook.editions.pages import NodePage, PageArgs
from pricebook.editions.timing import Now
from pricebook.errors import NotFound
from pricebook.model import AuditedPrice, AuditEntry, ChangeSet, has_combination
from tickler.table import MISSING, OpenTable, Transaction


class AuditTrail:
    def __init__(self, db: OpenTable, now: Now) -> None:
        self._db = db
        self._pages = KeysetPages(db, now)

    def record(self, tx: Transaction, transition: Transition) -> None:
        """Add the entry of a transition of an edition to its transaction: pass it as `Switch(record=…)`."""
        tx.create(entry_of_edition(transition))

    async def of_store(self, caller: Caller, store: str, page: PageArgs) -> NodePage[AuditEntry]:
        caller.require("read")
        caller.require_store(store)
        return await self._of_subject(store_subject(store), page)

    async def of_change_set(self, caller: Caller, id: str, page: PageArgs) -> NodePage[AuditEntry]:
        """Return what was done to a change set. What it did in a store is in the audit of that store."""
        caller.require("read")
        if not id:
            raise NotFound("change set")
        found = await self._db.get(ChangeSet.key.id(id))
        if found is None or not may_see_scope(caller, found.scope, found.created_by):
            raise NotFound("change set")
        return await self._of_subject(change_subject(id), page)

    async def of_actor(self, caller: Caller, actor: str, page: PageArgs) -> NodePage[AuditEntry]:
        if not actor:
            raise NotFound("actor")
        listed = Listed(AuditEntry.of_actor(actor), _by_instant, (datetime, str, str), newest_first=True)
        return await self._visible(caller, ("audit", "actor", actor), listed, page)

    async def of_day(self, caller: Caller, day: date, page: PageArgs) -> NodePage[AuditEntry]:
        """Return what was done on a day in UTC."""
        listed = Listed(AuditEntry.of_day(day), _by_instant, (datetime, str, str), newest_first=True)
        return await self._visible(caller, ("audit", "day", day.isoformat()), listed, page)

    async def of_product(self, caller: Caller, type: str, product: str, page: PageArgs) -> NodePage[AuditedPrice]:
        """Return the prices that were decided for a product, in all stores of the caller."""
        caller.require("read")
        has_combination(type)  # refuses unknown types
        if not product:
            raise NotFound("product")
        listed = Listed(AuditedPrice.of_product(type, product), _by_decision, (datetime, str, int, str, str), newest_first=True)

        async def read(args: PageArgs) -> NodePage[AuditedPrice]:
            return await self._pages.page(("audit", "product", type, product), listed, args)

        if caller.has_all_stores:
            return await read(page)
        return await filtered_page(read, page, lambda price: caller.may_see(price.store))

    async def prices_of(self, caller: Caller, store: str, edition: int, page: PageArgs) -> NodePage[AuditedPrice]:
        """Return the prices that an edition of a store was to change, by channel, type and product."""
        caller.require("read")
        caller.require_store(store)
        listed = Listed(AuditedPrice.key(store, edition), _by_product, (str, str, str, str))
        return await self._pages.page(("audit", "prices", store, str(edition)), listed, page)

    async def _of_subject(self, subject: str, page: PageArgs) -> NodePage[AuditEntry]:
        listed = Listed(AuditEntry.key(subject), _of_one_subject, (datetime, str), newest_first=True)
        return await self._pages.page(("audit", subject), listed, page)

    async def _visible(
        self, caller: Caller, query: tuple[str, ...], listed: Listed[AuditEntry], page: PageArgs
    ) -> NodePage[AuditEntry]:
        caller.require("read")

        async def read(args: PageArgs) -> NodePage[AuditEntry]:
            return await self._pages.page(query, listed, args)

        def keep(entry: AuditEntry) -> bool:
            if entry.store is not MISSING:
                return caller.may_see(entry.store)
            return may_see_scope(caller, entry.scope, entry.actor)

        return await read(page) if caller.has_all_stores else await filtered_page(read, page, keep)


def _of_one_subject(entry: AuditEntry) -> tuple[datetime, str]:
    return entry.at, entry.id


def _by_instant(entry: AuditEntry) -> tuple[datetime, str, str]:
    return entry.at, entry.subject, entry.id


def _by_decision(price: AuditedPrice) -> tuple[datetime, str, int, str, str]:
    return price.at, price.store, price.edition, price.channel, price.combination


def _by_product(price: AuditedPrice) -> tuple[str, str, str, str]:
    return price.channel, price.type, price.product, price.combination
