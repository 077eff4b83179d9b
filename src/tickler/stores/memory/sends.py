"""Sends in dictionaries."""

from __future__ import annotations

import msgspec

from tickler.database.memory import MemoryPart
from tickler.database.unit_of_work import UnitOfWork
from tickler.errors import TransactionConflict
from tickler.model.record import Record
from tickler.model.schedule import Id
from tickler.records.kinds import SEND
from tickler.sends.contract import Decide, NewSend, SeenSend, label_of, record_name
from tickler.stores.memory.schedules import MemorySchedules, refuse_using
from tickler.stores.memory.tables import RecordEntry, Tables


class MemorySends:
    def __init__(self, tables: Tables, schedules: MemorySchedules) -> None:
        self._tables = tables
        self._schedules = schedules

    async def send(self, id: Id, decide: Decide, *, using: object = None) -> None:
        seen = self._seen(id)
        new = decide(seen)
        if not isinstance(using, UnitOfWork):
            refuse_using(using)
            if new is not None:
                self._apply(id, new)
            return
        if new is None:
            return

        def check() -> None:
            if self._seen(id) != seen:
                raise TransactionConflict(label_of(id))

        await using.join(self._tables.database, [id])
        using.add(MemoryPart(check, lambda: self._apply(id, new)))

    def _seen(self, id: Id) -> SeenSend:
        name = record_name(id)
        entry = self._tables.records.get((SEND, name))
        record = None
        if entry is not None:
            record = Record(SEND, name, msgspec.json.decode(entry.value), entry.version, entry.expires_at)
        return SeenSend(record, self._schedules.read(id))

    def _apply(self, id: Id, new: NewSend) -> None:
        self._tables.records[SEND, record_name(id)] = RecordEntry(new.value, 1, new.expires_at)
        self._schedules.apply([new.schedule])
