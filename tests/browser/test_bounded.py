"""The cost of a page is bounded: the number of statements and the work in the database do not grow with the schedules."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple

import httpx
import pytest
import pytest_asyncio
from msgspec.structs import replace

from tickler import ManualClock, Policy, PythonTarget, Schedule, Tickler, connect
from tickler.server.app import make_app
from tickler.server.settings import ServerSettings
from tickler.stores.sqlite import SqliteStore

from .handlers import failing

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
FEW, MORE, MANY = 1_000, 20_000, 100_000  # the numbers on *Now* go up to 10,000, so MORE is where work must end to grow
STEP = 100  # instructions of SQLite that are counted as one
FAILED = 250  # more than any page shows
FAILING, ECHO = PythonTarget("failing"), PythonTarget("echo")
PAGES = (
    "/",
    "/forecast",
    "/schedules",
    "/schedules?owner=ada",
    "/schedules?owner=ada&key=job-00",
    "/schedules?owner=ada&key=job-00&state=paused",
    "/schedules?state=active",
    "/schedules?state=paused",
    "/schedules?state=finished",
    "/schedules?state=unreadable",
    "/schedules/ada/busy",
    "/schedules/ada/busy/edit",
    "/new-schedule",
    "/failed",
    "/failed/retry-all",
    "/doctor",
    "/audit",
)

OF_AN_OWNER = ("/", "/schedules", "/schedules?state=paused", "/schedules/ada/busy", "/failed", "/failed/retry-all", "/audit")
VIEWS = [*((path, "olga") for path in PAGES), *((path, "ada") for path in OF_AN_OWNER)]  # by an operator, and by an owner
MAX_STATEMENTS = 16
MAX_WORK = 3_000  # times 100 instructions: up to 10,000 rows are counted, three times
SLACK = 5

pytestmark = pytest.mark.xdist_group("bounded")  # the store is filled once, in one process


class Cost(NamedTuple):
    statements: int
    work: int


class Costs(NamedTuple):
    """The cost by page and caller: with few schedules, more, and many; and when all of them are late."""

    few: dict[tuple[str, str], Cost]
    more: dict[tuple[str, str], Cost]
    many: dict[tuple[str, str], Cost]
    late: dict[tuple[str, str], Cost]


class Counted:
    """A Tickler on SQLite, and the cost of its pages."""

    def __init__(self, tickler: Tickler, clock: ManualClock) -> None:
        self.tickler = tickler
        self.clock = clock
        self._statements = self._work = 0
        transport = httpx.ASGITransport(make_app(tickler, ServerSettings()))  # type: ignore[arg-type]  # an ASGI app of Litestar's types
        self._client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")
        self._number = 0
        self._tokens: dict[str, str] = {}

    async def among(self, number: int) -> dict[tuple[str, str], Cost]:
        """Measure with so many schedules: half belong to one owner, some are paused, and all others fire in the coming night."""
        await self.tickler.schedules.put_many(list(_schedules(range(self._number, number))))
        self._number = number
        self.clock.advance(timedelta(minutes=11))
        await self.tickler.forecasts.refresh()  # as the service does by itself
        return await self.costs()

    async def costs(self) -> dict[tuple[str, str], Cost]:
        return {(path, who): await self._cost(path, who) for path, who in VIEWS}

    async def _cost(self, path: str, who: str) -> Cost:
        headers = {"authorization": f"Bearer {self._tokens[who]}"}
        await self._client.get("/new-schedule", headers=headers)  # fill caches first
        self._statements = self._work = 0
        answer = await self._client.get(path, headers=headers)
        assert answer.status_code == 200, (path, answer.text)
        return Cost(self._statements, self._work)

    async def open(self) -> None:
        _, self._tokens["olga"] = await self.tickler.tokens.create(["read", "write", "operate"])
        _, self._tokens["ada"] = await self.tickler.tokens.create(["read", "write"], owner="ada")
        store = self.tickler.store
        assert isinstance(store, SqliteStore)
        await store._connection.read(self._listen)

    async def close(self) -> None:
        await self._client.aclose()

    def _listen(self, connection: sqlite3.Connection) -> None:
        connection.set_trace_callback(self._statement)
        connection.set_progress_handler(self._step, STEP)

    def _statement(self, text: str) -> None:
        self._statements += 1

    def _step(self) -> int:
        self._work += 1
        return 0


def _schedules(numbers: range) -> Iterator[Schedule]:
    for number in numbers:
        owner = "ada" if number % 2 else f"owner-{number % 997:03}"
        when = f"{number % 60} {number % 10} * * *"
        yield Schedule(owner=owner, key=f"job-{number:06}", when=when, target=ECHO, enabled=number % 20 not in (10, 11))


async def _fill(t: Tickler, clock: ManualClock) -> None:
    """Fill the store with more fires of each kind than a page shows, a long history, and a long audit log."""
    failing(t)
    for key, policy in (("dead", Policy(attempts=1)), ("open", Policy(attempts=2, backoff=[timedelta(days=30)]))):
        broken = Schedule(owner="ada", key=key, when="0 12 * * *", target=FAILING, policy=policy)
        await t.schedules.put_many([replace(broken, key=f"{key}-{number:03}") for number in range(FAILED)])
    often = Policy(missed="all", max_catchup=FAILED)
    await t.schedules.put(Schedule(owner="ada", key="busy", when="@every 7s", target=ECHO, policy=often))
    clock.advance(timedelta(days=1))
    await t.tick()
    for number in range(FAILED):
        await t.audit.record("ada", "put", owner="ada", key=f"job-{number}")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def costs(tmp_path_factory: pytest.TempPathFactory) -> Costs:
    clock = ManualClock(NOW_MS)
    async with connect(f"sqlite:///{tmp_path_factory.mktemp('many') / 'tickler.db'}", clock=clock) as t:
        await _fill(t, clock)
        counted = Counted(t, clock)
        await counted.open()
        few, more, many = [await counted.among(number) for number in (FEW, MORE, MANY)]
        clock.advance(timedelta(days=1))
        late = await counted.costs()
        await counted.close()
        return Costs(few, more, many, late)


async def test_a_page_takes_as_many_statements_however_many_schedules_there_are(costs: Costs) -> None:
    for view in VIEWS:
        few, more, many = (among[view].statements for among in (costs.few, costs.more, costs.many))
        assert few == more == many <= MAX_STATEMENTS, view


async def test_a_page_takes_no_more_work_once_counts_have_reached_their_end(costs: Costs) -> None:
    for view in VIEWS:
        assert costs.many[view].work <= costs.more[view].work + SLACK <= MAX_WORK, (view, costs.more[view], costs.many[view])


async def test_a_page_is_bounded_too_when_all_are_late_and_no_forecast_is_fresh(costs: Costs) -> None:
    for view in VIEWS:
        late = costs.late[view]
        assert (late.statements <= MAX_STATEMENTS, late.work <= MAX_WORK) == (True, True), (view, late)
