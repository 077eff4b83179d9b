"""Measures a table on DynamoDB. A read of everything could cost a fortune, so that a sample is read, unless asked otherwise.

The table and each index are scanned at several places, up to a number of items each. What is read to its end is counted exactly.
Otherwise the counts of the sample are scaled up to what DescribeTable says, which AWS updates about every six hours.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from tickler.dynamo.codec import Item, size_of
from tickler.dynamo.tables import describe
from tickler.errors import SchemaMissing
from tickler.table.definition import METADATA_PARTITION
from tickler.table.engines.dynamodb.connection import Connection
from tickler.table.engines.dynamodb.items import ENTITY, TTL
from tickler.table.measurement import Fill, Measurement, Partition, largest_of

SEGMENTS = 8  # places at which a sample is taken: one place might have nothing but a single large partition

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class _Sample:
    """The items of the table or of an index that were read."""

    def __init__(self, partition: str, now_ms: int) -> None:
        self._partition = partition
        self._now_ms = now_ms
        self.is_complete = True
        self.entities: Counter[str] = Counter()
        self.partitions: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()

    def add(self, raw: Item) -> None:
        has_expired = TTL in raw and int(raw[TTL]["N"]) * 1000 <= self._now_ms
        if has_expired or raw["pk"]["S"] == METADATA_PARTITION:
            return
        entity = raw.get(ENTITY, {}).get("S", "")
        self.entities[entity] += 1
        self.partitions[raw[self._partition]["S"]] += 1
        self.bytes[entity] += size_of(raw)

    def fill(self, described_items: int) -> Fill:
        seen = self.entities.total()
        largest = largest_of(self.partitions.items())
        if self.is_complete or not seen:
            return Fill(dict(sorted(self.entities.items())), largest, exact=self.is_complete)
        factor = max(1.0, described_items / seen)
        scaled = {name: round(count * factor) for name, count in sorted(self.entities.items())}
        return Fill(scaled, None if largest is None else Partition(largest.key, round(largest.items * factor)), exact=False)


async def measure(connection: Connection, now_ms: int, sample: int | None) -> Measurement:
    with connection.translated():
        description = await describe(connection.client, connection.name)
    if description is None:
        raise SchemaMissing(connection.label, connection.name)
    counts: Mapping[str, int] = {
        index["IndexName"]: index.get("ItemCount", 0) for index in description.get("GlobalSecondaryIndexes", [])
    }
    table = await _sampled(connection, None, now_ms, sample)
    indexes = {gsi: (await _sampled(connection, gsi, now_ms, sample)).fill(counts.get(gsi, 0)) for gsi in connection.table.gsis}
    sizes = {name: round(table.bytes[name] / count) for name, count in sorted(table.entities.items())}
    return Measurement(table.fill(description.get("ItemCount", 0)), indexes, sizes)


async def _sampled(connection: Connection, gsi: str | None, now_ms: int, sample: int | None) -> _Sample:
    """Read up to `sample` items in rounds. What a segment leaves of its share goes to those that have more."""
    found = _Sample("pk" if gsi is None else f"{gsi}pk", now_ms)
    index: dict[str, object] = {} if gsi is None else {"IndexName": gsi}
    starts: dict[int, object] = dict.fromkeys(range(SEGMENTS))  # of the segments that are not read to their end
    left = math.inf if sample is None else sample
    while starts and left > 0:
        limit = {} if sample is None else {"Limit": math.ceil(left / len(starts))}
        for segment, start in list(starts.items()):
            place = {"Segment": segment, "TotalSegments": SEGMENTS} | ({} if start is None else {"ExclusiveStartKey": start})
            page = await connection.call("Scan", {**index, **limit, **place}, _decode)
            for raw in page["Items"]:
                found.add(raw)
            left -= int(page["ScannedCount"])
            starts[segment] = page.get("LastEvaluatedKey")
            if starts[segment] is None:
                del starts[segment]
    found.is_complete = not starts
    return found
