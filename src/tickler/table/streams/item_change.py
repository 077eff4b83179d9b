"""A change of one item, as handlers get it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import msgspec

from tickler.table.definition import EntityDefinition
from tickler.table.engines.change_log import ChangeLog, ChangeRecord
from tickler.table.key import ItemId

Old_co = TypeVar("Old_co", covariant=True)
New_co = TypeVar("New_co", covariant=True)


class ItemChange(msgspec.Struct, Generic[Old_co, New_co], frozen=True):
    """An item before and after a change; None where there was no item.

    `id` is the same each time that this change is delivered, and no other has it. `at` is the time of the write.
    """

    id: str
    key: ItemId[Any]
    old: Old_co
    new: New_co
    at: datetime


def item_change(table: str, definition: EntityDefinition, record: ChangeRecord, log: ChangeLog) -> ItemChange[Any, Any]:
    """Decode a record. `InvalidItem` if the class does not fit what is stored."""
    old, new = (None if image is None else log.decode(record.entity, image) for image in (record.old, record.new))
    key: ItemId[Any] = ItemId(definition, record.pk, record.sk)
    at = datetime.fromtimestamp(record.at_ms / 1000, UTC)
    return ItemChange(f"{table}/{record.shard}/{record.position}", key, old, new, at)
