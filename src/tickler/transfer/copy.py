"""Moving all that one store holds into another: page by page, from where it stopped, and compared at the end.

What was copied is written down in the target after every page. A copy that is killed is begun again with the last page, and to
restore a page again changes nothing: so it ends as one that was not. Both stores are then read from end to end, and of each part
the number of things and a checksum have to be the same. The checksum is a sum, and so the order does not matter.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from tickler.access.audit_log import AuditEntry
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
# What tells of a store itself, or of what is at work on it just now, stays there. All other records go along.
STAYS = frozenset({STORE, WORKER, OUTDATED, FORECAST, ACTIVITY, IDEMPOTENCY, COPY})
MARKED_MS = 60_000
SOON_MS = 3_600_000  # what expires so soon may go while it is compared
MAX_REASON_BYTES = 80  # every store keeps so much of why something failed

Thing = Record | RawSchedule | Fire | HistoryItem
Phase = Literal["copied", "compared"]
OnCopied = Callable[[str, Phase, int, int | None], None]  # of a part: how many things, of how many, if that is known

PARTS: tuple[str, ...] = Contents._fields

_encode = msgspec.json.Encoder(order="sorted").encode


class Position(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far a part has come."""

    count: int = 0
    cursor: str | None = None
    done: bool = False


class Progress(msgspec.Struct, frozen=True):
    """How far a copy has come, as the target remembers it."""

    source: str
    begun_at: int
    into_existing: bool = False
    parts: dict[str, Position] = {}

    def moved(self, part: str, position: Position) -> Progress:
        return replace(self, parts={**self.parts, part: position})


class CopyCount(msgspec.Struct, frozen=True):
    """How many things there are, and the sum of what they are."""

    count: int = 0
    checksum: str = f"{0:032x}"


class Comparison(msgspec.Struct, frozen=True):
    """A part as it is on either side."""

    part: str
    source: CopyCount
    target: CopyCount

    @property
    def same(self) -> bool:
        return self.source == self.target


