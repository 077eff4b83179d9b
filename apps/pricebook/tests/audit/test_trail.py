"""The audit: complete, append-only, in the transaction of what it tells, and found by store, set, product, actor and day."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import date, timedelta
from typing import Any

import pytest

from book import MARCH
from change_desk import APPROVER, READER, ChangeDesk, only_of
from pricebook.access.caller import Caller
from pricebook.audit.entries import entry_of_edition
from pricebook.editions.head_writes import Cause, Transition
from pricebook.editions.pages import NodePage, PageArgs
from pricebook.errors import InvalidCursor, InvalidField, LacksRole, NotFound
from pricebook.model import AuditEntry, Edition
from tickler.errors import ConditionFailed
from tickler.table import MISSING, OpenTable

DAY = timedelta(days=1)
APRIL = MARCH + 31 * DAY
BEFORE = {"P1": 100, "P2": 200}


async def an_eventful_life(desk: ChangeDesk) -> list[str]:
    """Change prices in many ways. Returns the change sets."""
    await desk.stores("1", "2", prices=BEFORE)
    first = await desk.approved({"1": {"P1": 90}, "2": {"P1": 90}}, at=APRIL, until_at=APRIL + 9 * DAY)
    second = await desk.approved({"1": {"P2": 80}}, at=APRIL + DAY)
    await desk.change_sets.unapprove(APPROVER, second.id, reason="too cheap", request="r-7")
    await desk.carried(second.id)
    await desk.carried((await desk.approve(second.id)).id)
    desk.clock.set(APRIL + DAY)
    await desk.settle("1", "2")
    third = await desk.submitted({"2": {"P1": 70}}, at=APRIL + 2 * DAY)
    rollback = await desk.rolled_back(first.id)
    desk.pass_()
    await desk.settle("1", "2")
    await desk.change_sets.cancel(APPROVER, third.id)
    return [first.id, second.id, third.id, rollback.id]


async def test_folding_the_audit_gives_the_present_state(desk_anywhere: ChangeDesk) -> None:
    desk = desk_anywhere
    for id in await an_eventful_life(desk):
        state: object = MISSING
        for entry in await desk.history(id):
            assert entry.state_before == state
            state = entry.state_after
        found = await desk.get(id)
        assert state == found.state
        assert len(await desk.history(id)) == found.rev  # each write has its entry
    for store in ("1", "2"):
        editions: dict[int, Edition] = {}
        for entry in await desk.history_of_store(store):
            assert isinstance(entry.edition, int)
            assert entry.before == editions.pop(entry.edition, MISSING)
            if entry.after is not MISSING:
                editions[entry.edition] = entry.after
        assert editions == await desk.editions(store)
        assert len(editions) <= 1


async def test_an_entry_names_who_why_and_by_which_request(desk: ChangeDesk) -> None:
    ids = await an_eventful_life(desk)
    (taken_back,) = [entry for entry in await desk.history_of_store("1") if entry.action == "cancel"]
    assert (taken_back.actor, taken_back.reason, taken_back.request) == ("anna", "too cheap", "r-7")
    assert (taken_back.change_set, taken_back.edition) == (ids[1], 3)
    assert taken_back.after is not MISSING
    assert taken_back.after.to_at == APRIL + DAY
    actors = {entry.action: entry.actor for entry in await desk.history_of_store("1")}
    assert (actors["seal"], actors["settle"], actors["drop"]) == ("otto", "pricebook", "pricebook")


async def test_what_cannot_be_audited_does_not_happen(desk: ChangeDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    await desk.stores("1", prices=BEFORE)
    found = await desk.submitted({"1": {"P1": 90}}, at=APRIL)

    async def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("disk full")

    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr("pricebook.change_sets.writer.entry_of_change", refuse)
        with pytest.raises(RuntimeError):
            await desk.approve(found.id)
    assert await desk.get(found.id) == found
    number = await desk.book.switch.open_edition("1")
    with monkeypatch.context() as patch:
        patch.setattr("pricebook.audit.trail.entry_of_edition", refuse)
        with pytest.raises(RuntimeError):
            await desk.book.switch.seal("1", number)
    assert (await desk.editions())[number].state == "open"


async def test_an_entry_is_never_written_over(desk: ChangeDesk) -> None:
    await an_eventful_life(desk)
    entry = (await desk.history_of_store("1"))[-1]
    assert entry.edition is not MISSING
    same = Transition("1", entry.edition, "drop", None, None, entry.at, Cause("mallory"), int(entry.id.split("-")[0]))
    assert entry_of_edition(same).key == entry.key
    with pytest.raises(ConditionFailed):
        async with desk.book.db.transaction() as tx:
            desk.book.audit.record(tx, same)
    assert (await desk.history_of_store("1"))[-1] == entry


Read = Callable[[ChangeDesk, Caller, PageArgs], Awaitable[NodePage[Any]]]

READS: dict[str, Read] = {
    "store": lambda desk, caller, page: desk.book.audit.of_store(caller, "1", page),
    "actor": lambda desk, caller, page: desk.book.audit.of_actor(caller, "anna", page),
    "day": lambda desk, caller, page: desk.book.audit.of_day(caller, APRIL.date() + DAY, page),
    "product": lambda desk, caller, page: desk.book.audit.of_product(caller, "Base", "P1", page),
    "prices": lambda desk, caller, page: desk.book.audit.prices_of(caller, "1", 1, page),
}


@pytest.mark.parametrize("kind", READS)
async def test_pages_are_whole_in_both_directions_with_true_flags(desk: ChangeDesk, kind: str) -> None:
    await an_eventful_life(desk)
    read = READS[kind]
    everything = (await read(desk, READER, PageArgs(first=2_048))).nodes
    assert len(everything) > 1
    if kind != "prices":
        assert [each.at for each in everything] == sorted((each.at for each in everything), reverse=True)
    for size in (1, 2, 5):
        found: list[Any] = []
        page = await read(desk, READER, PageArgs(first=size))
        while page.nodes:
            assert page.has_previous == bool(found)
            found += page.nodes
            assert page.has_next == (len(found) < len(everything))
            page = await read(desk, READER, PageArgs(first=size, after=page.end_cursor))
        assert found == everything
        last = await read(desk, READER, PageArgs(last=size))
        assert last.nodes == everything[-size:]
        assert (last.has_next, last.has_previous) == (False, len(everything) > size)


async def test_everything_is_found_by_what_it_is_of(desk: ChangeDesk) -> None:
    ids = await an_eventful_life(desk)
    audit, page = desk.book.audit, PageArgs(first=2_048)
    of_day = (await audit.of_day(READER, APRIL.date() + DAY, page)).nodes
    assert {entry.day for entry in of_day} == {APRIL.date() + DAY}
    assert {entry.change_set for entry in of_day} >= {ids[0], ids[2], ids[3]}
    of_anna = (await audit.of_actor(READER, "anna", page)).nodes
    assert {entry.actor for entry in of_anna} == {"anna"}
    assert {"unapprove", "seal"} <= {entry.action for entry in of_anna}
    prices = (await audit.of_product(READER, "Base", "P1", page)).nodes
    assert [(each.store, each.edition) for each in prices] == [("2", 3), ("1", 5), ("2", 2), ("1", 2), ("2", 1), ("1", 1)] or [
        each.change_set for each in prices
    ][:2] == [ids[3], ids[3]]
    assert (await audit.of_day(READER, date(2030, 1, 1), page)).nodes == []
    assert (await audit.of_actor(READER, "nobody", page)).nodes == []


async def test_the_prices_that_count_again_where_an_approval_is_taken_back_late_are_audited(desk: ChangeDesk) -> None:
    await desk.stores("1", "2", prices={"P1": 100})
    found = await desk.approved({"1": {"P1": 90}, "2": {"P1": 90}})
    desk.pass_()
    await desk.settle("1")
    await desk.change_sets.unapprove(APPROVER, found.id, reason="a mistake", request="r-2")
    await desk.carried(found.id)
    price, *_ = (await desk.book.audit.of_product(READER, "Base", "P1", PageArgs())).nodes
    assert (price.store, price.change_set, price.before_amount, price.after_amount) == ("1", found.id, 90, 100)
    assert (price.actor, price.reason, price.request) == ("anna", "a mistake", "r-2")
    edition = (await desk.editions("1"))[price.edition]
    assert (edition.retracts, edition.from_at) == (2, price.from_at)


async def test_the_audit_is_as_far_as_the_stores_of_the_caller(desk: ChangeDesk) -> None:
    ids = await an_eventful_life(desk)
    mine, audit, page = only_of("2"), desk.book.audit, PageArgs(first=2_048)
    for nodes in (await audit.of_actor(mine, "anna", page), await audit.of_day(mine, APRIL.date() + DAY, page)):
        assert nodes.nodes
        assert all(_is_of(entry, "2") for entry in nodes.nodes)
    assert {each.store for each in (await audit.of_product(mine, "Base", "P1", page)).nodes} == {"2"}
    for forbidden in (audit.of_store(mine, "1", page), audit.prices_of(mine, "1", 1, page)):
        with pytest.raises(NotFound, match="store"):
            await forbidden
    for id in (ids[0], "nothing", ""):
        with pytest.raises(NotFound, match="change set"):
            await audit.of_change_set(mine, id, page)
    assert (await audit.of_change_set(mine, ids[2], page)).nodes
    nobody = Caller("nobody", frozenset(["edit", "approve"]))
    for kind, read in READS.items():
        with pytest.raises(LacksRole, match="'read'"):
            await read(desk, nobody, page)
        assert kind


def _is_of(entry: AuditEntry, store: str) -> bool:
    return entry.store == store or (entry.store is MISSING and entry.scope <= {store})


async def test_a_page_takes_as_many_reads_however_long_the_audit_is(desk: ChangeDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    await an_eventful_life(desk)
    counts: dict[int, dict[str, int]] = {}
    query = OpenTable.query
    reads: list[int] = []

    async def counted(self: Any, *selections: Any, **options: Any) -> Any:
        reads.append(len(selections))
        return await query(self, *selections, **options)

    monkeypatch.setattr(OpenTable, "query", counted)
    for times in (0, 20):
        for _ in range(times):
            await desk.carried((await desk.change_now({"1": {"P1": 1}})).id)
            desk.pass_()
        counts[times] = {}
        for kind, read in READS.items():
            first = await read(desk, READER, PageArgs(first=2))
            reads.clear()
            await read(desk, READER, PageArgs(first=2, after=first.end_cursor))
            counts[times][kind] = len(reads)
    assert counts[0] == counts[20]
    assert set(counts[0].values()) == {2}  # the page, and whether there is something before it


async def test_what_does_not_exist_is_refused(desk: ChangeDesk) -> None:
    await an_eventful_life(desk)
    audit = desk.book.audit
    with pytest.raises(InvalidField, match="type: 'Gift' is unknown"):
        await audit.of_product(READER, "Gift", "P1", PageArgs())
    for nameless in (audit.of_product(READER, "Base", "", PageArgs()), audit.of_actor(READER, "", PageArgs())):
        with pytest.raises(NotFound):
            await nameless
    of_store = await audit.of_store(READER, "1", PageArgs(first=1))
    with pytest.raises(InvalidCursor, match="belongs to another query"):
        await audit.of_store(READER, "2", PageArgs(first=1, after=of_store.end_cursor))
