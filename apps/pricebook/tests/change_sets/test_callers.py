"""Who may do what with a change set, and whose stores it has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from change_desk import APPROVER, EDITOR, READER, ChangeDesk, lines_of, only_of
from pricebook.access.caller import Caller
from pricebook.change_sets import NewChangeSet
from pricebook.editions.pages import PageArgs
from pricebook.errors import LacksRole, NotFound
from pricebook.model import ChangeSet

Act = Callable[[ChangeDesk, Caller, ChangeSet], Awaitable[Any]]

READS: dict[str, Act] = {
    "get": lambda desk, caller, found: desk.change_sets.get(caller, found.id),
    "progress": lambda desk, caller, found: desk.change_sets.progress(caller, found.id),
    "lines": lambda desk, caller, found: desk.change_sets.lines(caller, found.id, PageArgs()),
    "stores": lambda desk, caller, found: desk.change_sets.stores(caller, found.id, PageArgs()),
    "report": lambda desk, caller, found: desk.change_sets.report(caller, found.id),
    "audit": lambda desk, caller, found: desk.book.audit.of_change_set(caller, found.id, PageArgs()),
}
EDITS: dict[str, Act] = {
    "edit": lambda desk, caller, found: desk.change_sets.edit(caller, found.id, NewChangeSet(title="x"), rev=found.rev),
    "put_lines": lambda desk, caller, found: desk.change_sets.put_lines(caller, found.id, lines_of({"1": {"P1": 1}})),
    "remove_lines": lambda desk, caller, found: desk.change_sets.remove_lines(
        caller, found.id, [lines_of({"1": {"P1": 1}})[0].key]
    ),
    "submit": lambda desk, caller, found: desk.change_sets.submit(caller, found.id),
    "cancel": lambda desk, caller, found: desk.change_sets.cancel(caller, found.id),
}
APPROVALS: dict[str, Act] = {
    "approve": lambda desk, caller, found: desk.change_sets.approve(caller, found.id, rev=found.rev),
    "unapprove": lambda desk, caller, found: desk.change_sets.unapprove(caller, found.id),
    "send_back": lambda desk, caller, found: desk.change_sets.send_back(caller, found.id),
    "roll_back": lambda desk, caller, found: desk.change_sets.roll_back(caller, found.id),
}


@pytest.mark.parametrize("act", [*READS, *EDITS, *APPROVALS])
async def test_a_caller_without_the_role_is_refused(desk: ChangeDesk, act: str) -> None:
    needed = "read" if act in READS else "edit" if act in EDITS else "approve"
    everything_else = Caller("al", APPROVER.roles - {needed})
    draft = await desk.draft({"1": {"P1": 1}})
    with pytest.raises(LacksRole, match=f"lacks the role '{needed}'"):
        await {**READS, **EDITS, **APPROVALS}[act](desk, everything_else, draft)
    assert await desk.get(draft.id) == draft


async def test_an_approved_set_is_cancelled_by_those_who_approve(desk: ChangeDesk) -> None:
    await desk.stores("1")
    found = await desk.approved({"1": {"P1": 1}})
    with pytest.raises(LacksRole, match="approve"):
        await desk.change_sets.cancel(EDITOR, found.id)


@pytest.mark.parametrize("act", [*READS, *EDITS, *APPROVALS])
async def test_a_set_with_a_store_of_somebody_else_does_not_exist(desk: ChangeDesk, act: str) -> None:
    draft = await desk.draft({"1": {"P1": 1}, "21": {"P1": 1}})
    with pytest.raises(NotFound, match="there is no such change set"):
        await {**READS, **EDITS, **APPROVALS}[act](desk, only_of(["1", "20"]), draft)
    await {**READS, **EDITS}.get(act, READS["get"])(desk, only_of(["1", "2"]), draft)


@pytest.mark.parametrize("id", ["", "nothing", "a#b"])
async def test_a_set_that_was_never_made_does_not_exist(desk: ChangeDesk, id: str) -> None:
    with pytest.raises(NotFound, match="there is no such change set"):
        await desk.change_sets.get(READER, id)
    assert await desk.change_sets.get_many(READER, [id]) == [None]


async def test_a_set_without_stores_is_its_makers(desk: ChangeDesk) -> None:
    mine, other = only_of("1"), Caller("olga", APPROVER.roles, ("1",))
    made = await desk.change_sets.create(mine, NewChangeSet(title="mine"))
    assert await desk.change_sets.get(mine, made.id) == await desk.change_sets.get(APPROVER, made.id) == made
    with pytest.raises(NotFound):
        await desk.change_sets.get(other, made.id)
    await desk.change_sets.put_lines(mine, made.id, lines_of({"11": {"P1": 1}}))
    assert (await desk.change_sets.get(other, made.id)).scope == {"11"}


async def test_lists_have_what_the_caller_may_see(desk: ChangeDesk) -> None:
    await desk.stores("1", "2")
    sets = [await desk.approved({store: {"P1": 1}}) for store in "12"]
    mine = only_of("1")
    assert [each.id for each in (await desk.change_sets.open(mine, PageArgs())).nodes] == [sets[0].id]
    assert len((await desk.change_sets.open(READER, PageArgs())).nodes) == 2
    assert await desk.change_sets.get_many(mine, [each.id for each in sets]) == [sets[0], None]
    assert [each.change_set for each in await desk.change_sets.of_store(mine, "1")] == [sets[0].id]
    with pytest.raises(NotFound, match="store"):
        await desk.change_sets.of_store(mine, "2")
    for found in sets:
        await desk.change_sets.cancel(APPROVER, found.id)
        await desk.carried(found.id)
    assert await desk.ended("cancelled", mine) == [sets[0].id]
    assert len(await desk.ended("cancelled")) == 2
    with pytest.raises(LacksRole, match="read"):
        await desk.ended("cancelled", Caller("al", frozenset(["edit"])))
