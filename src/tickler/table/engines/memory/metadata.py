"""Metadata in a dictionary."""

from __future__ import annotations

from collections.abc import Sequence

from tickler.table.engines.metadata import Entry, EntryWrite


class MemoryMetadata:
    def __init__(self, entries: dict[str, Entry]) -> None:
        self._entries = entries

    async def read(self, prefix: str, *, after: str = "", limit: int | None = None, keys_only: bool = False) -> list[Entry]:
        keys = sorted(key for key in self._entries if key.startswith(prefix) and key > after)[:limit]
        return [self._entries[key]._replace(value=b"") if keys_only else self._entries[key] for key in keys]

    async def write(self, writes: Sequence[EntryWrite]) -> list[bool]:
        return [self._write(each) for each in writes]

    def _write(self, write: EntryWrite) -> bool:
        stored = self._entries.get(write.key)
        version = 0 if stored is None else stored.version
        if write.expected not in (None, version):
            return False
        if write.value is None:
            self._entries.pop(write.key, None)
        else:
            self._entries[write.key] = Entry(write.key, version + 1, write.value)
        return True
