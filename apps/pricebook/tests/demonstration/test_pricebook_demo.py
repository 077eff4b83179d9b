"""What somebody finds who starts the demo: the first time, and again days later."""

from __future__ import annotations

import asyncio
import shutil
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from msgspec import Struct

from pricebook.access.caller import Caller
from pricebook.app import Pricebook, Settings, open_pricebook
from pricebook.demo import DEMO_PERSON, Demo, open_demo
from pricebook.demo.event_inbox import EventInbox
from pricebook.demo.made_changes import AUTUMN, CATALOGUE, CONFLICTING, DOUBTFUL, MISTAKE, SOON, TONIGHT, UPLOAD_TITLE, WAITING
from pricebook.demo.staff import APPROVER
from pricebook.demo.time_lapse import TimeLapse
from pricebook.editions.pages import PageArgs
from pricebook.errors import InvalidField, NotAllowed
from pricebook.model import ChangeSet
from tickler import ManualClock, new_key
from tickler.table import MISSING

pytestmark = pytest.mark.xdist_group("pricebook demo")  # the days are played once, in one process

THURSDAY = datetime(2026, 11, 19, 8, 20, tzinfo=UTC)


class Started(Struct, frozen=True):
    """A demo that runs, without a worker and without a web server."""

    demo: Demo
    book: Pricebook
    clock: ManualClock

    async def caller(self) -> Caller:
        person = await self.book.people.get(DEMO_PERSON)
        assert person is not None
        return person.caller

    async def open_sets(self) -> list[ChangeSet]:
        return (await self.book.change_sets.open(await self.caller(), PageArgs(first=100))).nodes

    async def decided_sets(self) -> list[ChangeSet]:
        """Return the change sets that the approver of the demo has had to do with, over or not."""
        caller = await self.caller()
        entries = (await self.book.audit.of_actor(caller, APPROVER, PageArgs(first=2_000))).nodes
        ids = list(dict.fromkeys(str(entry.change_set) for entry in entries if entry.change_set is not MISSING))
        return [each for each in await self.book.change_sets.get_many(caller, ids) if each is not None]

    async def price(self, store: str, product: str) -> int:
        found = await self.book.prices.as_of(store, product, self.book.now())
        assert found is not None
        return found.amount.minor


Start = Callable[[datetime], AbstractAsyncContextManager[Started]]


class Made(Struct, frozen=True):
    path: Path
    key: str
    said: list[str]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The file of a demo that was started for the first time on a Thursday morning."""
    found = Made(tmp_path_factory.mktemp("demo") / "demo.db", new_key(), [])

    async def fill() -> None:
        found.path.touch(0o600)  # as the command line does
        found.path.with_name("demo.begun.db").write_text("left by a start that was interrupted")
        async with started(found.path, ManualClock(THURSDAY), found.said):
            pass

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TICKLER_KEY", found.key)
        asyncio.run(fill())
    return found


@pytest.fixture
def start(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Start the demo at an instant, on a copy of that file."""
    monkeypatch.setenv("TICKLER_KEY", made.key)
    path = Path(shutil.copy(made.path, tmp_path))
    return lambda at: started(path, ManualClock(at), [])


@asynccontextmanager
async def started(path: Path, clock: ManualClock, said: list[str]) -> AsyncIterator[Started]:
    with closing(socket.create_server(("127.0.0.1", 0))) as found:
        port = found.getsockname()[1]
    settings = Settings(store=f"sqlite:///{path}", base_url=f"http://127.0.0.1:{port}")
    async with (
        open_demo(settings, say=said.append, now_ms=clock.now_ms, zone="Europe/Berlin") as demo,
        open_pricebook(demo.settings, clock=clock) as book,
    ):
        await demo.fill(book)
        yield Started(demo, book, clock)


async def test_it_has_change_sets_in_every_state_that_lasts(start: Start) -> None:
    async with start(THURSDAY) as here:
        found = await here.open_sets()
        assert Counter(each.state for each in found) == {"approved": len(SOON) + 1, "submitted": 3, "draft": 2}
        decided = await here.decided_sets()
        assert {each.title: each.state for each in decided if each.state not in ("approved", "submitted")} == {
            AUTUMN.title: "settled",
            MISTAKE.title: "superseded",
            **{each.title: "settled" for each in decided if each.rolls_back is not MISSING},
        }
        assert [each.title for each in found if each.day is not MISSING and each.state == "approved"] == [TONIGHT.title]
        assert await here.book.settling.overdue() == 0
        (tonight,) = [each for each in found if each.title == TONIGHT.title]
        assert THURSDAY < tonight.first_at <= tonight.last_at < THURSDAY + timedelta(hours=26)  # type: ignore[operator]


