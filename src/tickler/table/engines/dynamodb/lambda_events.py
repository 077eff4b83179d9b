"""The changes of an event with which Lambda hands records of a DynamoDB stream to a function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from tickler.errors import InvalidInput
from tickler.table.definition import TableDefinition
from tickler.table.engines.change_log import ChangeRecord
from tickler.table.engines.dynamodb.schema import VIEW_TYPE
from tickler.table.engines.dynamodb.stream_records import StreamRecord, changes_of

_SOURCE = "aws:dynamodb"


class _EventRecord(StreamRecord, frozen=True, gc=False, kw_only=True):
    arn: str = msgspec.field(name="eventSourceARN")

    @property
    def table(self) -> str:
        return self.arn.partition(":table/")[2].partition("/")[0]

    @property
    def label(self) -> str:
        return self.arn.partition("/stream/")[2]


class _Source(msgspec.Struct, frozen=True, gc=False):
    name: str = msgspec.field(name="eventSource", default="an unknown source")


class _Sources(msgspec.Struct, frozen=True, gc=False):
    """An event of any kind."""

    Records: list[_Source]


class _Event(msgspec.Struct, frozen=True, gc=False):
    Records: list[_EventRecord]


_decode_sources = msgspec.json.Decoder(_Sources).decode
_decode = msgspec.json.Decoder(_Event).decode


def records_of_event(table: TableDefinition, name: str, event: Any) -> list[ChangeRecord]:
    """Return changes in order. The event does not say of which shard they are, so that `shard` is the label of the stream."""
    try:
        body = msgspec.json.encode(event)
        for source in _decode_sources(body).Records:
            if source.name != _SOURCE:
                raise _unfit(f"a record is from {source.name}")
        records = _decode(body).Records
    except (msgspec.MsgspecError, TypeError) as error:
        raise _unfit(str(error)) from None
    return list(_changes(table, name, records))


def _changes(table: TableDefinition, name: str, records: list[_EventRecord]) -> Iterator[ChangeRecord]:
    for record in records:
        if record.table != name:
            raise InvalidInput(
                f"event: a record is of the table {record.table!r}, and this one is {name!r}: give each table a function, or a "
                "consumer, of its own"
            )
        if record.dynamodb.StreamViewType != VIEW_TYPE:
            raise InvalidInput(
                f"event: the stream of {name!r} has {record.dynamodb.StreamViewType or 'no images'}, and must have {VIEW_TYPE}: "
                "turn it off, run `tickler table create`, and point the function at the new stream"
            )
        yield from changes_of(table, record.label, [record])


def _unfit(reason: str) -> InvalidInput:
    return InvalidInput(
        f"event: it is not one of a DynamoDB stream: {reason}: pass the event that Lambda calls the function with, and make the "
        "table's stream its event source"
    )
