"""The status that each worker of a store reports every 20 seconds."""

from __future__ import annotations

from contextlib import suppress

import msgspec
from msgspec.structs import replace

from tickler.errors import VersionConflict
from tickler.model.record import value_of
from tickler.records.contract import RecordStore
from tickler.records.kinds import WORKER

EVERY_S = 20.0
STATUS_RETENTION_MS = 24 * 3_600_000  # so that people see which worker is missing
MISSING_MS = 65_000  # after this, a worker has missed three reports
PAGE = 1_000
TICK = "tick"  # the name under which finished ticks are recorded, wherever they ran

WORKING = "working"
STOPPED = "stopped"


class WorkerReport(msgspec.Struct, frozen=True, kw_only=True):
    """The last report of a worker. `doing` is "working", "stopped", or why it claims nothing."""

    name: str
    doing: str
    started_at: int
    seen_at: int
    last_round_at: int | None = None  # when it last looked for due schedules
    last_claim_at: int | None = None  # when it last found something
    in_flight: int = 0
    queued: int = 0
    counts: dict[str, int] = {}
    clock_offset_ms: int = 0  # the store's time minus its machine's
    delivers_to: list[str] | None = None  # labels of targets: kinds, and handlers by name; None if it does not say
    lacks: dict[str, int] = {}  # labels of targets it lately lacked, with when it last did
    short_of: str | None = None  # the resource that has run out there, so that it claims less
    abandoned: int = 0  # attempts still running after their timeout

    def can_deliver_to(self, label: str) -> bool:
        """Tell whether it may deliver there. A worker that does not say what it has may."""
        return self.delivers_to is None or label in self.delivers_to or label.partition(":")[0] in self.delivers_to

    def has(self, label: str) -> bool:
        """Tell whether it claims, and says that it delivers there. Workers of earlier versions do not say."""
        return self.doing == WORKING and self.delivers_to is not None and self.can_deliver_to(label)

    def is_alive(self, now_ms: int) -> bool:
        return self.doing != STOPPED and now_ms - self.seen_at < MISSING_MS


async def report(records: RecordStore, worker: WorkerReport, *, expected: int | None = None) -> None:
    value = msgspec.json.encode(worker)
    expires_at = worker.seen_at + STATUS_RETENTION_MS
    await records.put(WORKER, worker.name, value, now_ms=worker.seen_at, expires_at=expires_at, expected=expected)


async def report_tick(records: RecordStore, tick: WorkerReport) -> None:
    """Report a finished tick. All ticks share one record; otherwise a tick a minute would hide the workers of a day."""
    while True:
        before = await records.get(WORKER, TICK, now_ms=tick.seen_at)
        known = None if before is None else value_of(before, WorkerReport)
        claims = [each.last_claim_at for each in (tick, known) if each is not None and each.last_claim_at is not None]
        said = replace(tick, name=TICK, last_claim_at=max(claims, default=None))
        with suppress(VersionConflict):  # another tick ended at the same time
            await report(records, said, expected=0 if before is None else before.version)
            break
    await records.delete(WORKER, tick.name)


async def workers(records: RecordStore, now_ms: int) -> list[WorkerReport]:
    """Return all workers that reported within a day, by name."""
    found: list[WorkerReport] = []
    after = ""
    while True:
        page = await records.list(WORKER, now_ms=now_ms, after=after, limit=PAGE)
        found += [worker for record in page if (worker := value_of(record, WorkerReport)) is not None]
        if len(page) < PAGE:
            return found
        after = page[-1].name