class Copy:
    """A copy of one store into another, both open. `name` is what the source is called: a copy from there is gone on with."""

    def __init__(self, source: Store, target: Store, name: str, now: Callable[[], int], tell: OnCopied) -> None:
        self._source = source
        self._target = target
        self._name = name
        self._now = now
        self._tell = tell
        self._progress = Progress(name, 0)
        self._version = 0  # of the record of it
        self.is_resumed = False

    async def begin(self, *, into_existing: bool = False, while_workers_run: bool = False) -> None:
        """Look whether it may be done. `InvalidInput` says why not."""
        now_ms = self._now()
        if not while_workers_run:
            await _refuse_workers(self._source.records, "the source", now_ms)
            await _refuse_workers(self._target.records, "the target", now_ms)
        await _refuse_the_same(self._source.records, self._target.records, now_ms)
        record = await self._target.records.get(COPY, _record_name(self._name), now_ms=now_ms)
        if record is not None:
            self._progress, self._version = msgspec.convert(record.value, Progress), record.version
            self.is_resumed = bool(self._progress.parts)
            if not self.is_resumed:
                await self._begin_anew(now_ms, into_existing)
            return
        if not into_existing and (found := await _something(contents_of(self._target))) is not None:
            raise InvalidInput(
                f"the target has {found} already, and they did not come from an unfinished copy of {self._name}: "
                "name an empty store, or pass --into-existing to replace what has the same names"
            )
        self._progress = Progress(self._name, now_ms, into_existing)

    async def _begin_anew(self, now_ms: int, into_existing: bool) -> None:
        """After they were compared and differed: what others did in the target since is not overwritten unasked."""
        earlier = self._progress
        if not into_existing and (found := await self._changed_since(earlier.begun_at)) is not None:
            raise InvalidInput(
                f"the target was used since the copy of {self._name} that differed, and would be set back: {found}; "
                "name an empty store, or pass --into-existing to replace what has the same names"
            )
        self._progress = Progress(self._name, now_ms, into_existing or earlier.into_existing)

    async def _changed_since(self, since_ms: int) -> str | None:
        """What shows that the target lives, and did not come from the source."""
        for worker in await workers(self._target.records, self._now()):
            if worker.seen_at > since_ms:
                return f"the worker {worker.name} was at work on it"
        async for name, deed in _deeds(self._target.records, since_ms, self._now()):
            if await self._source.records.get(AUDIT, name, now_ms=self._now()) is None:
                return f"{deed.by} {deed.did} {'/'.join(filter(None, (deed.owner, deed.key)))}".rstrip()
        newer = await _updated(contents_of(self._target), since_ms)
        there = await _updated(contents_of(self._source), since_ms) if newer else {}
        changed = next((id for id, updated_at in newer.items() if there.get(id) != updated_at), None)
        return None if changed is None else f"the schedule {changed} was changed in it"

    async def run(self) -> None:
        """Copy what is not copied yet."""
        for part in PARTS:
            position = self._progress.parts.get(part, Position())
            source, target = getattr(contents_of(self._source), part), getattr(contents_of(self._target), part)
            total = None if position.done else await source.count()
            self._tell(part, "copied", position.count, position.count if position.done else total)
            once = _Once()
            while not position.done:
                page, cursor = await source.walk(position.cursor, PAGE)
                things = [thing for thing in page if _goes(thing, self._now()) and once.is_new(thing)]
                if things:
                    await target.restore(things)
                position = Position(position.count + len(things), cursor, cursor is None)
                await self._note(self._progress.moved(part, position))
                self._tell(part, "copied", position.count, position.count if position.done else total)

    async def compare(self) -> list[Comparison]:
        """Read both sides. Where they are the same, the copy is over; where not, it begins anew when it is run again.

        What the target has besides does not count among the records, nor anywhere in a target that was not empty.
        """
        until_ms = self._now() + SOON_MS
        found = [await self._compared(part, until_ms, more=self._progress.into_existing or part == "records") for part in PARTS]
        if all(each.same for each in found):
            await self._target.records.delete(COPY, _record_name(self._name))
        else:
            await self._note(replace(self._progress, parts={}))
        return found

    async def _compared(self, part: str, until_ms: int, *, more: bool) -> Comparison:
        read, total = 0, 2 * self._progress.parts.get(part, Position()).count

        def tell(count: int) -> None:
            nonlocal read
            read += count
            self._tell(part, "compared", read, max(read, total))

        sums = await _summed(getattr(contents_of(self._source), part), until_ms, tell, digests=more)
        among = sums.digests if more else None
        there = await _summed(getattr(contents_of(self._target), part), until_ms, tell, among=among)
        return Comparison(part, sums.tally(), there.tally())

    async def _note(self, progress: Progress) -> None:
        """Write down how far it has come. Of two copies at once, the second notices it here."""
        name, value, now_ms = _record_name(self._name), msgspec.json.encode(progress), self._now()
        until_ms = now_ms + STATUS_RETENTION_MS  # as long as it is known which workers came after it
        try:
            self._version = await self._target.records.put(
                COPY, name, value, now_ms=now_ms, expires_at=until_ms, expected=self._version
            )
        except VersionConflict as error:
            raise StoreUnavailable(f"another copy of {self._name} is under way into the same store: let it end") from error
        self._progress = progress


class Checksums:
    """Adds things up: in any order they give the same."""

    def __init__(self, among: Collection[int] | None = None, *, digests: bool = False) -> None:
        self._count = 0
        self._sum = 0
        self._among = among  # only these count
        self._keeps = digests
        self.digests: set[int] = set()

    def add(self, digest: int) -> None:
        if self._among is not None and digest not in self._among:
            return
        self._count += 1
        self._sum += digest
        if self._keeps:
            self.digests.add(digest)

    def tally(self) -> CopyCount:
        return CopyCount(self._count, f"{self._sum % (1 << 128):032x}")


async def _summed(
    part: Part[Any],
    until_ms: int,
    tell: Callable[[int], None],
    *,
    among: Collection[int] | None = None,
    digests: bool = False,
) -> Checksums:
    sums, once = Checksums(among, digests=digests), _Once()
    cursor: str | None = None
    while True:
        page, cursor = await part.walk(cursor, PAGE)
        for thing in page:
            if _goes(thing, until_ms) and once.is_new(thing):
                sums.add(digest_of(thing))
        tell(len(page))
        if cursor is None:
            return sums


def digest_of(thing: Thing) -> int:
    """Of all that every store keeps of it."""
    encoded = _encode([type(thing).__name__, *_told(thing)])
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=16, person=b"tickler-copy").digest())


