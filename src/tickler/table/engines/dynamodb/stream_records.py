"""Records of a stream as changes. What is no change of an item is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from tickler.dynamo.codec import Attribute, Item
from tickler.table.definition import METADATA_PARTITION, TableDefinition
from tickler.table.engines.change_log import ChangeRecord
from tickler.table.engines.dynamodb.items import TTL, index_keys

_SETS = ("SS", "NS", "BS")


class Images(msgspec.Struct, frozen=True, gc=False):
    """The field `dynamodb` of a record. Images stay as they came, until somebody decodes them."""

    SequenceNumber: str
    Keys: dict[str, Attribute]
    ApproximateCreationDateTime: float = 0.0  # in seconds
    OldImage: msgspec.Raw = msgspec.Raw()
    NewImage: msgspec.Raw = msgspec.Raw()
    StreamViewType: str = ""

    @property
    def at_ms(self) -> int:
        return round(self.ApproximateCreationDateTime * 1000)


class StreamRecord(msgspec.Struct, frozen=True, gc=False):
    dynamodb: Images


class _Head(msgspec.Struct, frozen=True, gc=False):
    entity: dict[str, str] = {}


_decode: Callable[[bytes], Item] = msgspec.json.Decoder(dict[str, dict[str, Any]]).decode
_decode_head = msgspec.json.Decoder(_Head).decode


def changes_of(table: TableDefinition, shard: str, records: Iterable[StreamRecord], *, since_ms: int = 0) -> list[ChangeRecord]:
    """Return the changes among the records of a shard that were made at `since_ms` or later."""
    return [change for record in records if (change := _change(table, shard, record.dynamodb, since_ms)) is not None]


def _change(table: TableDefinition, shard: str, images: Images, since_ms: int) -> ChangeRecord | None:
    pk = images.Keys["pk"]["S"]
    if pk == METADATA_PARTITION or images.at_ms < since_ms:
        return None
    old, new = (_with_empty_maps(bytes(image)) if image else None for image in (images.OldImage, images.NewImage))
    entity = _decode_head(new or old or b"{}").entity.get("S")
    if entity is None:
        return None  # an item of another program
    if old is not None and new is not None and _same_attributes(table, entity, _decode(old), _decode(new)):
        return None  # other keys of indexes or another expiry, as a reindex writes them
    return ChangeRecord(shard, images.SequenceNumber, images.at_ms, entity, pk, images.Keys["sk"]["S"], old, new)


def _with_empty_maps(image: bytes) -> bytes:
    """Return an image with empty maps as the service has them: DynamoDB Local leaves out their type."""
    if b"{}" not in image:
        return image
    return msgspec.json.encode({name: _with_type(attribute) for name, attribute in _decode(image).items()})


def _with_type(attribute: Attribute) -> Attribute:
    if not attribute:
        return {"M": {}}
    ((tag, value),) = attribute.items()
    if tag == "M":
        return {tag: {key: _with_type(each) for key, each in value.items()}}
    return {tag: [_with_type(each) for each in value]} if tag == "L" else attribute


def _same_attributes(table: TableDefinition, entity: str, old: Item, new: Item) -> bool:
    """Tell whether two images show the same entity, whatever the keys of their indexes are."""
    definition = table.entities.get(entity)
    names = old.keys() | new.keys()
    beside = {TTL} | index_keys(names, () if definition is None else definition.attributes)
    return all(name in beside or _same(old.get(name), new.get(name)) for name in names)


def _same(one: Attribute | None, other: Attribute | None) -> bool:
    return one == other or (one is not None and other is not None and _unordered(one) == _unordered(other))


def _unordered(attribute: Attribute) -> Any:
    """Return an attribute value in which the order of a set's members does not count."""
    ((tag, value),) = attribute.items()
    if tag in _SETS:
        return tag, frozenset(value)
    if tag == "M":
        return tag, {key: _unordered(each) for key, each in value.items()}
    return (tag, [_unordered(each) for each in value]) if tag == "L" else (tag, value)
