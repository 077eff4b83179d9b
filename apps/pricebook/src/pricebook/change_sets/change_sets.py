"""What people do with change sets. Roles and stores of the caller are enforced here, below every way in."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence

from pricebook.access.caller import Caller, Role
from pricebook.access.scope import widened
from pricebook.change_sets import states
from pricebook.change_sets.change_reader import ChangeReader
from pricebook.change_sets.line_writer import LineWriter
from pricebook.change_sets.values import Line, NewChangeSet
from pricebook.change_sets.writer import ChangeSetWriter, Write, cause_of
from pricebook.editions.pages import NodePage, PageArgs
from pricebook.editions.switch import Switch
from pricebook.errors import NotAllowed
from pricebook.model import ChangeLine, ChangeProgress, ChangeSet, ChangeStore, PriceKey
from pricebook.points import AtPoint, pass_on
from tickler import Tickler
from tickler.table import MISSING, OpenTable


class ChangeSets:
    """`large_change` is from which share on a report warns. With `four_eyes`, whoever has submitted a set does not approve it."""

    def __init__(
        self,
        t: Tickler,
        db: OpenTable,
        switch: Switch,
        *,
        large_change: float = 0.3,
        four_eyes: bool = True,
        at_point: AtPoint = pass_on,
    ) -> None:
        self._writer = ChangeSetWriter(t, db)
        self._reader = ChangeReader(db, self._writer)
        self._lines = LineWriter(db, self._writer)
        self._four_eyes = four_eyes

    async def create(self, caller: Caller, new: NewChangeSet, *, request: str = "", id: str | None = None) -> ChangeSet:
        """Make an empty draft. An `id` that is taken is refused, so that an interrupted program makes no second one."""
        caller.require("edit")
        return await self._create(caller, new, request, id=id)

    async def edit(self, caller: Caller, id: str, new: NewChangeSet, *, rev: int, request: str = "") -> ChangeSet:
        """Change what a draft says of itself. `rev` is what was read."""
        await self._mine(caller, id, "edit")
        attributes = new.checked().attributes()
        cause = cause_of(caller, request=request)
        return await self._writer.write(id, Write("edit", lambda found: states.edited(found, attributes), cause, rev))

    async def put_lines(self, caller: Caller, id: str, lines: Iterable[Line], *, request: str = "") -> int:
        """Add prices to a draft, or replace them: any number, in batches. Returns how many were given."""
        caller.require("edit")
        return await self._lines.put(caller, id, lines, cause_of(caller, request=request))

    async def remove_lines(self, caller: Caller, id: str, keys: Iterable[PriceKey], *, request: str = "") -> int:
        """Remove prices from a draft. Returns how many there were."""
        caller.require("edit")
        return await self._lines.remove(caller, id, keys, cause_of(caller, request=request))

    async def get(self, caller: Caller, id: str) -> ChangeSet:
        return await self._reader.get(caller, id)

    async def get_many(self, caller: Caller, ids: Sequence[str]) -> list[ChangeSet | None]:
        """Return change sets in order, None for each that is not there, or not for this caller."""
        return await self._reader.get_many(caller, ids)

    async def progress(self, caller: Caller, id: str) -> ChangeProgress:
        return await self._reader.progress(caller, id)

    async def lines(self, caller: Caller, id: str, page: PageArgs, *, store: str | None = None) -> NodePage[ChangeLine]:
        """Return the prices of a change set by store, channel, type and product. A rollback has none of its own."""
        return await self._reader.lines(caller, id, page, store=store)

    async def stores(self, caller: Caller, id: str, page: PageArgs) -> NodePage[ChangeStore]:
        return await self._reader.stores(caller, id, page)

    async def open(self, caller: Caller, page: PageArgs) -> NodePage[ChangeSet]:
        """Return the change sets that are not over, newest first."""
        return await self._reader.open(caller, page)

    async def of_store(self, caller: Caller, store: str) -> list[ChangeStore]:
        """Return the change sets that are sealed in a store and not settled there."""
        return await self._reader.of_store(caller, store)

    async def submit(self, caller: Caller, id: str, *, rev: int | None = None, request: str = "") -> ChangeSet:
        """Let others see to a draft. From now on its lines do not change, unless it is sent back."""
        found = await self._mine(caller, id, "edit")
        states.check_state(found, "draft")
        counted = await self._lines.count(id)
        kept = {store: lines for store, lines in counted.items() if lines}
        if not kept:
            raise NotAllowed(f"change set {id} has no prices: add some first")
        await self._lines.forget_stores(found, counted.keys() - kept.keys())
        cause, scope = cause_of(caller, request=request), widened(set(), sorted(kept), caller)

        def decide(before: ChangeSet) -> ChangeSet:
            return states.submitted(before, cause, self._writer.now(), len(kept), sum(kept.values()), scope)

        return await self._writer.write(id, Write("submit", decide, cause, found.rev if rev is None else rev))

    async def send_back(
        self, caller: Caller, id: str, *, rev: int | None = None, reason: str = "", request: str = ""
    ) -> ChangeSet:
        """Let a submitted set be a draft again."""
        await self._mine(caller, id, "approve")
        return await self._writer.write(id, Write("send_back", states.sent_back, cause_of(caller, reason, request), rev))

    async def _create(
        self, caller: Caller, new: NewChangeSet, request: str, *, rolls_back: str | None = None, id: str | None = None
    ) -> ChangeSet:
        draft = ChangeSet(
            id=secrets.token_hex(8) if id is None else id,
            created_by=caller.id,
            created_at=self._writer.now(),
            rolls_back=MISSING if rolls_back is None else rolls_back,
            **new.checked().attributes(),  # type: ignore[arg-type]  # named and typed alike
        )
        return await self._writer.create(draft, cause_of(caller, request=request))

    async def _mine(self, caller: Caller, id: str, role: Role) -> ChangeSet:
        caller.require(role)
        return await self._writer.visible(caller, id)