def _told(thing: Thing) -> Iterator[object]:
    if isinstance(thing, HistoryItem):
        yield thing.entry
        yield -(-thing.expires_at // 1000)  # to the second
        return
    for name in thing.__struct_fields__:
        value = getattr(thing, name)
        if name == "reason":
            value = _short(value)
        elif name == "body":
            value = _parts_of(value)
        yield value


def _parts_of(body: str) -> object:
    """A body's fields, in no order; one that does not read, as it is."""
    try:
        fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return body
    return {name: bytes(field).decode() for name, field in fields.items()}


def _short(reason: str | None) -> str | None:
    return (reason or "").replace("\0", "\ufffd").encode()[:MAX_REASON_BYTES].decode(errors="ignore") or None


def _goes(thing: Thing, now_ms: int) -> bool:
    """Whether it is copied: what has expired by then is not, nor what is the source's alone."""
    if isinstance(thing, Record):
        return thing.kind not in STAYS and (thing.expires_at is None or thing.expires_at > now_ms)
    return not isinstance(thing, HistoryItem) or thing.expires_at > now_ms


class _Once:
    """Knows an entry that says the same as one before: whoever settled twice, not knowing whether it was done, left two."""

    def __init__(self) -> None:
        self._at: tuple[str, str, int] | None = None
        self._entries: set[Entry] = set()

    def is_new(self, thing: Thing) -> bool:
        if not isinstance(thing, HistoryItem):
            return True
        entry = thing.entry
        at = (entry.owner, entry.key, entry.at)
        if at != self._at:
            self._at, self._entries = at, set()
        known = entry in self._entries
        self._entries.add(entry)
        return not known


async def _refuse_workers(records: RecordStore, which: str, now_ms: int) -> None:
    alive = [worker.name for worker in await workers(records, now_ms) if worker.is_alive(now_ms)]
    if alive:
        at_work = some(len(alive), "worker is at work", "workers are at work")
        raise InvalidInput(
            f"{at_work} on {which}, such as {alive[0]}, and would change it meanwhile: stop them, "
            "or pass --while-workers-run for a copy that is not exact"
        )


async def _refuse_the_same(source: RecordStore, target: RecordStore, now_ms: int) -> None:
    """Whatever they are called: what is written to the one is not to be found in the other."""
    name = secrets.token_hex(16)
    mark = msgspec.json.encode(Progress("", now_ms))
    await target.put(COPY, name, mark, now_ms=now_ms, expires_at=now_ms + MARKED_MS)
    try:
        if await source.get(COPY, name, now_ms=now_ms) is not None:
            raise InvalidInput("FROM and TO are the same store: name another one")
    finally:
        await target.delete(COPY, name)


async def _deeds(records: RecordStore, since_ms: int, now_ms: int) -> AsyncIterator[tuple[str, AuditEntry]]:
    """What people did since, the latest first, and the name of the record of it."""
    after = ""
    while found := await records.list(AUDIT, now_ms=now_ms, after=after, limit=PAGE):
        for record in found:
            deed = value_of(record, AuditEntry)
            if deed is None:
                continue
            if deed.at <= since_ms:
                return
            yield record.name, deed
        after = found[-1].name


async def _updated(contents: Contents, since_ms: int) -> dict[Id, int]:
    """Schedules that were put since, and when."""
    found: dict[Id, int] = {}
    cursor: str | None = None
    while True:
        page, cursor = await contents.schedules.walk(cursor, PAGE)
        found |= {raw.id: raw.updated_at for raw in page if raw.updated_at > since_ms}
        if cursor is None:
            return found


async def _something(contents: Contents) -> str | None:
    """What a store has that a copy would have to mix with."""
    parts: Sequence[tuple[str, Part[Any]]] = (
        ("schedules", contents.schedules),
        ("index rows", contents.rows),
        ("fires", contents.fires),
        ("history", contents.history),
    )
    for name, part in parts:
        cursor: str | None = None
        while True:
            page, cursor = await part.walk(cursor, 1)
            if page:
                return name
            if cursor is None:
                break
    return None


def _record_name(source: str) -> str:
    """Short, however long the URL is."""
    return hashlib.blake2b(source.encode(), digest_size=16).hexdigest()
