"""The days before the demo: a catalogue is loaded, prices are changed and settled, and a mistake is taken back.

Everything is done through the services of pricebook, with the clock moved.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from pricebook.app import Pricebook
from pricebook.change_sets import Line, NewChangeSet
from pricebook.demo.made_changes import (
    AUTUMN,
    CATALOGUE,
    CONFLICTING,
    DOUBTFUL,
    DRAFT,
    MISTAKE,
    TONIGHT,
    UPLOAD_TITLE,
    WAITING,
    MadeChange,
    doubtful_lines,
    faulty_upload,
)
from pricebook.demo.staff import APPROVER, DEMO_PERSON, EDITOR, caller_of, hire
from pricebook.demo.time_lapse import TimeLapse, work
from pricebook.loading.loader import load_catalogue
from pricebook.model import BulkOptions, ChangeSet

BEGINS = timedelta(days=6)  # so long before the first start
LOADED_FOR = timedelta(days=60)  # so long the prices have counted by then


class Past:
    def __init__(self, book: Pricebook, lapse: TimeLapse, zone: str) -> None:
        self._book = book
        self._lapse = lapse
        self._zone = zone

    async def play(self, until: datetime) -> None:
        """Play the days until an instant, and leave open what somebody who looks at it may decide."""
        book = self._book
        await hire(book, self._zone)
        await load_catalogue(book.db, CATALOGUE, book.now() - LOADED_FOR)
        await approved(book, AUTUMN, AUTUMN.lines(), at=until - timedelta(days=5))
        mistake = await approved(book, MISTAKE, MISTAKE.lines(), at=until - timedelta(days=3))
        await self._lapse.until(until - timedelta(days=2))
        await self._take_back(mistake)
        await self._lapse.until(until)
        tomorrow = (until.astimezone(ZoneInfo(self._zone)) + timedelta(days=1)).date()
        tonight = before_midnight(TONIGHT, until, tomorrow)
        await approved(book, tonight, tonight.lines(), day=tomorrow)
        conflicting = before_midnight(CONFLICTING, until, tomorrow)
        await submitted(book, conflicting, conflicting.lines(), day=tomorrow)
        await submitted(book, DOUBTFUL, doubtful_lines(), day=tomorrow + timedelta(days=2))
        await submitted(book, WAITING, WAITING.lines(), day=tomorrow + timedelta(days=1), until_day=tomorrow + timedelta(days=8))
        await drafted(book, DRAFT, DRAFT.lines(), day=tomorrow + timedelta(days=11))
        await self._upload()
        await work(book)

    async def _take_back(self, mistake: ChangeSet) -> None:
        """Roll a change set back. Whoever asks for it has submitted it, so that another one approves it."""
        approver, other = await caller_of(self._book, APPROVER), await caller_of(self._book, DEMO_PERSON)
        opposite = await self._book.change_sets.roll_back(approver, mistake.id, reason="It was meant for one week only.")
        await self._book.change_sets.approve(other, opposite.id, rev=opposite.rev)
        await work(self._book)

    async def _upload(self) -> None:
        async def pieces() -> AsyncIterator[bytes]:
            yield faulty_upload()

        editor = await caller_of(self._book, EDITOR)
        await self._book.bulk.start(editor, BulkOptions(format="csv", title=UPLOAD_TITLE), pieces())


def before_midnight(made: MadeChange, now: datetime, day: date) -> MadeChange:
    """Return a change for those of its stores where a day has not begun."""
    zones = [store.tz for store in CATALOGUE.stores()]
    return replace(made, stores=[n for n in made.stores if now.astimezone(ZoneInfo(zones[n])).date() < day])


async def drafted(book: Pricebook, made: MadeChange, lines: Iterable[Line], **when: object) -> ChangeSet:
    editor = await caller_of(book, EDITOR)
    draft = await book.change_sets.create(editor, NewChangeSet(title=made.title, reason=made.reason, **when))  # type: ignore[arg-type]
    await book.change_sets.put_lines(editor, draft.id, lines)
    return await book.change_sets.get(editor, draft.id)


async def submitted(book: Pricebook, made: MadeChange, lines: Iterable[Line], **when: object) -> ChangeSet:
    draft = await drafted(book, made, lines, **when)
    return await book.change_sets.submit(await caller_of(book, EDITOR), draft.id, rev=draft.rev)


async def approved(book: Pricebook, made: MadeChange, lines: Iterable[Line], **when: object) -> ChangeSet:
    """Make a change set that counts when it says, and let all of its stores have it."""
    waiting = await submitted(book, made, lines, **when)
    await book.change_sets.approve(await caller_of(book, APPROVER), waiting.id, rev=waiting.rev)
    await work(book)
    return await book.change_sets.get(await caller_of(book, APPROVER), waiting.id)
