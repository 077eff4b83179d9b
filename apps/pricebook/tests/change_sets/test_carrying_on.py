"""Decisions are carried out by the engine: repeated, twice at once, in slices, and begun again if they stand still."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from book import MARCH, euros
from change_desk import APPROVER, READER, ChangeDesk
from pricebook.access.caller import Caller
from pricebook.change_sets import ChangeSets, carrier
from pricebook.change_sets.states import PATIENCE
from pricebook.change_sets.store_pages import STORES_AT_A_TIME
from pricebook.change_sets.store_steps import StoreSteps
from pricebook.editions.pages import PageArgs
from pricebook.errors import NotAllowed
from pricebook.identifiers import OWNER
from pricebook.model import ChangeProgress, ChangeSet, ChangeStore, Head
from tickler import RetryLater
from tickler.table import MISSING, OpenTable
from tickler.testing import play

DAY = timedelta(days=1)
APRIL = MARCH + 31 * DAY


async def test_an_approval_sends_what_carries_it_out_in_its_own_transaction(
    desk: ChangeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.stores("1", prices={"P1": 100})
    found = await desk.submitted({"1": {"P1": 90}}, at=APRIL)

    async def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("the engine is away")

    with monkeypatch.context() as patch:
        patch.setattr(type(desk.book.t), "send", fail)
        with pytest.raises(RuntimeError):
            await desk.approve(found.id)
    assert await desk.get(found.id) == found
    found = await desk.approve(found.id)
    assert (await desk.book.t.schedules.get(OWNER, f"change-set/{found.id}/{found.rev}")) is not None


async def test_the_engine_carries_a_set_on_until_it_is_settled(desk: ChangeDesk) -> None:
    await desk.stores("1", "2", prices={"P1": 100})
    found = await desk.approving({"1": {"P1": 90}, "2": {"P1": 90}}, at=MARCH + DAY)
    await play(desk.book.t, desk.clock, until=MARCH + timedelta(hours=1))
    assert (await desk.get(found.id)).state == "approved"
    await desk.change_sets.unapprove(APPROVER, found.id)
    await play(desk.book.t, desk.clock, until=MARCH + timedelta(hours=2))
    assert (await desk.get(found.id)).state == "submitted"


DECISIONS = ("approve", "unapprove", "cancel", "roll_back")


@pytest.mark.parametrize("decision", DECISIONS)
async def test_several_that_carry_a_set_on_at_once_come_to_the_same_end(desk: ChangeDesk, decision: str) -> None:
    await carry_on_together(desk, decision)


async def test_several_that_carry_a_set_on_at_once_on_any_store_come_to_the_same_end(
    desk_anywhere: ChangeDesk, soak: bool
) -> None:
    for decision in DECISIONS if soak else ("cancel",):
        desk_anywhere.clock.set(MARCH)
        await carry_on_together(desk_anywhere, decision)


async def carry_on_together(desk: ChangeDesk, decision: str) -> None:
    stores = [f"{decision}-{n}" for n in range(3)]
    await desk.stores(*stores, prices={"P1": 100, "P2": 100})
    found = await desk.approving({store: {"P1": 90, "P2": 80} for store in stores}, at=APRIL)
    if decision != "approve":
        await desk.carried(found.id)
        desk.clock.set(APRIL)
        await desk.settle(stores[0])
    if decision == "unapprove":
        await desk.change_sets.unapprove(APPROVER, found.id)
    elif decision == "cancel":
        await desk.change_sets.cancel(APPROVER, found.id)
    elif decision == "roll_back":
        made = await desk.change_sets.roll_back(Caller("rudi", APPROVER.roles), found.id)
        found = await desk.approve(made.id)
    outcomes = await asyncio.gather(*(desk.carry_on(found.id) for _ in range(3)), return_exceptions=True)
    assert all(isinstance(each, str) for each in outcomes), outcomes
    await desk.carry_on(found.id)
    expected = {"approve": "approved", "unapprove": "submitted", "cancel": "cancelled", "roll_back": "approved"}[decision]
    assert (await desk.get(found.id)).state == expected
    numbers = [max(await desk.editions(store), default=0) for store in stores]
    assert numbers == {"approve": [2, 2, 2], "unapprove": [3, 2, 2], "cancel": [3, 2, 2], "roll_back": [3, 2, 2]}[decision]
    desk.clock.set(APRIL + DAY)
    after = {"P1": 90, "P2": 80} if decision == "approve" else {"P1": 100, "P2": 100}
    assert [await desk.shown(store) for store in stores] == [after] * 3


async def test_a_process_that_still_carries_out_an_older_decision_stops(desk: ChangeDesk) -> None:
    await desk.stores("1", "2", prices={"P1": 100})
    found = await desk.approving({"1": {"P1": 90}, "2": {"P1": 90}}, at=APRIL)
    stopped, go_on = asyncio.Event(), asyncio.Event()

    async def at_point(name: str) -> None:
        if name == "change_set.audited" and not stopped.is_set():
            stopped.set()
            await go_on.wait()

    slow = ChangeSets(desk.book.t, desk.book.db, desk.book.switch, at_point=at_point)
    straggler = asyncio.create_task(slow.carry_on(found.id))
    await stopped.wait()
    await desk.change_sets.unapprove(APPROVER, found.id)
    assert (await desk.carried(found.id)).state == "submitted"
    go_on.set()
    assert await straggler == "nothing to do: somebody has decided otherwise meanwhile"
    found = await desk.carried((await desk.approve(found.id)).id)
    assert found.state == "approved"
    counting = [[n for n, each in (await desk.editions(s)).items() if each.to_at is MISSING] for s in ("1", "2")]
    assert [len(each) for each in counting] == [1, 1]


async def test_much_work_is_done_in_slices_and_shows_how_far_it_is(desk: ChangeDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    stores = [f"{n:03}" for n in range(130)]
    for store in stores:
        await desk.book.switch.open_store(store)
    found = await desk.approving({store: {"P1": 90} for store in stores}, at=APRIL)
    monkeypatch.setattr(carrier, "SLICE_S", -1)
    progress, said = [], ""
    for _ in range(10):
        try:
            said = await desk.change_sets.carry_on(found.id)
            break
        except RetryLater as later:
            progress.append((await desk.change_sets.progress(READER, found.id)).staged)
            desk.pass_(later.after)
            monkeypatch.setattr(carrier, "SLICE_S", -1 if len(progress) < 2 else 60)
    assert progress == [64, 64]
    assert said == "approved in 130 stores"
    found = await desk.get(found.id)
    assert found.due_at == APRIL + PATIENCE
    reached = await desk.change_sets.progress(READER, found.id)
    assert (reached.staged, reached.sealed, reached.settled) == (130, 130, 0)


async def test_progress_never_goes_back(desk: ChangeDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    stores = [f"{n:03}" for n in range(2 * STORES_AT_A_TIME + 1)]
    for store in stores:
        await desk.book.switch.open_store(store)
    found = await desk.approving({store: {"P1": 90} for store in stores}, at=APRIL)
    put, seen = OpenTable.put, list[tuple[int, int]]()

    async def noting(self: OpenTable, item: Any) -> Any:
        if isinstance(item, ChangeProgress):
            seen.append((item.staged, item.sealed))
        return await put(self, item)

    async def at_point(name: str) -> None:
        if name == "change_set.all_staged" and len(seen) == 2:
            raise RuntimeError("killed")

    monkeypatch.setattr(OpenTable, "put", noting)
    with pytest.raises(RuntimeError, match="killed"):
        await ChangeSets(desk.book.t, desk.book.db, desk.book.switch, at_point=at_point).carry_on(found.id)
    await desk.carried(found.id)
    assert seen == [(64, 0), (128, 0), (129, 64), (129, 128)]
    await desk.change_sets.unapprove(APPROVER, found.id)
    await desk.carried(found.id)
    await desk.approve(found.id)
    again = await desk.change_sets.progress(READER, found.id)
    assert (again.staged, again.sealed) == (0, 0)


async def test_the_sweep_begins_again_what_stands_still(desk: ChangeDesk) -> None:
    await desk.stores("1", prices={"P1": 100})
    found = await desk.approving({"1": {"P1": 90}}, at=APRIL)
    assert await desk.change_sets.sweep() == 0
    await desk.book.t.schedules.delete(OWNER, f"change-set/{found.id}/{found.rev}")  # it was lost
    desk.pass_(PATIENCE)
    assert await desk.change_sets.sweep() == 1
    assert await desk.change_sets.sweep() == 0
    await play(desk.book.t, desk.clock, until=desk.book.now() + timedelta(minutes=1))
    assert (await desk.get(found.id)).state == "approved"


async def test_the_sweep_settles_a_set_that_nobody_has_told_of(desk: ChangeDesk) -> None:
    await desk.stores("1", "2", prices={"P1": 100})
    found = await desk.approved({"1": {"P1": 90}, "2": {"P1": 90}}, at=APRIL)
    desk.clock.set(APRIL + PATIENCE)
    await desk.book.switch.settle("1")
    assert await desk.change_sets.sweep() == 1
    assert (await desk.get(found.id)).state == "approved"
    await desk.book.switch.settle("2")
    assert await desk.change_sets.sweep() == 0  # it has been looked at, and is looked at again later
    desk.pass_(PATIENCE)
    assert await desk.change_sets.sweep() == 1
    assert (await desk.get(found.id)).state == "settled"


async def test_only_the_edition_of_a_set_settles_it_and_that_once(desk: ChangeDesk) -> None:
    await desk.stores("1", prices={"P1": 100})
    found = await desk.approved({"1": {"P1": 90}}, at=APRIL)
    for change_set, store, edition in ((found.id, "1", 1), (found.id, "2", 2), ("nothing", "1", 2)):
        await desk.change_sets.store_settled(change_set, store, edition)
    assert (await desk.in_store(found.id)).state == "sealed"
    await desk.change_sets.store_settled(found.id, "1", 2)
    settled = await desk.get(found.id)
    assert settled.state == "settled"
    await desk.change_sets.store_settled(found.id, "1", 2)
    assert await desk.get(found.id) == settled


async def test_an_index_that_lags_behind_settles_nothing_too_early(desk: ChangeDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    await desk.stores("1", "2", prices={"P1": 100})
    found = await desk.approved({"1": {"P1": 90}, "2": {"P1": 90}}, at=APRIL)
    query = OpenTable.query

    async def lagging(self: Any, *selections: Any, **options: Any) -> Any:
        if selections[0].span.gsi is not None and "UNSETTLED_STORES" in selections[0].span.partition:
            return await query(self, ChangeStore.unsettled("nothing"), **options)
        return await query(self, *selections, **options)

    with monkeypatch.context() as patch:
        patch.setattr(OpenTable, "query", lagging)
        await desk.change_sets.store_settled(found.id, "1", 2)
    assert (await desk.get(found.id)).state == "approved"


async def test_an_edition_that_is_being_settled_is_taken_back_when_it_is(
    desk: ChangeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.stores("1", prices={"P1": 100})
    found = await desk.approved({"1": {"P1": 90}}, at=APRIL)
    desk.clock.set(APRIL)

    async def die(*_: Any) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr("pricebook.editions.settlement.Settlements._write", die)
        with pytest.raises(RuntimeError, match="killed"):
            await desk.book.switch.settle("1")
    await desk.change_sets.unapprove(APPROVER, found.id)
    with pytest.raises(RetryLater) as later:
        await desk.change_sets.carry_on(found.id)
    assert later.value.reason == "store 1: its prices are being settled"
    await desk.settle("1")
    assert (await desk.carried(found.id)).state == "submitted"
    desk.pass_()
    assert await desk.shown() == {"P1": 100}


async def test_what_was_staged_long_ago_is_staged_again(desk: ChangeDesk) -> None:
    await desk.stores("1", prices={"P1": 100})
    found = await desk.approving({"1": {"P1": 90}})

    async def at_point(name: str) -> None:
        if name == "change_set.opened":
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        await ChangeSets(desk.book.t, desk.book.db, desk.book.switch, at_point=at_point).carry_on(found.id)
    desk.pass_(3 * DAY)
    assert (await desk.carried(found.id)).state == "approved"
    assert (await desk.in_store(found.id)).edition == 3
    desk.pass_()
    assert await desk.shown() == {"P1": 90}


async def test_what_would_have_ended_when_it_is_sealed_is_refused(desk: ChangeDesk) -> None:
    await desk.stores("1", "2", prices={"P1": 100})
    found = await desk.approving({"1": {"P1": 90}, "2": {"P1": 90}}, at=APRIL, until_at=APRIL + timedelta(hours=1))

    async def at_point(name: str) -> None:
        if name == "change_set.all_staged":
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        await ChangeSets(desk.book.t, desk.book.db, desk.book.switch, at_point=at_point).carry_on(found.id)
    desk.clock.set(APRIL + timedelta(hours=1))
    found = await desk.carried(found.id)
    assert (found.state, found.refused) == (
        "submitted",
        "store 1: these prices would end before they count: choose a later end",
    )
    assert [await desk.shown(store) for store in ("1", "2")] == [{"P1": 100}] * 2


async def test_what_was_staged_before_other_prices_were_approved_is_staged_again(desk: ChangeDesk) -> None:
    await desk.stores("1", prices={"P1": 100})
    found = await desk.approving({"1": {"P1": 50}}, at=APRIL)

    async def at_point(name: str) -> None:
        if name == "change_set.prices_staged":
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        await ChangeSets(desk.book.t, desk.book.db, desk.book.switch, at_point=at_point).carry_on(found.id)
    await desk.approved({"1": {"P1": 80}}, at=APRIL - DAY)
    found = await desk.carried(found.id)
    assert (found.state, found.refused) == ("approved", MISSING)
    desk.clock.set(APRIL)
    (node,) = (await desk.book.prices.of_store("1", page=PageArgs())).nodes
    assert (node.amount, node.lowest_30_days) == (euros(50), euros(80))


async def test_a_set_is_not_approved_before_a_store_is_sealed_that_another_process_stages_again(
    desk: ChangeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.stores("1", "2", prices={"P1": 100})
    found = await desk.approving({"1": {"P1": 90}, "2": {"P1": 90}}, at=APRIL)
    plain, raced = StoreSteps.step, list[str]()

    async def step(self: StoreSteps, found: ChangeSet, store: ChangeStore, work: Any, **options: Any) -> ChangeStore:
        if options.get("in_time") and not raced:
            raced.append(store.store)
            await self.restart(found, store)
        return await plain(self, found, store, work, **options)

    with monkeypatch.context() as patch:
        patch.setattr(StoreSteps, "step", step)
        with pytest.raises(RetryLater, match="has to be staged again"):
            await desk.change_sets.carry_on(found.id)
    assert (await desk.carried(found.id)).state == "approved"
    assert [(await desk.in_store(found.id, store)).state for store in ("1", "2")] == ["sealed", "sealed"]


async def test_a_set_whose_edition_somebody_has_cancelled_can_be_approved_again(desk: ChangeDesk) -> None:
    await desk.stores("1", prices={"P1": 100})
    found = await desk.approving({"1": {"P1": 90}}, at=APRIL)

    async def at_point(name: str) -> None:
        if name == "change_set.all_staged":
            await desk.book.switch.cancel("1", 2)

    await ChangeSets(desk.book.t, desk.book.db, desk.book.switch, at_point=at_point).carry_on(found.id)
    found = await desk.get(found.id)
    assert (found.state, found.refused) == ("submitted", "edition 2 of store 1: it was cancelled: open another edition")
    assert (await desk.carried((await desk.approve(found.id)).id)).state == "approved"


async def test_a_store_that_cannot_be_taken_back_yet_lets_all_others_go_on(
    desk: ChangeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = [f"{n:03}" for n in range(STORES_AT_A_TIME + 1)]
    for store in stores:
        await desk.book.switch.open_store(store)
    found = await desk.approved({store: {"P1": 90} for store in stores}, at=APRIL)
    desk.clock.set(APRIL)
    await desk.settle(stores[0])
    monkeypatch.setattr("pricebook.editions.switch.MAX_EDITIONS", 0)
    await desk.change_sets.unapprove(APPROVER, found.id)
    with pytest.raises(RetryLater, match="settle or cancel some"):
        await desk.change_sets.carry_on(found.id)
    desk.pass_()
    assert (await desk.shown(stores[0]), await desk.shown(stores[-1])) == ({"P1": 90}, {})
    monkeypatch.undo()
    assert (await desk.carried(found.id)).state == "submitted"
    desk.pass_()
    assert await desk.shown(stores[0]) == {}


async def test_a_decision_that_waits_is_carried_out_by_one_send_however_long_that_takes(
    desk: ChangeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.stores("1", prices={"P1": 100})
    other = await desk.approved({"1": {"P1": 90}})
    desk.pass_()
    await desk.settle("1")
    rollback = await desk.change_sets.roll_back(Caller("rudi", APPROVER.roles), other.id)
    found = await desk.approve(rollback.id)
    monkeypatch.setattr("pricebook.editions.switch.MAX_EDITIONS", 0)
    for _ in range(3):
        await play(desk.book.t, desk.clock, until=desk.book.now() + PATIENCE)
        await desk.change_sets.sweep()
    sends = [each.key for each in (await desk.book.t.schedules.list(owner=OWNER)).items if found.id in each.key]
    assert sends == [f"change-set/{found.id}/{found.rev}"]
    monkeypatch.undo()
    await play(desk.book.t, desk.clock, until=desk.book.now() + timedelta(minutes=1))
    assert (await desk.get(found.id)).state == "approved"


async def test_what_is_not_there_or_has_nothing_to_do_is_said(desk: ChangeDesk) -> None:
    assert await desk.change_sets.carry_on("nothing") == "nothing to do: there is no such change set"
    draft: ChangeSet = await desk.draft({"1": {"P1": 1}})
    assert await desk.change_sets.carry_on(draft.id) == "nothing to do: it is draft"


async def test_a_store_with_too_many_editions_refuses_the_approval(desk: ChangeDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    await desk.stores("1")
    monkeypatch.setattr("pricebook.editions.switch.MAX_EDITIONS", 0)
    found = await desk.carried((await desk.change_now({"1": {"P1": 1}})).id)
    assert found.state == "submitted"
    assert "settle or cancel some" in str(found.refused)
    monkeypatch.undo()
    with pytest.raises(NotAllowed, match="you have submitted"):
        await desk.approve(found.id)


async def test_a_set_is_settled_although_the_process_that_noted_its_last_store_was_killed(
    desk: ChangeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.stores("1", prices={"P1": 100})
    found = await desk.approved({"1": {"P1": 90}}, at=APRIL)

    async def die(*_: Any) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr("pricebook.change_sets.finishing.Finishing.finish", die)
        with pytest.raises(RuntimeError, match="killed"):
            await desk.change_sets.store_settled(found.id, "1", 2)
    await desk.change_sets.store_settled(found.id, "1", 2)  # it is told again
    assert (await desk.get(found.id)).state == "settled"


async def test_what_is_settled_while_it_is_taken_back_is_retracted(desk: ChangeDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    await desk.stores("1", prices={"P1": 100})
    found = await desk.approved({"1": {"P1": 90}}, at=APRIL)
    desk.clock.set(APRIL)
    await desk.change_sets.unapprove(APPROVER, found.id)
    read = StoreSteps.head

    async def settled_after(self: StoreSteps, store: str) -> Head:
        head = await read(self, store)
        await desk.settle(store)
        return head

    with monkeypatch.context() as patch:
        patch.setattr(StoreSteps, "head", settled_after)
        with pytest.raises(RetryLater, match="its prices are being settled"):
            await desk.change_sets.carry_on(found.id)
    assert (await desk.carried(found.id)).state == "submitted"
    desk.pass_()
    assert await desk.shown() == {"P1": 100}
