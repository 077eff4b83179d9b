"""A process that is killed at any write of a decision leaves nothing half visible, and the next one comes to the same end."""

from __future__ import annotations

from typing import Any

import msgspec

from book import MARCH
from change_desk import APPROVER, ChangeDesk
from killed_changes import AFTER, AGAIN, APRIL, BEFORE, END, MINUTE, ROLLED_BACK, go_on, open_desk, stores_of
from killed_process import answer_of
from pricebook.editions.pages import PageArgs
from pricebook.model import ChangeSet, ChangeStore, CombinationPrice, Edition, Head, PastPrice, Price, UnsettledEdition
from tickler.table import MISSING, Missing

STRIDE = 47  # in the ordinary run: every so many writes
SOAK_STRIDE = 7  # where each write takes longer


async def test_a_change_set_comes_to_the_same_end_whenever_processes_are_killed(stored_url: str, soak: bool, seed: int) -> None:
    stride = STRIDE if not soak else 1 if stored_url.startswith("sqlite") else SOAK_STRIDE
    first = 1 + seed % stride
    async with open_desk(stored_url):
        pass  # so that its tables are there
    last = await answer_of("killed_changes", stored_url, first, stride)
    async with open_desk(stored_url) as desk:
        expected = await _state(desk, last)  # that one was not killed
        for number in range(first, last, stride):
            await _shows_all_or_nothing(desk, number)
            await go_on(desk, number)
            desk.clock.set(END)
            assert [await desk.shown(store) for store in stores_of(number)] == [BEFORE] * 2
            assert await _state(desk, number) == expected, f"after a kill at step {number}"
    assert (last - first) // stride >= 4


async def test_two_processes_that_carry_a_set_on_at_once_come_to_one_end(stored_url: str) -> None:
    stores = [f"{n:02}" for n in range(16)]
    async with open_desk(stored_url) as desk:
        await desk.stores(*stores, prices=BEFORE)
        found = await desk.approving(dict.fromkeys(stores, AFTER), at=APRIL)
    assert await answer_of("killed_changes", stored_url, found.id, 2) == 2
    async with open_desk(stored_url) as desk:
        desk.clock.set(MARCH + 3 * MINUTE)
        assert (await desk.get(found.id)).state == "approved"
        assert (await desk.actions(found.id))[-2:] == ["approve", "approved"]
        for store in stores:
            assert [(n, each.state) for n, each in (await desk.editions(store)).items()] == [(2, "sealed")]
            assert [entry.action for entry in await desk.history_of_store(store) if entry.edition == 2] == ["open", "seal"]


async def _shows_all_or_nothing(desk: ChangeDesk, number: int) -> None:
    for store in stores_of(number):
        killed_at = (await desk.history_of_store(store))[-1].at
        for at in (each for each in (MARCH + MINUTE, APRIL, AGAIN, ROLLED_BACK, END) if each > killed_at):
            desk.clock.set(at)
            assert await desk.shown(store) in (BEFORE, AFTER), f"a mixture after a kill at step {number}"


async def _state(desk: ChangeDesk, number: int) -> list[Any]:
    """Return everything that is left of an attempt, without names, and without how often something was written."""
    id, db = f"set-{number}", desk.book.db
    found = await db.get(ChangeSet.key.id(id))
    assert found is not None
    rollback = await db.get(ChangeSet.key.id(str(found.superseded_by)))
    items: list[Any] = [found, rollback]
    done: list[str] = []
    for each in (id, str(found.superseded_by)):
        done += [f"{entry.action} {entry.state_after}" for entry in await desk.history(each)]
    for store in stores_of(number):
        items += [await db.get(ChangeStore.key.id(each, store)) for each in (id, str(found.superseded_by))]
        items.append(await db.get(Head.key.id(store)))
        items += (await db.query(Price.key(store), CombinationPrice.key(store), UnsettledEdition.key(store), first=100)).items
        items += (await db.query(PastPrice.key(store), first=100)).items
        for edition in range(1, 6):
            items += (await desk.book.audit.prices_of(APPROVER, store, edition, PageArgs())).nodes
        done += [f"{entry.edition} {entry.action} {_told(entry.after)}" for entry in await desk.history_of_store(store)]
    names = ("id", "store", "rev", "round", "title", "change_set", "rolls_back", "superseded_by", "scope")
    plain = [msgspec.to_builtins(each, str_keys=True) for each in items]
    return [done, [{name: value for name, value in each.items() if name not in names} for each in plain]]


def _told(edition: Edition | Missing) -> str:
    return "" if edition is MISSING else f"{edition.state} {edition.from_at} {edition.to_at} {edition.retracts}"
