"""Opens the demo: the receiver that runs beside pricebook, and the days before its first start."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, urlsplit
from zoneinfo import available_timezones

import msgspec

import tickler
from pricebook.app import DEFAULT_PORT, Pricebook, Settings, open_pricebook
from pricebook.demo.coming import add_coming
from pricebook.demo.event_inbox import EventInbox
from pricebook.demo.past import BEGINS, Past
from pricebook.demo.staff import DEMO_PERSON
from pricebook.demo.time_lapse import TimeLapse, work
from pricebook.errors import InvalidField, NotAllowed
from tickler import ManualClock
from tickler.web import make_private, sqlite_file

Say = Callable[[str], None]

DEFAULT_ZONE = "Europe/Berlin"
LOOPBACK = "127.0.0.0/8"

_LOCALTIME = "/etc/localtime"
_BEGUN = ".begun"  # is in the name of the file while the days are played: what has another name is complete


class Demo:
    """`settings` lead to the receiver. Open pricebook with them, then `fill` it."""

    def __init__(self, settings: Settings, inbox: EventInbox) -> None:
        self.settings = settings
        self.inbox = inbox

    async def fill(self, book: Pricebook) -> None:
        """Let something be due soon, and tell the receiver which secret signs. Safe at every start."""
        if await book.people.get(DEMO_PERSON) is None:
            raise NotAllowed("this file is not of the demo: set PRICEBOOK_STORE to another one, or leave --demo out")
        await self.inbox.open(book)
        with _quietly():
            await work(book)
            await add_coming(book)

    def hints(self) -> tuple[str, ...]:
        """Return what to look at, for whoever has started it."""
        return (
            "some prices change within minutes: watch them, or approve what Mara has submitted",
            f"events that a receiver gets: {self.inbox.page}",
        )


@asynccontextmanager
async def open_demo(
    settings: Settings, *, say: Say, now_ms: Callable[[], int] | None = None, zone: str | None = None
) -> AsyncIterator[Demo]:
    """Run the receiver while the block does. The first time, the days before are played."""
    path = _path(settings.store)
    now = now_ms or tickler.connect("memory://").now_ms
    port = (urlsplit(settings.base_url).port or DEFAULT_PORT) + 1
    async with EventInbox(port if port < 65_536 else 0) as inbox:
        local = msgspec.structs.replace(
            settings,
            receivers=(*settings.receivers, inbox.url),
            allow_networks=(*settings.allow_networks, LOOPBACK),
        )
        if not path.exists() or not path.stat().st_size:
            say("making up 200 stores, 100 products and a week of changes: this takes a few seconds, the first time only")
            with _quietly():
                await _play_past(settings, path, datetime.fromtimestamp(now() / 1000, UTC), zone or machine_zone())
        yield Demo(local, inbox)


async def _play_past(settings: Settings, path: Path, now: datetime, zone: str) -> None:
    """Play the days in a file beside the one that is wanted, which is there only when they are complete."""
    begun = path.with_name(f"{path.stem}{_BEGUN}{path.suffix}")
    for leftover in path.parent.glob(f"{begun.name}*"):
        leftover.unlink()
    _, mark, options = settings.store.partition("?")
    store = f"sqlite:///{quote(str(begun))}{mark}{options}"
    make_private(store)
    clock = ManualClock(now - BEGINS)
    async with open_pricebook(msgspec.structs.replace(settings, store=store), clock=clock) as book:
        await Past(book, TimeLapse(book, clock), zone).play(now)
    os.replace(begun, path)


@contextmanager
def _quietly() -> Iterator[None]:
    """Leave out what the engine says whenever it begins to work: here it does so many times."""
    logger = logging.getLogger("tickler")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def _path(store: str) -> Path:
    """Return the file of a store. The demo is made anew by deleting it, so it has to be one."""
    file = sqlite_file(store)
    if file is None:
        raise InvalidField("PRICEBOOK_STORE", "the demo is kept in a file: use one such as sqlite:///pricebook-demo.db")
    return file


def machine_zone() -> str:
    """Return the time zone of this machine; Berlin's if it has none, or is set to UTC as servers are."""
    name = os.environ.get("TZ") or os.path.realpath(_LOCALTIME).rpartition("zoneinfo/")[2]
    known = "/" in name and not name.startswith("Etc/") and name in available_timezones()
    return name if known else DEFAULT_ZONE
