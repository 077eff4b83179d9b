"""Where a change goes that keeps failing, so that it does not stop the others; and what follows for the same item, behind it.

A parked change is an entry `parked/CONSUMER/POSITION/ITEM` in the metadata of the table. An entry `retry/CONSUMER/POSITION` asks
for another try, which a running consumer makes once the change is the first of its item.
"""

from __future__ import annotations

import asyncio
import hashlib
import zlib
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from tickler.errors import ChangeNotFound
from tickler.table.engines.change_log import ChangeRecord
from tickler.table.engines.metadata import Entry, EntryWrite, Metadata

PARKED = "parked/"
RETRY = "retry/"
_DIGITS = 40  # of a position, so that positions sort as numbers
_ITEM_CHARACTERS = 24
_ZLIB = b"\x78"  # begins every compressed value, and no map in MessagePack


class ParkedChange(msgspec.Struct, frozen=True):
    """A change that is not delivered for now. `claimed_until_ms`: a process is delivering it until then."""

    record: ChangeRecord
    error: str
    attempts: int
    parked_at_ms: int
    claimed_until_ms: int = 0

    @property
    def id(self) -> str:
        return self.record.position

    @property
    def parked_at(self) -> datetime:
        return datetime.fromtimestamp(self.parked_at_ms / 1000, UTC)


class Place(NamedTuple):
    """The parts of a key."""

    position: str
    item: str


class Parking:
    """The parked changes of one consumer, at most `most`. `refresh` reads which items have some."""

    def __init__(self, metadata: Metadata, consumer: str, most: int) -> None:
        self._metadata = metadata
        self._parked = f"{PARKED}{consumer}/"
        self._retry = f"{RETRY}{consumer}/"
        self._most = most
        self._places: set[Place] = set()
        self._items: set[str] = set()
        self._one_at_a_time = asyncio.Lock()  # a refresh must not forget what is parked while it reads

    def is_blocked(self, record: ChangeRecord) -> bool:
        """Tell whether an earlier change of the same item is parked, so that this one has to wait behind it."""
        return bool(self._items) and _item(record) in self._items

    async def refresh(self) -> None:
        async with self._one_at_a_time:
            self._places = {_place(entry.key) for entry in await self._metadata.read(self._parked, keys_only=True)}
            self._items = {place.item for place in self._places}

    async def park(self, parked: ParkedChange, *, again: bool = False) -> bool:
        """Park a change, to be tried again when that is asked for; with `again`, as soon as it is the first of its item.

        Returns False if too many are parked already. To park a change twice is fine.
        """
        place = Place(_padded(parked.id), _item(parked.record))
        async with self._one_at_a_time:
            if len(self._places) >= self._most and place not in self._places:
                return False
            retry = [EntryWrite(self._retry + place.position, b"")] if again else []
            await self._metadata.write([EntryWrite(self._key(place), _encode(parked), expected=0), *retry])
            self._places.add(place)
            self._items.add(place.item)
            return True

    async def due(self) -> list[str]:
        """Return the keys of changes to try again now: they are the first of their item, and a retry was asked for."""
        first: dict[str, Place] = {}
        for place in sorted(self._places):
            first.setdefault(place.item, place)
        if not first:
            return []
        asked = {entry.key.removeprefix(self._retry) for entry in await self._metadata.read(self._retry, keys_only=True)}
        return [self._key(place) for place in first.values() if place.position in asked]

    async def claim(self, key: str, now_ms: int, until_ms: int) -> tuple[Entry, ParkedChange] | None:
        """Take a change for this process. None if it is gone, or another process has it."""
        for entry in await self._metadata.read(key, limit=1):
            parked = _decode(entry)
            if parked.claimed_until_ms > now_ms:
                return None
            claimed = await self.extend(entry, parked, until_ms)
            return None if claimed is None else (claimed, parked)
        return None

    async def extend(self, entry: Entry, parked: ParkedChange, until_ms: int) -> Entry | None:
        """Hold a change until another time. None if it was discarded, or another process has it."""
        value = _encode(msgspec.structs.replace(parked, claimed_until_ms=until_ms))
        (is_written,) = await self._metadata.write([EntryWrite(entry.key, value, entry.version)])
        return Entry(entry.key, entry.version + 1, value) if is_written else None

    async def release(self, entry: Entry, parked: ParkedChange, *, again: bool = False) -> None:
        """Give a claimed change back, which has failed once more; with `again`, to be tried again without being asked."""
        value = _encode(msgspec.structs.replace(parked, claimed_until_ms=0))
        retry = self._retry + _place(entry.key).position
        await self._metadata.write([EntryWrite(entry.key, value, entry.version), EntryWrite(retry, b"" if again else None)])

    async def remove(self, entry: Entry) -> None:
        """Delete a claimed change, which was delivered."""
        await self._delete([_place(entry.key)])
        await self.refresh()

    async def listed(self, *, limit: int) -> list[ParkedChange]:
        return [_decode(entry) for entry in await self._metadata.read(self._parked, limit=limit)]

    async def ask_again(self, id: str | None) -> int:
        """Ask for another try of one change, or of all. Returns of how many."""
        chosen = await self._chosen(id)
        await self._metadata.write([EntryWrite(self._retry + place.position, b"") for place in chosen])
        return len(chosen)

    async def discard(self, id: str | None) -> int:
        """Delete one change, or all, so that they are never delivered. Returns how many."""
        chosen = await self._chosen(id)
        await self._delete(chosen)
        await self.refresh()
        return len(chosen)

    async def _chosen(self, id: str | None) -> list[Place]:
        await self.refresh()
        chosen = [place for place in self._places if id is None or place.position == _padded(id)]
        if id is not None and not chosen:
            raise ChangeNotFound(id)
        return chosen

    async def _delete(self, places: Iterable[Place]) -> None:
        deleted = [EntryWrite(key, None) for place in places for key in (self._key(place), self._retry + place.position)]
        await self._metadata.write(deleted)

    def _key(self, place: Place) -> str:
        return f"{self._parked}{place.position}/{place.item}"


async def count_parked(metadata: Metadata) -> dict[str, int]:
    """Count the parked changes of a table by consumer."""
    counts: dict[str, int] = {}
    for entry in await metadata.read(PARKED, keys_only=True):
        consumer = entry.key.removeprefix(PARKED).partition("/")[0]
        counts[consumer] = counts.get(consumer, 0) + 1
    return counts


def _place(key: str) -> Place:
    _, position, item = key.rsplit("/", 2)
    return Place(position, item)


def _item(record: ChangeRecord) -> str:
    return hashlib.sha256(f"{record.pk}\x00{record.sk}".encode()).hexdigest()[:_ITEM_CHARACTERS]


def _padded(position: str) -> str:
    return position.rjust(_DIGITS, "0")


def _encode(parked: ParkedChange) -> bytes:
    """Return the value of an entry, compressed: two images in the JSON of DynamoDB can have more bytes than it writes at once."""
    return zlib.compress(msgspec.msgpack.encode(parked))


def _decode(entry: Entry) -> ParkedChange:
    """Read a value, also one that an earlier version has not compressed."""
    value = zlib.decompress(entry.value) if entry.value.startswith(_ZLIB) else entry.value
    return msgspec.msgpack.decode(value, type=ParkedChange)
