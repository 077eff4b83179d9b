"""The table of the conformance kit for streams, and what its tests share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio

from tickler.clock import ManualClock
from tickler.table import MISSING, Attr, Entity, Index, Key, Missing, Table, attr
from tickler.table.engines.change_log import ChangeLog, ChangeRecord
from tickler.table.engines.engine import Engine
from tickler.table.open_table import OpenTable

STREAMED = Table("kit_stream", stream=True)
NOW = datetime(2030, 11, 20, 12, tzinfo=UTC)  # far from the present: leases follow the clock that they are given
MAX_READS = 40


class Task(Entity, table=STREAMED):
    id: Attr[str] = attr()
    status: Attr[str] = attr(default="open")
    size: Attr[int] = attr(default=0)
    due_at: Attr[datetime | Missing] = attr(default=MISSING)
    expires_at: Attr[datetime | Missing] = attr(default=MISSING, expires=True)

    key = Key("TASK" / id, "TASK")
    open = Index("gsi1", "OPEN", id, when=status == "open")
    due = Index("gsi2", "DUE", due_at / id)


class Remark(Entity, table=STREAMED):
    """Shares the partition of a task."""

    task: Attr[str] = attr()
    n: Attr[int] = attr()
    text: Attr[str] = attr(default="")
    labels: Attr[dict[str, list[dict[str, str]]]] = attr(default={})
    key = Key("TASK" / task, "REMARK" / n)


class StreamFixtures:
    """Base of the kit. Override the fixture `engine` with one that yields an open engine of the empty table `STREAMED`.

    `sweeps`: False where expired items are deleted without being asked for it. `prunes`: False where changes expire by
    themselves. `bounds_reads`: False where the engine need not bound the bytes of a read.
    """

    sweeps = True
    prunes = True
    bounds_reads = True

    pytestmark = pytest.mark.asyncio

    @pytest_asyncio.fixture
    async def engine(self) -> Engine:
        raise pytest.UsageError("override the fixture `engine` with one that yields an open engine of the empty table STREAMED")

    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock(NOW)

    @pytest.fixture
    def db(self, engine: Engine, clock: ManualClock) -> OpenTable:
        return OpenTable(STREAMED, engine, clock, create=True)

    @pytest.fixture(autouse=True)
    def without_pauses(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tickler.table.streams.delivery.FIRST_PAUSE_S", 0.0)


class Follower:
    """Reads a change log from a position on."""

    def __init__(self, changes: ChangeLog, positions: dict[str, str | None] | None = None) -> None:
        self._changes = changes
        self.positions: dict[str, str | None] = positions or {}
        self.records: list[ChangeRecord] = []
        self.lost = False

    async def follow(self, expected: int | None = None, *, limit: int = 100) -> list[ChangeRecord]:
        """Read until `expected` changes were found, or until nothing is left, and return them."""
        found: list[ChangeRecord] = []
        empty = 0
        for _ in range(MAX_READS):
            if (expected is not None and len(found) >= expected) or (expected is None and empty == 3):
                break
            for shard in await self._changes.shards():
                self.positions.setdefault(shard.id, None)
            reads = await self._changes.read(self.positions, limit=limit)
            self.positions |= {read.shard: read.position for read in reads}
            self.lost = self.lost or any(read.lost for read in reads)
            found += (some := [record for read in reads for record in read.records])
            empty = 0 if some else empty + 1
        self.records += found
        return found

    def images(self, records: list[ChangeRecord]) -> list[tuple[Any, Any]]:
        """Return what each change was from and to."""
        return [
            tuple(None if image is None else self._changes.decode(each.entity, image) for image in (each.old, each.new))  # type: ignore[misc]  # two
            for each in records
        ]


def task(n: int, **attributes: Any) -> Task:
    return Task(id=f"t{n:03}", **attributes)


def later(**time: float) -> datetime:
    return NOW + timedelta(**time)
