"""Copies a store into another: page by page, resumable, and compared at the end.

The target records the position after every page. A copy that was killed repeats its last page, and restoring a page twice changes
nothing. At the end both stores are read completely: the count and the checksum of each part must be equal. The checksum is a sum
of digests, so that order does not matter.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from tickler.access.audit_log import AuditEntry
from tickler.database.progress import OnProgress
from tickler.errors import InvalidInput, StoreUnavailable, VersionConflict
from tickler.model.fire import Entry, Fire
from tickler.model.record import Record, value_of
from tickler.model.schedule import Id
from tickler.observe.human_format import some
from tickler.records.contract import RecordStore
from tickler.records.kinds import ACTIVITY, AUDIT, COPY, FORECAST, IDEMPOTENCY, OUTDATED, STORE, WORKER
from tickler.records.worker_status import STATUS_RETENTION_MS, workers
from tickler.stores.contents import Contents, HistoryItem, Part, RawSchedule
from tickler.stores.optional import contents_of
from tickler.stores.store import Store

PAGE = 1_000
# Records about the store itself or about its present workers. All other records are copied.
NOT_COPIED = frozenset({STORE, WORKER, OUTDATED, FORECAST, ACTIVITY, IDEMPOTENCY, COPY})
MARK_RETENTION_MS = 60_000
SOON_MS = 3_600_000  # an item that expires this soon may disappear during the comparison
MAX_REASON_BYTES = 80  # every store keeps at least this much of a reason

T = TypeVar("T")
Item = Record | RawSchedule | Fire | HistoryItem

PARTS: tuple[str, ...] = Contents._fields
PART_LABELS = {"rows": "rows without a schedule"}  # for people; programs get the part's name

_encode = msgspec.json.Encoder(order="sorted").encode


class Position(msgspec.Struct, frozen=True, omit_defaults=True):
    """The progress of one part."""

    count: int = 0
    cursor: str | None = None
    done: bool = False


class Progress(msgspec.Struct, frozen=True):
    """The progress of a copy, as the target records it."""

    source: str
    begun_at: int
    into_existing: bool = False
    parts: dict[str, Position] = {}

    def moved(self, part: str, position: Position) -> Progress:
        return replace(self, parts={**self.parts, part: position})


class CopyCount(msgspec.Struct, frozen=True):
    """The number of items, and the sum of their digests."""

    count: int = 0
    checksum: str = f"{0:032x}"


class Comparison(msgspec.Struct, frozen=True):
    """One part in both stores."""

    part: str
    source: CopyCount
    target: CopyCount

    @property
    def same(self) -> bool:
        return self.source == self.target


class Copy:
    """A copy of one open store into another. `name` is the source's URL: an unfinished copy with the same name is resumed."""

    def __init__(self, source: Store, target: Store, name: str, now: Callable[[], int], on_progress: OnProgress) -> None:
        self._source = source
        self._target = target
        self._name = name
        self._now = now
        self._on_progress = on_progress
        self._progress = Progress(name, 0)
        self._version = 0  # of the progress record
        self.is_resumed = False

    async def begin(self, *, into_existing: bool = False, while_workers_run: bool = False) -> None:
        """Check that the copy may run. Raise `InvalidInput` with the reason if it may not."""
        now_ms = self._now()
        if not while_workers_run:
            await _refuse_workers(self._source.records, "the source", now_ms)
            await _refuse_workers(self._target.records, "the target", now_ms)
        await _refuse_same_store(self._source.records, self._target.records, now_ms)
        record = await self._target.records.get(COPY, _record_name(self._name), now_ms=now_ms)
        if record is not None:
            self._progress, self._version = msgspec.convert(record.value, Progress), record.version
            self.is_resumed = bool(self._progress.parts)
            if not self.is_resumed:
                await self._restart(now_ms, into_existing)
            return
        if not into_existing and (found := await _first_part_in_use(contents_of(self._target))) is not None:
            raise InvalidInput(
                f"the target is not empty: it has {found}, and not from an unfinished copy of {self._name}; "
                "name an empty store, or pass --into-existing to replace items of the same name"
            )
        self._progress = Progress(self._name, now_ms, into_existing)

    async def _restart(self, now_ms: int, into_existing: bool) -> None:
        """Copy again after a comparison that found differences, unless that would overwrite later changes of the target."""
        earlier = self._progress
        if not into_existing and (found := await self._changed_since(earlier.begun_at)) is not None:
            raise InvalidInput(
                f"the target was used after the last copy of {self._name}, and its changes would be lost: {found}; "
                "name an empty store, or pass --into-existing to replace items of the same name"
            )
        self._progress = Progress(self._name, now_ms, into_existing or earlier.into_existing)

    async def _changed_since(self, since_ms: int) -> str | None:
        """Return the first sign that the target was used on its own, or None."""
        for worker in await workers(self._target.records, self._now()):
            if worker.seen_at > since_ms:
                return f"worker {worker.name} ran on it"
        async for name, entry in _audit_entries(self._target.records, since_ms, self._now()):
            if await self._source.records.get(AUDIT, name, now_ms=self._now()) is None:
                return f"{entry.by} {entry.action} {'/'.join(filter(None, (entry.owner, entry.key)))}".rstrip()
        newer = await _updated(contents_of(self._target), since_ms)
        there = await _updated(contents_of(self._source), since_ms) if newer else {}
        changed = next((id for id, updated_at in newer.items() if there.get(id) != updated_at), None)
        return None if changed is None else f"schedule {changed} was changed in it"

    async def run(self) -> None:
        """Copy everything that is not copied yet."""
        for part in PARTS:
            position = self._progress.parts.get(part, Position())
            source, target = getattr(contents_of(self._source), part), getattr(contents_of(self._target), part)
            total = None if position.done else await source.count()
            self._report(part, "copied", position.count, position.count if position.done else total)
            duplicates = _Duplicates()
            while not position.done:
                page, cursor = await source.walk(position.cursor, PAGE)
                items = [item for item in page if _is_copied(item, self._now()) and duplicates.is_new(item)]
                if items:
                    await target.restore(items)
                position = Position(position.count + len(items), cursor, cursor is None)
                await self._save(self._progress.moved(part, position))
                self._report(part, "copied", position.count, position.count if position.done else total)

    async def compare(self) -> list[Comparison]:
        """Compare all parts of both stores. If they are equal, the copy is complete; if not, the next run starts over.

        Additional records of the target are ignored, and in a target that was not empty all additional items.
        """
        until_ms = self._now() + SOON_MS
        found = [await self._compare(part, until_ms) for part in PARTS]
        if all(each.same for each in found):
            await self._target.records.delete(COPY, _record_name(self._name))
        else:
            await self._save(replace(self._progress, parts={}))
        return found

    async def _compare(self, part: str, until_ms: int) -> Comparison:
        ignore_additional = self._progress.into_existing or part == "records"
        read, total = 0, 2 * self._progress.parts.get(part, Position()).count

        def on_page(count: int) -> None:
            nonlocal read
            read += count
            self._report(part, "compared", read, max(read, total))

        kept = Checksum(keep_digests=ignore_additional)
        source = await _checksum(getattr(contents_of(self._source), part), until_ms, on_page, kept)
        only = Checksum(source.digests if ignore_additional else None)
        target = await _checksum(getattr(contents_of(self._target), part), until_ms, on_page, only)
        return Comparison(part, source.result(), target.result())

    def _report(self, part: str, phase: str, done: int, total: int | None) -> None:
        self._on_progress(f"{PART_LABELS.get(part, part)} {phase}", done, total)

    async def _save(self, progress: Progress) -> None:
        """Record the progress. Of two copies at the same time, the second one fails here."""
        name, value, now_ms = _record_name(self._name), msgspec.json.encode(progress), self._now()
        until_ms = now_ms + STATUS_RETENTION_MS  # as long as the reports of later workers are kept
        try:
            self._version = await self._target.records.put(
                COPY, name, value, now_ms=now_ms, expires_at=until_ms, expected=self._version
            )
        except VersionConflict as error:
            raise StoreUnavailable(f"another copy of {self._name} into the same store is running: wait for it") from error
        self._progress = progress


