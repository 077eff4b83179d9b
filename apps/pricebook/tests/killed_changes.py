"""Changes prices by change sets in processes that are killed before or after a write: of approving, withdrawing, rolling back.

Each attempt has stores of its own.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial

from book import MARCH
from change_desk import APPROVER, EDITOR, ChangeDesk, lines_of
from killed_process import Steps, all_done, survivor
from pricebook.access.caller import Caller
from pricebook.app import Settings, open_pricebook
from pricebook.change_sets import NewChangeSet
from pricebook.editions import settlement, staging
from pricebook.editions.pages import PageArgs
from pricebook.model import ChangeSet
from tickler import ManualClock
from tickler.table import MISSING

MINUTE = timedelta(minutes=1)
BEFORE = {f"P{n}": 100 + n for n in range(5)}
AFTER = {f"P{n}": 200 + n for n in range(5)}
APRIL = MARCH + timedelta(days=31)
AGAIN = APRIL + timedelta(days=1)
ROLLED_BACK = APRIL + timedelta(days=4)  # what was before is no longer in the rows
END = APRIL + timedelta(days=9)

OTHER = Caller("otto", APPROVER.roles)


@asynccontextmanager
async def open_desk(url: str) -> AsyncIterator[ChangeDesk]:
    clock = ManualClock(MARCH)
    table = url.removeprefix("dynamodb://").partition("?")[0] + "_prices" if url.startswith("dynamodb") else "pricebook"
    async with open_pricebook(Settings(store=url, table=table), clock=clock) as book:
        yield ChangeDesk(book, clock)


def stores_of(number: int) -> tuple[str, str]:
    return f"{number}-a", f"{number}-b"


async def begin(desk: ChangeDesk, number: int) -> str:
    """Make two stores, and a change set that is submitted. Returns its id."""
    desk.clock.set(MARCH)
    stores = stores_of(number)
    await desk.stores(*stores, prices=BEFORE)
    desk.clock.set(MARCH + MINUTE)
    made = await desk.change_sets.create(EDITOR, NewChangeSet(title="killed", at=APRIL), id=f"set-{number}")
    await desk.change_sets.put_lines(EDITOR, made.id, lines_of(dict.fromkeys(stores, AFTER)))
    await desk.change_sets.submit(EDITOR, made.id)
    return made.id


async def go_on(desk: ChangeDesk, number: int) -> None:
    """Approve a change set, withdraw it where one store is settled, approve it again, settle it, and roll it back.

    It goes on from wherever a process that did the same has stopped.
    """
    id = f"set-{number}"
    for _ in range(20):
        found = await desk.get(id)
        was_withdrawn = "unapprove" in await desk.actions(id)
        match found.state:
            case "submitted":
                desk.clock.set(AGAIN + MINUTE if was_withdrawn else MARCH + 2 * MINUTE)
                await desk.approve(id)
            case "approving":
                desk.clock.set(AGAIN + MINUTE if was_withdrawn else MARCH + 2 * MINUTE)
                await desk.change_sets.carry_on(id)
            case "withdrawing":
                desk.clock.set(AGAIN)
                await desk.change_sets.carry_on(id)
            case "approved" if not was_withdrawn:
                desk.clock.set(AGAIN)
                await desk.settle(stores_of(number)[0])
                await desk.change_sets.unapprove(APPROVER, id)
            case "approved" | "settled" if found.superseded_by is MISSING:
                desk.clock.set(ROLLED_BACK)
                await desk.settle(*stores_of(number))
                await _approve_rollback(desk, id)
            case _:
                desk.clock.set(ROLLED_BACK)
                await _end(desk, found, number)
                return
    raise AssertionError(f"{id} does not come to an end")


async def _approve_rollback(desk: ChangeDesk, id: str) -> None:
    page = await desk.change_sets.open(APPROVER, PageArgs(first=2_048))
    made = [each for each in page.nodes if each.rolls_back == id and each.state == "submitted"]
    rollback = made[0] if made else await desk.change_sets.roll_back(APPROVER, id)
    await desk.change_sets.approve(OTHER, rollback.id, rev=rollback.rev)


async def _end(desk: ChangeDesk, found: ChangeSet, number: int) -> None:
    await desk.carried(str(found.superseded_by))
    desk.clock.set(END)
    await desk.settle(*stores_of(number))


async def change(url: str, number: int) -> None:
    for module in (staging, settlement):
        vars(module)["STAGED_AT_A_TIME"] = 3  # so that there are several batches
    async with open_desk(url) as desk:
        await begin(desk, number)
        Steps(number).begin(desk.book.db.engine)
        await go_on(desk, number)


async def carry_on(url: str, id: str) -> None:
    async with open_desk(url) as desk:
        desk.clock.set(MARCH + 2 * MINUTE)
        await desk.carry_on(id)


def main(url: str, first: str, stride: str) -> int:
    """Return the number of the attempt that was not killed, or of a change set's id, how many processes have carried it on."""
    if not first.isdecimal():
        return all_done([partial(carry_on, url, first)] * int(stride))
    return survivor(partial(change, url), itertools.count(int(first), int(stride)))


if __name__ == "__main__":
    sys.stdout.write(f"{main(*sys.argv[1:])}\n")
