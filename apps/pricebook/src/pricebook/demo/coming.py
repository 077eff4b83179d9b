"""What each start of the demo adds: changes that are due within minutes, if there are none."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from pricebook.app import Pricebook
from pricebook.change_sets import Line
from pricebook.demo.made_changes import SOON, MadeChange
from pricebook.demo.past import approved
from pricebook.demo.staff import APPROVER, caller_of
from pricebook.editions.pages import PageArgs
from pricebook.model import ChangeSet
from tickler.table import MISSING

WITHIN = timedelta(minutes=11)
MINUTES = (2, 4, 7, 10)
LAST_WAITS = timedelta(minutes=1)  # what is due sooner has come before somebody has found the page


async def add_coming(book: Pricebook) -> int:
    """Approve changes for two to ten minutes from now, unless some are. Returns how many there are now."""
    now = book.now()
    found = [each for each in await _approved(book) if each.at is not MISSING and now + LAST_WAITS < each.at <= now + WITHIN]
    if found:
        return len(found)
    for made, minutes in zip(SOON, MINUTES, strict=True):
        at = (now + timedelta(minutes=minutes)).replace(second=0, microsecond=0)
        until_at = None if made.lasts is None else at + made.lasts
        await approved(book, made, await _different(book, made, at), at=at, until_at=until_at)
    return len(SOON)


async def _different(book: Pricebook, made: MadeChange, at: datetime) -> list[Line]:
    """Return the lines of a change; those of the catalogue if a former start has brought its prices already."""
    lines = list(made.lines())
    found = await book.prices.as_of_many([line.key for line in lines], at)
    if any(each is None or each.amount != line.amount for each, line in zip(found, lines, strict=True)):
        return lines
    return list(replace(made, percent=100).lines())


async def _approved(book: Pricebook) -> list[ChangeSet]:
    page = await book.change_sets.open(await caller_of(book, APPROVER), PageArgs(first=200))
    return [each for each in page.nodes if each.state == "approved"]
