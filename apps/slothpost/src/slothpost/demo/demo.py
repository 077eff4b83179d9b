"""Opens the demo: what runs beside slothpost, and the weeks before its first start."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import quote

import msgspec

import tickler
from slothpost.app import Slothpost, open_slothpost
from slothpost.demo.days import days_of, machine_zone
from slothpost.demo.local_services import LocalServices, open_local_services
from slothpost.demo.local_time import LocalTime
from slothpost.demo.past import DEMO_USER, FIRST_DAY, Past
from slothpost.demo.restart import Restart
from slothpost.demo.shipper import Shipper
from slothpost.demo.sources_page import SourcesPage
from slothpost.demo.time_lapse import TimeLapse
from slothpost.demo.ways_in import directly, secrets_of
from slothpost.errors import InvalidField, NotAllowed
from slothpost.settings import Settings
from tickler import ManualClock
from tickler.web import make_private, sqlite_file

Say = Callable[[str], None]

_BEGUN = ".begun"  # is in the name of the file while the weeks are played: what has another name is complete


class Demo:
    """`settings` lead to the local networks and sources. Open slothpost with them, then `fill` it."""

    def __init__(self, settings: Settings, services: LocalServices, page: SourcesPage, time: LocalTime) -> None:
        self.settings = settings
        self.services = services
        self._page = page
        self._time = time

    async def fill(self, slothpost: Slothpost) -> None:
        """Make what is stored and what runs fit together, so that there is something to do now. Safe at every start."""
        if await slothpost.users.get(DEMO_USER) is None:
            raise NotAllowed("this file is not of the demo: set SLOTHPOST_STORE to another one, or leave --demo out")
        self._time.follow(slothpost.t.now_ms)
        with _quietly():
            await Restart(slothpost, self.services, _shipper(slothpost, self.services)).bring_up_to_date()
        self._page.open(slothpost)

    def hints(self) -> tuple[str, ...]:
        """Return what to look at, for whoever has started it."""
        places = {"X": self.services.x.url, "Threads": self.services.threads.url, "ship something": self._page.url}
        return ("approve a draft, press Post now, and look at it here:", *(f"{name:<14}  {url}" for name, url in places.items()))


@asynccontextmanager
async def open_demo(
    settings: Settings, *, say: Say, now_ms: Callable[[], int] | None = None, zone: str | None = None
) -> AsyncIterator[Demo]:
    """Run the local networks and sources while the block does. The first time, the weeks before are played."""
    path = _path(settings.store)
    time = LocalTime(now_ms or tickler.connect("memory://").now_ms)
    async with AsyncExitStack() as stack:
        services = await stack.enter_async_context(open_local_services(settings, time))
        page = await stack.enter_async_context(SourcesPage(services, settings))
        local = services.settings(settings, page.url)
        if not path.exists() or not path.stat().st_size:
            say("making up three weeks of a developer's work: this takes a few seconds, the first time only")
            with _quietly():
                await _play_past(local, path, services, time, zone or machine_zone())
        yield Demo(local, services, page, time)


async def _play_past(settings: Settings, path: Path, services: LocalServices, time: LocalTime, zone: str) -> None:
    """Play the weeks in a file beside the one that is wanted, which is there only when they are complete."""
    begun = path.with_name(f"{path.stem}{_BEGUN}{path.suffix}")
    for leftover in path.parent.glob(f"{begun.name}*"):
        leftover.unlink()
    now = time()
    days = days_of(now, zone)
    clock = ManualClock(days.at(FIRST_DAY, "10:00"))
    present = time.follow(clock.now_ms)
    _, mark, options = settings.store.partition("?")
    store = f"sqlite:///{quote(str(begun))}{mark}{options}"
    make_private(store)
    async with open_slothpost(msgspec.structs.replace(settings, store=store), clock=clock) as slothpost:
        past = Past(slothpost, TimeLapse(slothpost, clock), services, _shipper(slothpost, services), days)
        await past.play(now)
    time.follow(present)
    os.replace(begun, path)


@contextmanager
def _quietly() -> Iterator[None]:
    """Leave out what the engine says whenever it begins to work: here it does so a hundred times."""
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
        raise InvalidField("SLOTHPOST_STORE", "the demo is kept in a file: use one such as sqlite:///slothpost-demo.db")
    return file


def _shipper(slothpost: Slothpost, services: LocalServices) -> Shipper:
    """Return one that delivers without a web server, which does not run yet."""
    return Shipper(services, secrets_of(slothpost), directly(slothpost))