class Checksum:
    """Sums digests, in any order. With `only`, other digests are ignored."""

    def __init__(self, only: Collection[int] | None = None, *, keep_digests: bool = False) -> None:
        self._count = 0
        self._sum = 0
        self._only = only
        self._keep_digests = keep_digests
        self.digests: set[int] = set()

    def add(self, digest: int) -> None:
        if self._only is not None and digest not in self._only:
            return
        self._count += 1
        self._sum += digest
        if self._keep_digests:
            self.digests.add(digest)

    def result(self) -> CopyCount:
        return CopyCount(self._count, f"{self._sum % (1 << 128):032x}")


async def _checksum(part: Part[Any], until_ms: int, on_page: Callable[[int], None], checksum: Checksum) -> Checksum:
    duplicates = _Duplicates()
    async for page in _pages(part):
        for item in page:
            if _is_copied(item, until_ms) and duplicates.is_new(item):
                checksum.add(digest_of(item))
        on_page(len(page))
    return checksum


async def _pages(part: Part[T], limit: int = PAGE) -> AsyncIterator[Sequence[T]]:
    """Yield a part page by page. A page may be empty."""
    cursor: str | None = None
    while True:
        page, cursor = await part.walk(cursor, limit)
        yield page
        if cursor is None:
            return


def digest_of(item: Item) -> int:
    """Return a digest of the fields that every store keeps exactly."""
    encoded = _encode([type(item).__name__, *_digested_fields(item)])
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=16, person=b"tickler-copy").digest())