async def test_changes_are_due_within_minutes_and_happen_and_a_receiver_shows_their_events(start: Start) -> None:
    async with start(THURSDAY) as here, aiohttp.ClientSession() as client:
        due = sorted(each.at - THURSDAY for each in await here.open_sets() if isinstance(each.at, datetime))
        assert len(due) == len(SOON)
        assert due[0] >= timedelta(minutes=1)
        assert due[-1] <= timedelta(minutes=10)
        store, product = CATALOGUE.store(SOON[0].stores[0]), CATALOGUE.product(SOON[0].products[0])
        before = await here.price(store, product)
        await TimeLapse(here.book, here.clock).until(THURSDAY + timedelta(minutes=12))
        assert await here.price(store, product) == before * SOON[0].percent // 100
        titles = {each.title for each in await here.open_sets()}
        assert titles.isdisjoint({each.title for each in SOON})
        assert set(here.demo.inbox.types) == {"prices.changed.v1"}  # of their approval another start has told
        async with client.get(here.demo.inbox.page) as page:
            text = await page.text()
        assert "prices.changed.v1" in text
        assert "0 were not, and were refused" in text


async def test_what_waits_for_approval_has_a_report_with_and_without_findings(start: Start) -> None:
    async with start(THURSDAY) as here:
        waiting = {each.title: each for each in await here.open_sets() if each.state == "submitted"}
        caller = await here.caller()
        fine = await here.book.change_sets.report(caller, waiting[WAITING.title].id)
        assert (fine.can_approve, fine.findings, fine.lines) == (True, [], len(WAITING.stores) * len(WAITING.products))
        doubtful = await here.book.change_sets.report(caller, waiting[DOUBTFUL.title].id)
        assert {finding.code for finding in doubtful.findings} == {"large_change", "unknown_product", "unchanged"}
        conflicting = await here.book.change_sets.report(caller, waiting[CONFLICTING.title].id)
        assert ({finding.code for finding in conflicting.findings}, conflicting.can_approve) == ({"conflict"}, False)
        found = waiting[WAITING.title]
        assert (await here.book.change_sets.approve(caller, found.id, rev=found.rev)).state in ("approving", "approved")


async def test_an_upload_tells_what_was_wrong_with_its_lines(start: Start) -> None:
    async with start(THURSDAY) as here:
        (job,) = (await here.book.bulk.recent(await here.caller(), PageArgs())).nodes
        assert (job.options.title, job.state) == (UPLOAD_TITLE, "done")
        assert job.counts.failed >= 5
        assert job.counts.changes > 100
        failures = (await here.book.bulk.failures(await here.caller(), job.id, PageArgs())).nodes
        assert len({failure.reason for failure in failures}) >= 4
        assert any(failure.other_line is not MISSING for failure in failures)


async def test_the_receiver_takes_nothing_that_is_not_signed_and_is_for_this_machine_alone() -> None:
    async with EventInbox() as inbox, aiohttp.ClientSession() as client:
        async with client.post(inbox.url, json={"type": "prices.changed.v1"}) as forged:
            assert (forged.status, inbox.types) == (401, [])
        async with client.get(inbox.page, headers={"host": "elsewhere.example"}) as foreign:
            assert foreign.status == 403


async def test_a_restart_goes_on_with_what_is_there_and_adds_what_is_due_soon(start: Start) -> None:
    async with start(THURSDAY + timedelta(minutes=1)) as here:
        assert len(await here.open_sets()) == len(SOON) + 6  # those of the first start are still to come
    later = THURSDAY + timedelta(days=2)
    async with start(later) as here:
        approved = [each for each in await here.open_sets() if each.state == "approved"]
        assert sorted(each.title for each in approved) == sorted(each.title for each in SOON)
        assert all(later < each.at < later + timedelta(minutes=11) for each in approved if isinstance(each.at, datetime))
        assert await here.book.settling.overdue() == 0
        assert TONIGHT.title in {each.title for each in await here.decided_sets() if each.state == "settled"}


async def test_what_a_restart_adds_changes_prices_again(start: Start) -> None:
    keys = [next(made.lines()).key for made in SOON]
    async with start(THURSDAY) as here:
        await TimeLapse(here.book, here.clock).until(THURSDAY + timedelta(minutes=12))
    later = THURSDAY + timedelta(minutes=20)
    async with start(later) as here:
        before = await here.book.prices.as_of_many(keys, later)
        after = await here.book.prices.as_of_many(keys, later + timedelta(minutes=11))
    for was, becomes in zip(before, after, strict=True):
        assert was is not None
        assert becomes is not None
        assert was.amount != becomes.amount


def test_the_first_start_says_what_takes_time_and_removes_what_an_interrupted_one_left(made: Made) -> None:
    assert len(made.said) == 1
    assert [file.name for file in made.path.parent.glob("demo.begun*")] == []
    assert made.path.stat().st_mode & 0o077 == 0


async def test_the_demo_leaves_other_files_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TICKLER_KEY", new_key())
    path = tmp_path / "prices.db"
    async with open_pricebook(Settings(store=f"sqlite:///{path}")):
        pass
    with pytest.raises(NotAllowed, match="this file is not of the demo"):
        async with started(path, ManualClock(THURSDAY), []):
            pass
    with pytest.raises(InvalidField, match="the demo is kept in a file"):
        async with open_demo(Settings(store="memory://"), say=print):
            pass
