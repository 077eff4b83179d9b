"""What becomes of a change set, from a draft to its end, on each store; and what is refused in each state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from book import MARCH
from change_desk import APPROVER, EDITOR, ChangeDesk, lines_of
from pricebook.access.caller import Caller
from pricebook.change_sets import Line, NewChangeSet
from pricebook.editions.point_in_time import PointInTime
from pricebook.errors import HasChanged, NotAllowed
from pricebook.model import ChangeSet, PriceKey
from tickler.table import MISSING

DAY = timedelta(days=1)
APRIL = MARCH + 31 * DAY
BEFORE = {"P1": 100, "P2": 200}
AFTER = {"1": {"P1": 90}, "2": {"P1": 110, "P2": 190}}


async def test_a_change_set_is_made_submitted_approved_and_settled(desk_anywhere: ChangeDesk) -> None:
    desk = desk_anywhere
    await desk.stores("1", "2", prices=BEFORE)
    found = await desk.draft(AFTER, at=APRIL, reason="spring")
    assert (found.state, found.rev, found.scope) == ("draft", 2, {"1", "2"})
    found = await desk.change_sets.submit(EDITOR, found.id, rev=2)
    assert (found.state, found.stores, found.lines, found.submitted_by) == ("submitted", 2, 3, "ed")
    found = await desk.approve(found.id, reason="as agreed", request="r-1")
    assert (found.state, found.approved_by) == ("approving", "anna")
    assert await desk.change_sets.carry_on(found.id) == "approved in 2 stores"
    found = await desk.get(found.id)
    assert (found.state, found.first_at, found.last_at) == ("approved", APRIL, APRIL)
    assert await desk.shown("2") == BEFORE
    desk.clock.set(APRIL)
    assert await desk.shown("1") == {"P1": 90, "P2": 200}
    assert await desk.shown("2") == {"P1": 110, "P2": 190}
    await desk.settle("1")
    assert (await desk.get(found.id)).state == "approved"
    await desk.settle("2")
    found = await desk.get(found.id)
    assert (found.state, found.ended_at, found.due_at) == ("settled", APRIL, MISSING)
    entries = await desk.history(found.id)
    assert [each.action for each in entries] == ["create", "put_lines", "submit", "approve", "approved", "settle"]
    assert [each.actor for each in entries] == ["ed", "ed", "ed", "anna", "anna", "pricebook"]
    assert (entries[3].reason, entries[3].request) == ("as agreed", "r-1")


async def test_an_approval_is_taken_back_before_and_after_its_instant_and_given_again(desk_anywhere: ChangeDesk) -> None:
    desk = desk_anywhere
    await desk.stores("1", "2", prices=BEFORE)
    found = await desk.approved(AFTER, at=APRIL)
    assert (await desk.change_sets.unapprove(APPROVER, found.id, reason="too early")).state == "withdrawing"
    found = await desk.carried(found.id)
    assert (found.state, found.approved_by, found.first_at) == ("submitted", MISSING, MISSING)
    assert (await desk.in_store(found.id)).state == "pending"
    found = await desk.carried((await desk.approve(found.id)).id)
    desk.clock.set(APRIL + DAY)
    assert await desk.shown("2") == {"P1": 110, "P2": 190}
    await desk.settle("1")  # one store is settled, and the other is not
    found = await desk.change_sets.unapprove(APPROVER, found.id)
    found = await desk.carried(found.id)
    desk.pass_()
    assert found.state == "submitted"
    assert [await desk.shown(store) for store in ("1", "2")] == [BEFORE, BEFORE]
    assert (await desk.actions(found.id))[-4:] == ["approve", "approved", "unapprove", "withdrawn"]


async def test_an_approved_change_set_is_cancelled_in_all_its_stores(desk: ChangeDesk) -> None:
    await desk.stores("1", "2", prices=BEFORE)
    found = await desk.approved(AFTER, at=APRIL)
    await desk.change_sets.cancel(APPROVER, found.id, reason="not this year")
    found = await desk.carried(found.id)
    assert (found.state, found.ended_at) == ("cancelled", desk.book.now())
    desk.clock.set(APRIL + DAY)
    assert await desk.shown("2") == BEFORE
    await desk.settle("1", "2")
    assert [await desk.editions(store) for store in ("1", "2")] == [{}, {}]


async def test_a_settled_change_set_is_taken_back_by_another_one(desk_anywhere: ChangeDesk) -> None:
    desk = desk_anywhere
    await desk.stores("1", "2", prices=BEFORE)
    found = await desk.approved(AFTER, at=APRIL)
    desk.clock.set(APRIL + 3 * DAY)  # what was before is no longer in the rows
    await desk.settle("1", "2")
    rollback = await desk.rolled_back(found.id)
    assert (rollback.state, rollback.rolls_back) == ("approved", found.id)
    desk.pass_()
    assert [await desk.shown(store) for store in ("1", "2")] == [BEFORE, BEFORE]
    found = await desk.get(found.id)
    assert (found.state, found.superseded_by) == ("superseded", rollback.id)
    await desk.settle("1", "2")
    assert (await desk.get(rollback.id)).state == "settled"
    assert await desk.shown("1") == BEFORE
    assert (await desk.actions(found.id))[-3:] == ["settle", "roll_back", "supersede"]
    assert await desk.ended("superseded") == [found.id]
    assert (await desk.ended("settled"))[0] == rollback.id  # the other one made the stores' first prices
    assert found.id not in await desk.ended("settled")


async def test_a_price_that_was_rolled_back_when_it_was_past_does_not_count_again(desk: ChangeDesk) -> None:
    await desk.stores("1", prices=BEFORE)
    found = [await desk.approved({"1": {"P1": minor}}, at=APRIL + n * DAY) for n, minor in enumerate((90, 80))]
    desk.clock.set(APRIL + 5 * DAY)
    await desk.settle("1")  # the row has the second one alone
    for each, expected in zip(found, (80, 100), strict=True):
        await desk.rolled_back(each.id)
        desk.pass_(2 * DAY)
        assert (await desk.shown())["P1"] == expected
        await desk.settle("1")
        assert (await desk.shown())["P1"] == expected


async def test_what_is_past_is_not_read_to_roll_back_what_is_not(desk: ChangeDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    await desk.stores("1", prices={f"P{n}": 1 for n in range(50)})
    desk.pass_(5 * DAY)
    found = await desk.approved({"1": {"P1": 90}})
    desk.pass_()
    await desk.settle("1")
    past, reads = PointInTime.past, list[PriceKey]()

    async def counting(self: PointInTime, key: PriceKey, *bounds: Any, **options: Any) -> Any:
        reads.append(key)
        return await past(self, key, *bounds, **options)

    monkeypatch.setattr(PointInTime, "past", counting)
    await desk.rolled_back(found.id)
    desk.pass_()
    assert (await desk.shown())["P1"] == 1
    assert {key.product for key in reads} == {"P1"}


async def test_a_rollback_cancels_where_it_can_and_retracts_where_it_must(desk: ChangeDesk) -> None:
    await desk.stores("1", "2", "3", prices=BEFORE)
    found = await desk.approved({store: {"P1": 1} for store in "123"}, at=APRIL)
    desk.clock.set(APRIL + DAY)
    await desk.settle("1")
    rollback = await desk.rolled_back(found.id)
    assert [(await desk.in_store(rollback.id, store)).state for store in "123"] == ["sealed", "settled", "settled"]
    desk.pass_()
    assert [await desk.shown(store) for store in "123"] == [BEFORE] * 3
    await desk.settle("1", "2", "3")
    assert (await desk.get(rollback.id)).state == "settled"
    assert (await desk.get(found.id)).state == "superseded"
    assert await desk.change_sets.of_store(APPROVER, "2") == []


async def test_a_draft_is_cancelled_and_a_submitted_set_is_sent_back(desk: ChangeDesk) -> None:
    await desk.stores("1")
    found = await desk.submitted({"1": {"P1": 100}})
    found = await desk.change_sets.send_back(APPROVER, found.id, rev=found.rev, reason="P2 is missing")
    assert (found.state, found.submitted_by) == ("draft", MISSING)
    found = await desk.change_sets.cancel(EDITOR, found.id, rev=found.rev)
    assert found.state == "cancelled"
    assert await desk.actions(found.id) == ["create", "put_lines", "submit", "send_back", "cancel"]


Act = Callable[[ChangeDesk, ChangeSet], Awaitable[Any]]

ACTS: dict[str, Act] = {
    "edit": lambda desk, found: desk.change_sets.edit(EDITOR, found.id, NewChangeSet(title="x"), rev=found.rev),
    "put_lines": lambda desk, found: desk.change_sets.put_lines(EDITOR, found.id, []),
    "submit": lambda desk, found: desk.change_sets.submit(EDITOR, found.id),
    "send_back": lambda desk, found: desk.change_sets.send_back(APPROVER, found.id),
    "approve": lambda desk, found: desk.change_sets.approve(APPROVER, found.id, rev=found.rev),
    "unapprove": lambda desk, found: desk.change_sets.unapprove(APPROVER, found.id),
    "cancel": lambda desk, found: desk.change_sets.cancel(APPROVER, found.id),
    "roll_back": lambda desk, found: desk.change_sets.roll_back(APPROVER, found.id),
}
ALLOWED = {
    "draft": {"edit", "put_lines", "submit", "cancel"},
    "submitted": {"send_back", "approve", "cancel"},
    "approving": {"unapprove", "cancel"},
    "approved": {"unapprove", "cancel", "roll_back"},
    "withdrawing": set[str](),
    "settled": {"roll_back"},
    "cancelled": set[str](),
    "superseded": set[str](),
}
REMEDIES = {
    "draft": "submit it first",
    "submitted": "send it back, approve it, or cancel it",
    "approving": "wait until it is approved",
    "approved": "take the approval back first",
    "withdrawing": "wait until it is withdrawn",
    "settled": "roll it back with a new change set",
    "cancelled": "make a new change set",
    "superseded": "make a new change set",
}


async def in_state(desk: ChangeDesk, state: str) -> ChangeSet:
    prices = {"1": {"P1": 90}}
    match state:
        case "draft":
            return await desk.draft(prices)
        case "submitted":
            return await desk.submitted(prices)
        case "approving":
            return await desk.approving(prices)
        case "cancelled":
            return await desk.change_sets.cancel(EDITOR, (await desk.draft(prices)).id)
    found = await desk.approved(prices, at=APRIL)
    if state == "withdrawing":
        return await desk.change_sets.unapprove(APPROVER, found.id)
    if state in ("settled", "superseded"):
        desk.clock.set(APRIL)
        await desk.settle("1")
    if state == "superseded":
        await desk.rolled_back(found.id)
    return await desk.get(found.id)


@pytest.mark.parametrize("state", ALLOWED)
async def test_what_does_not_fit_the_state_is_refused_with_a_remedy(desk: ChangeDesk, state: str) -> None:
    await desk.stores("1", prices=BEFORE)
    found = await in_state(desk, state)
    assert found.state == state
    refused = set(ACTS) - ALLOWED[state]
    for name in sorted(refused):
        if name == "put_lines":
            with pytest.raises(NotAllowed, match=f"change set {found.id} is {state}: {REMEDIES[state]}"):
                await desk.change_sets.put_lines(EDITOR, found.id, [_line("P1")])
            continue
        with pytest.raises(NotAllowed, match=f"change set {found.id} is {state}: {REMEDIES[state]}"):
            await ACTS[name](desk, found)
    assert await desk.get(found.id) == found  # nothing was written


def _line(product: str) -> Line:
    return lines_of({"1": {product: 1}})[0]


@pytest.mark.parametrize(("state", "act"), [(state, act) for state, acts in ALLOWED.items() for act in sorted(acts)])
async def test_each_decision_is_one_write_with_its_revision_and_its_entry(desk: ChangeDesk, state: str, act: str) -> None:
    await desk.stores("1", prices=BEFORE)
    found = await in_state(desk, state)
    before = await desk.history(found.id)
    await ACTS[act](desk, found)
    after, entries = await desk.get(found.id), await desk.history(found.id)
    if act in ("roll_back", "put_lines"):
        assert after == found  # no line was given, and a rollback begins with its approval
        return
    assert after.rev == found.rev + 1
    assert entries[:-1] == before
    assert (entries[-1].action, entries[-1].state_before, entries[-1].state_after) == (act, state, after.state)


async def test_a_decision_about_something_that_has_changed_is_refused(desk: ChangeDesk) -> None:
    await desk.stores("1")
    seen = await desk.draft({"1": {"P1": 100}})
    await desk.change_sets.put_lines(EDITOR, seen.id, [_line("P2")])
    for act in ("edit", "submit", "cancel"):
        with pytest.raises(HasChanged, match=rf"somebody else has changed change set {seen.id} meanwhile: .* revision 3"):
            await _with_rev(desk, act, seen)
    submitted = await desk.change_sets.submit(EDITOR, seen.id)
    with pytest.raises(HasChanged):
        await desk.change_sets.approve(APPROVER, seen.id, rev=seen.rev)
    assert (await desk.change_sets.approve(APPROVER, seen.id, rev=submitted.rev)).state == "approving"


async def _with_rev(desk: ChangeDesk, act: str, seen: ChangeSet) -> None:
    if act == "edit":
        await desk.change_sets.edit(EDITOR, seen.id, NewChangeSet(title="x"), rev=seen.rev)
    elif act == "submit":
        await desk.change_sets.submit(EDITOR, seen.id, rev=seen.rev)
    else:
        await desk.change_sets.cancel(EDITOR, seen.id, rev=seen.rev)


async def test_a_set_without_prices_is_not_submitted(desk: ChangeDesk) -> None:
    made = await desk.change_sets.create(EDITOR, NewChangeSet(title="nothing yet"))
    with pytest.raises(NotAllowed, match="has no prices: add some first"):
        await desk.change_sets.submit(EDITOR, made.id)


async def test_a_rollback_is_neither_edited_nor_taken_back_nor_made_twice(desk: ChangeDesk) -> None:
    await desk.stores("1", prices=BEFORE)
    found = await desk.approved({"1": {"P1": 1}})
    eve = Caller("eve", APPROVER.roles)
    first = await desk.change_sets.roll_back(eve, found.id)
    second = await desk.change_sets.roll_back(eve, found.id)
    with pytest.raises(NotAllowed, match="nothing to edit: approve it, or cancel it"):
        await desk.change_sets.send_back(APPROVER, first.id)
    await desk.approve(first.id)
    with pytest.raises(NotAllowed, match=f"{first.id} rolls change set {found.id} back already"):
        await desk.approve(second.id)
    with pytest.raises(NotAllowed, match="takes another one back, which cannot be undone"):
        await desk.change_sets.unapprove(APPROVER, first.id)
    with pytest.raises(NotAllowed, match=f"change set {first.id} rolls change set {found.id} back: wait"):
        await desk.change_sets.unapprove(APPROVER, found.id)
    assert (await desk.carried(first.id)).state == "settled"  # it was cancelled, so nothing is left to settle
    with pytest.raises(NotAllowed, match="is a rollback itself"):
        await desk.change_sets.roll_back(APPROVER, first.id)
