"""Sends in DynamoDB: the record and the items of the schedule are written in one transaction."""

from __future__ import annotations

from typing import NamedTuple

from tickler.database.unit_of_work import UnitOfWork
from tickler.dynamo.client import pause
from tickler.dynamo.codec import Item
from tickler.dynamo.transactions import TransactionPart
from tickler.model.schedule import Id
from tickler.records.kinds import SEND
from tickler.sends.contract import Decide, NewSend, SeenSend, label_of, record_name
from tickler.stores.dynamodb.layout import new_revision
from tickler.stores.dynamodb.records import DynamodbRecords, NewRecord, read_record
from tickler.stores.dynamodb.schedules.reads import StoredItem, read
from tickler.stores.dynamodb.schedules.writes import Writer
from tickler.stores.dynamodb.table import TRIES, Table, refuse_using
from tickler.stores.dynamodb.transactions import Write, write_transaction


class _Items(NamedTuple):
    """What was read for a send."""

    record: Item | None
    schedule: StoredItem | None

    @property
    def seen(self) -> SeenSend:
        record = None if self.record is None else read_record(self.record)
        return SeenSend(record, None if self.schedule is None else self.schedule.stored)


class DynamodbSends:
    def __init__(self, table: Table, records: DynamodbRecords) -> None:
        self._table = table
        self._records = records
        self._writer = Writer(table, records)

    async def send(self, id: Id, decide: Decide, *, using: object = None) -> None:
        if isinstance(using, UnitOfWork):
            items = await self._read(id)
            new = decide(items.seen)
            if new is not None:
                writes = await self._writes(id, new, items)
                await using.join(self._table.client, [id])
                using.add(*(TransactionPart(write.part(self._table.name), label_of(id)) for write in writes))
            return
        refuse_using(using)
        for attempt in range(1, TRIES + 1):
            items = await self._read(id)
            new = decide(items.seen)
            if new is None or not await write_transaction(self._table, await self._writes(id, new, items)):
                return
            await pause(attempt)
        raise self._table.contended(label_of(id))

    async def _read(self, id: Id) -> _Items:
        stored = (await read(self._table, [id])).get(id)
        return _Items(await self._records.read_item(SEND, record_name(id)), stored)

    async def _writes(self, id: Id, new: NewSend, items: _Items) -> list[Write]:
        record = NewRecord(SEND, record_name(id), new.value, new.expires_at, new_revision())
        return [record.write(items.record, 1), *await self._writer.plan(new.schedule, items.schedule)]