def _digested_fields(item: Item) -> Iterator[object]:
    if isinstance(item, HistoryItem):
        yield item.entry
        yield -(-item.expires_at // 1000)  # to the second
        return
    for name in item.__struct_fields__:
        value = getattr(item, name)
        if name == "reason":
            value = _truncated(value)
        elif name == "body":
            value = _body_fields(value)
        yield value


def _body_fields(body: str) -> object:
    """Return the body's fields, so that their order does not matter; an unreadable body stays text."""
    try:
        fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return body
    return {name: bytes(field).decode() for name, field in fields.items()}


def _truncated(reason: str | None) -> str | None:
    return (reason or "").replace("\0", "\ufffd").encode()[:MAX_REASON_BYTES].decode(errors="ignore") or None


def _is_copied(item: Item, now_ms: int) -> bool:
    """Leave out expired items, and records about the source itself."""
    if isinstance(item, Record):
        return item.kind not in NOT_COPIED and (item.expires_at is None or item.expires_at > now_ms)
    return not isinstance(item, HistoryItem) or item.expires_at > now_ms


class _Duplicates:
    """Detects equal history entries: a worker that settled a fire twice, unsure whether the first write arrived, left two."""

    def __init__(self) -> None:
        self._at: tuple[str, str, int] | None = None
        self._entries: set[Entry] = set()

    def is_new(self, item: Item) -> bool:
        if not isinstance(item, HistoryItem):
            return True
        entry = item.entry
        at = (entry.owner, entry.key, entry.at)
        if at != self._at:
            self._at, self._entries = at, set()
        known = entry in self._entries
        self._entries.add(entry)
        return not known


async def _refuse_workers(records: RecordStore, which: str, now_ms: int) -> None:
    alive = [worker.name for worker in await workers(records, now_ms) if worker.is_alive(now_ms)]
    if alive:
        running = some(len(alive), "worker is running", "workers are running")
        raise InvalidInput(
            f"{running} on {which}, such as {alive[0]}, and would change it during the copy: stop them, "
            "or pass --while-workers-run for an inexact copy"
        )


async def _refuse_same_store(source: RecordStore, target: RecordStore, now_ms: int) -> None:
    """Refuse two URLs of one store: a mark written to the target must not appear in the source."""
    name = secrets.token_hex(16)
    mark = msgspec.json.encode(Progress("", now_ms))
    await target.put(COPY, name, mark, now_ms=now_ms, expires_at=now_ms + MARK_RETENTION_MS)
    try:
        if await source.get(COPY, name, now_ms=now_ms) is not None:
            raise InvalidInput("FROM and TO are the same store: name a different one")
    finally:
        await target.delete(COPY, name)


async def _audit_entries(records: RecordStore, since_ms: int, now_ms: int) -> AsyncIterator[tuple[str, AuditEntry]]:
    """Yield later audit entries with their record names, the latest first."""
    after = ""
    while found := await records.list(AUDIT, now_ms=now_ms, after=after, limit=PAGE):
        for record in found:
            entry = value_of(record, AuditEntry)
            if entry is None:
                continue
            if entry.at <= since_ms:
                return
            yield record.name, entry
        after = found[-1].name


async def _updated(contents: Contents, since_ms: int) -> dict[Id, int]:
    """Return later puts of schedules, with their times."""
    pages = _pages(contents.schedules)
    return {raw.id: raw.updated_at async for page in pages for raw in page if raw.updated_at > since_ms}


async def _first_part_in_use(contents: Contents) -> str | None:
    """Return the name of the first part that is not empty, or None."""
    parts: Sequence[tuple[str, Part[Any]]] = (
        ("schedules", contents.schedules),
        ("index rows", contents.rows),
        ("fires", contents.fires),
        ("history", contents.history),
    )
    for name, part in parts:
        async for page in _pages(part, 1):
            if page:
                return name
    return None


def _record_name(source: str) -> str:
    """Return a name of fixed length for any URL."""
    return hashlib.blake2b(source.encode(), digest_size=16).hexdigest()
