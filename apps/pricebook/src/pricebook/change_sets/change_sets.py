"""What people do with change sets. Roles and stores of the caller are enforced here, below every way in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from pricebook.access.caller import Caller, Role
from pricebook.access.scope import widened
from pricebook.change_sets import states
from pricebook.change_sets.carrier import Carrier, Steps
from pricebook.change_sets.change_reader import ChangeReader
from pricebook.change_sets.conflicts import Conflicts
from pricebook.change_sets.finishing import Finishing
from pricebook.change_sets.line_writer import LineWriter
from pricebook.change_sets.report_values import Report
from pricebook.change_sets.reporter import Reporter
from pricebook.change_sets.rollback_steps import RollbackSteps
from pricebook.change_sets.rollbacks import Rollbacks
from pricebook.change_sets.store_prices import StorePrices
from pricebook.change_sets.store_steps import StoreSteps
from pricebook.change_sets.take_back import TakeBack
from pricebook.change_sets.values import Line, NewChangeSet
from pricebook.change_sets.writer import ChangeSetWriter, Write, cause_of, new_id
from pricebook.editions.head_writes import Cause
from pricebook.editions.outlook import Outlooks
from pricebook.editions.pages import NodePage, PageArgs
from pricebook.editions.point_in_time import PointInTime
from pricebook.editions.switch import Switch
from pricebook.errors import HasChanged, InvalidField, NotAllowed, PricebookError, PriceConflict
from pricebook.model import ChangeLine, ChangeProgress, ChangeSet, ChangeStore, EndedState, PriceKey
from pricebook.points import AtPoint, pass_on
from tickler import Tickler
from tickler.errors import InvalidInput
from tickler.table import MISSING, OpenTable, Transaction

CHECKED_AT_ONCE = 2_000  # lines of a change set whose report is read before it is approved


class Approval(NamedTuple):
    action: Literal["approve", "approve_now"]
    cause: Cause
    rev: int


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
        self._finishing = Finishing(db, self._writer)
        self._rollbacks = Rollbacks(db, self._writer)
        now, timing = self._writer.now, switch.timing
        outlooks = Outlooks(db, PointInTime(db, now, timing))
        self._reporter = Reporter(db, outlooks, now, timing, large_change)
        self._conflicts = Conflicts(db, now, timing)
        prices = StorePrices(db, switch, outlooks, at_point)
        ordinary = StoreSteps(db, switch, prices, now, at_point)
        rollback = RollbackSteps(db, switch, ordinary, prices, at_point)
        take_back = TakeBack(switch, ordinary, prices, at_point).take_back
        self._carrier = Carrier(db, self._writer, self._finishing, Steps(ordinary, rollback, take_back), at_point)
        self._four_eyes = four_eyes

    async def create(self, caller: Caller, new: NewChangeSet, *, request: str = "", id: str | None = None) -> ChangeSet:
        """Make an empty draft. An `id` that is taken is refused, so that an interrupted program makes no second one."""
        caller.require("edit")
        return await self._create(caller, new, request, id=id)

    async def edit(self, caller: Caller, id: str, new: NewChangeSet, *, rev: int, request: str = "") -> ChangeSet:
        """Change what a draft says of itself. `rev` is what was read."""
        found = await self._mine(caller, id, "edit")
        attributes = new.checked().attributes()
        try:
            await self._conflicts.check(states.edited(found, attributes))
        except PriceConflict as clash:
            raise await self._reader.titled(caller, clash) from None
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

    async def ended(self, caller: Caller, state: EndedState, page: PageArgs) -> NodePage[ChangeSet]:
        """Return the change sets that are over and in this state, those that ended last first."""
        return await self._reader.ended(caller, state, page)

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

    async def report(self, caller: Caller, id: str) -> Report:
        """Return what would happen if a change set were approved now."""
        report = await self._reporter.report(await self._reader.get(caller, id))
        return await self._reader.report_with_titles(caller, report)

    async def approve(self, caller: Caller, id: str, *, rev: int, reason: str = "", request: str = "") -> ChangeSet:
        """Let a submitted set be approved: its prices are staged in all stores, then sealed in all, by the engine.

        `rev` is what was read. `PriceConflict` names another change set that has the same price and date. What turns out only
        while prices are staged lets the set be submitted again, and `refused` says why.
        """
        found = await self._mine(caller, id, "approve")
        if self._four_eyes:
            states.check_four_eyes(found, caller.id)
        try:
            return await self._approve(found, Approval("approve", cause_of(caller, reason, request), rev))
        except PriceConflict as clash:
            raise await self._reader.titled(caller, clash) from None

    async def unapprove(
        self, caller: Caller, id: str, *, rev: int | None = None, reason: str = "", request: str = ""
    ) -> ChangeSet:
        """Take an approval back, also after its instant. Once that is done in all stores, the set is submitted again."""
        await self._mine(caller, id, "approve")
        return await self._withdraw(id, "unapprove", cause_of(caller, reason, request), rev)

    async def cancel(self, caller: Caller, id: str, *, rev: int | None = None, reason: str = "", request: str = "") -> ChangeSet:
        """Let a change set be over. If it is approved, its prices are taken back in all stores first."""
        found = await self._writer.visible(caller, id)
        cause = cause_of(caller, reason, request)
        if found.state in ("approving", "approved"):
            caller.require("approve")
            return await self._withdraw(id, "cancel", cause, rev)
        caller.require("edit")
        return await self._writer.write(
            id, Write("cancel", lambda found: states.cancelled(found, self._writer.now()), cause, rev)
        )

    async def roll_back(self, caller: Caller, id: str, *, reason: str = "", request: str = "") -> ChangeSet:
        """Make and submit a change set that takes another one back in each of its stores, once it is approved."""
        other = await self._mine(caller, id, "approve")
        return await self._rollbacks.make(caller, other, cause_of(caller, reason, request))

    async def change_now(
        self, caller: Caller, lines: Sequence[Line], *, title: str, reason: str = "", request: str = ""
    ) -> ChangeSet:
        """Change prices as soon as possible: what an emergency needs. With four eyes, a reason is needed, which the audit has."""
        caller.require("edit")
        caller.require("approve")
        if self._four_eyes and not reason.strip():
            raise InvalidField("reason", "is empty: say why nobody else approves it")
        draft = await self._create(caller, NewChangeSet(title=title, reason=reason), request)
        try:
            await self.put_lines(caller, draft.id, lines, request=request)
            submitted = await self.submit(caller, draft.id, request=request)
            return await self._approve(submitted, Approval("approve_now", cause_of(caller, reason, request), submitted.rev))
        except (PricebookError, InvalidInput):
            await self.cancel(caller, draft.id, reason="it was refused", request=request)
            raise

    async def carry_on(self, id: str) -> str:
        """Carry out what was decided: the handler of CARRY_ON. `RetryLater` if there is more to do than one call should."""
        return await self._carrier.carry_on(id)

    async def sweep(self) -> int:
        """Begin again what stands still, and settle what nobody has told of. Returns how many change sets that were."""
        return await self._finishing.sweep()

    async def store_settled(self, change_set: str, store: str, edition: int) -> None:
        """Note that an edition was settled. The last one lets the change set be settled."""
        await self._finishing.store_settled(change_set, store, edition)

    async def _create(self, caller: Caller, new: NewChangeSet, request: str, *, id: str | None = None) -> ChangeSet:
        draft = ChangeSet(
            id=new_id() if id is None else id,
            created_by=caller.id,
            created_at=self._writer.now(),
            **new.checked().attributes(),  # type: ignore[arg-type]  # named and typed alike
        )
        return await self._writer.create(draft, cause_of(caller, request=request))

    async def _approve(self, found: ChangeSet, approval: Approval) -> ChangeSet:
        if found.rev != approval.rev:
            raise HasChanged(f"change set {found.id}", found.rev)  # what is checked here is what is approved
        states.check_state(found, "submitted")
        await self._check(found)

        async def also(tx: Transaction, after: ChangeSet) -> None:
            if after.rolls_back is not MISSING:
                await self._rollbacks.claim(tx, after, approval.cause)
            tx.delete(ChangeProgress.key.id(after.id))  # of an earlier approval
            await self._writer.begin(tx, after)

        def decide(before: ChangeSet) -> ChangeSet:
            return states.approving(before, approval.cause, self._writer.now())

        return await self._writer.write(found.id, Write(approval.action, decide, approval.cause, approval.rev, also=also))

    async def _check(self, found: ChangeSet) -> None:
        """Refuse what can be seen to be wrong in a short time. The rest is found while prices are staged."""
        if found.rolls_back is not MISSING:
            return
        await self._conflicts.check(found)
        if found.lines <= CHECKED_AT_ONCE:
            errors = [each for each in (await self._reporter.report(found)).findings if each.severity == "error"]
            if errors:
                raise NotAllowed(f"change set {found.id} cannot be approved: {errors[0].message}")

    async def _withdraw(self, id: str, action: Literal["unapprove", "cancel"], cause: Cause, rev: int | None) -> ChangeSet:
        def decide(before: ChangeSet) -> ChangeSet:
            return states.withdrawing(before, "submitted" if action == "unapprove" else "cancelled", cause, self._writer.now())

        return await self._writer.write(id, Write(action, decide, cause, rev, also=self._writer.begin))

    async def _mine(self, caller: Caller, id: str, role: Role) -> ChangeSet:
        caller.require(role)
        return await self._writer.visible(caller, id)
