"""Reads change sets, their lines and their stores in pages, as far as a caller may see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from pricebook.access.caller import Caller
from pricebook.access.filtered_pages import filtered_page
from pricebook.access.scope import may_see_scope
from pricebook.change_sets.lines_of_all_stores import LinesOfAllStores
from pricebook.change_sets.report_values import Finding, Report
from pricebook.change_sets.writer import ChangeSetWriter
from pricebook.editions.keyset_pages import KeysetPages, Listed
from pricebook.editions.pages import NodePage, PageArgs
from pricebook.errors import NotFound, PriceConflict
from pricebook.model import ChangeLine, ChangeProgress, ChangeSet, ChangeStore, EndedState
from tickler.table import Missing, OpenTable

MAX_OF_STORE = 256  # more than a store has editions


class ChangeReader:
    def __init__(self, db: OpenTable, writer: ChangeSetWriter) -> None:
        self._db = db
        self._writer = writer
        self._pages = KeysetPages(db, writer.now)

    async def get(self, caller: Caller, id: str) -> ChangeSet:
        caller.require("read")
        return await self._writer.visible(caller, id)

    async def get_many(self, caller: Caller, ids: Sequence[str]) -> list[ChangeSet | None]:
        caller.require("read")
        found = await self._db.get_many([ChangeSet.key.id(id or "-") for id in ids])
        return [each if each is not None and may_see_scope(caller, each.scope, each.created_by) else None for each in found]

    async def titled(self, caller: Caller, clash: PriceConflict) -> PriceConflict:
        """Return a conflict that says what the other change set is called, if this caller may know."""
        (other,) = await self.get_many(caller, [clash.change_set or ""])
        if other is None:
            return clash
        return PriceConflict(clash.store, clash.price, clash.edition, clash.change_set, other.title)

    async def report_with_titles(self, caller: Caller, report: Report) -> Report:
        """Let a report say what the change sets are called that are in conflict with this one."""
        ids = list(dict.fromkeys(each.other for each in report.findings if each.other is not None))
        if not ids:
            return report
        titles = {each.id: each.title for each in await self.get_many(caller, ids) if each is not None}
        return replace(report, findings=[_titled(each, titles) for each in report.findings])

    async def open(self, caller: Caller, page: PageArgs) -> NodePage[ChangeSet]:
        listed = Listed(ChangeSet.open(), _by_creation, (datetime, str), newest_first=True)
        return await self._visible(caller, "open", listed, page)

    async def ended(self, caller: Caller, state: EndedState, page: PageArgs) -> NodePage[ChangeSet]:
        listed = Listed(ChangeSet.ended(state), _by_end, (datetime, str), newest_first=True)
        return await self._visible(caller, state, listed, page)

    async def lines(self, caller: Caller, id: str, page: PageArgs, *, store: str | None = None) -> NodePage[ChangeLine]:
        """Return lines by store, channel, type and product; of one store, or of all."""
        await self.get(caller, id)
        if store is not None:
            caller.require_store(store)
            listed = Listed(ChangeLine.key(id, store), _by_product, (str, str, str, str))
            return await self._pages.page(("lines", id, store), listed, page)
        return await self._pages.page(("lines", id), LinesOfAllStores(id), page)

    async def stores(self, caller: Caller, id: str, page: PageArgs) -> NodePage[ChangeStore]:
        await self.get(caller, id)
        listed = Listed(ChangeStore.key(id), _by_store, (str,))
        return await self._pages.page(("stores", id), listed, page)

    async def of_store(self, caller: Caller, store: str) -> list[ChangeStore]:
        """Return the change sets that are sealed in a store, by edition, until they are settled there."""
        caller.require("read")
        caller.require_store(store)
        if not store:
            raise NotFound("store")
        page = await self._db.query(ChangeStore.of_store(store), first=MAX_OF_STORE)
        return list(page.items)

    async def progress(self, caller: Caller, id: str) -> ChangeProgress:
        found = await self.get(caller, id)
        match found.state:
            case "approved":
                unsettled = await self._db.count(ChangeStore.unsettled(id))
                settled = max(0, found.stores - unsettled)
                return ChangeProgress(change_set=id, staged=found.stores, sealed=found.stores, settled=settled)
            case "settled" | "superseded":
                return ChangeProgress(change_set=id, staged=found.stores, sealed=found.stores, settled=found.stores)
            case "approving" | "withdrawing":
                kept = await self._db.get(ChangeProgress.key.id(id))
                return kept or ChangeProgress(change_set=id)
        return ChangeProgress(change_set=id)

    async def _visible(self, caller: Caller, name: str, listed: Listed[ChangeSet], page: PageArgs) -> NodePage[ChangeSet]:
        caller.require("read")

        async def read(args: PageArgs) -> NodePage[ChangeSet]:
            return await self._pages.page(("change sets", name), listed, args)

        def keep(found: ChangeSet) -> bool:
            return may_see_scope(caller, found.scope, found.created_by)

        return await read(page) if caller.has_all_stores else await filtered_page(read, page, keep)


def _titled(found: Finding, titles: Mapping[str, str]) -> Finding:
    if found.key is None or found.other is None or found.other not in titles:
        return found
    clash = PriceConflict(found.key.store, found.key.of, None, found.other, titles[found.other])
    return replace(found, message=str(clash))


def _by_creation(found: ChangeSet) -> tuple[datetime, str]:
    return found.created_at, found.id


def _by_end(found: ChangeSet) -> tuple[datetime | Missing, str]:
    return found.ended_at, found.id


def _by_product(line: ChangeLine) -> tuple[str, str, str, str]:
    return line.channel, line.type, line.product, line.combination


def _by_store(found: ChangeStore) -> tuple[str]:
    return (found.store,)
