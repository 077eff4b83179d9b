"""Partitions that take more writes than one can, and the number of shards to split them into."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from tickler.errors import InvalidInput
from tickler.table.definition import TableDefinition
from tickler.table.key import Index, Key
from tickler.table.measurement import Fill, Measurement
from tickler.table.schema.finding import Finding, Severity
from tickler.table.schema.membership import is_never_absent
from tickler.table.schema.source_text import index_source, path_source, template_source
from tickler.table.template import KeyPart

UNITS_A_SECOND = 1_000  # that a partition of DynamoDB takes of writes
UNIT_BYTES = 1_024  # of an item, or begun
MAX_SHARE = 0.5  # of the items of an index, in one of many partitions
MIN_ITEMS = 1_000  # below which shares say nothing
EXAMPLE_SHARDS = 4

Pair = Key[Any, Any, Any] | Index[Any, Any]


def shards_for(writes_per_second: float, units: int) -> int:
    """Return into how many partitions writes have to be split, each of which takes 1,000 units a second."""
    return max(1, math.ceil(writes_per_second * units / UNITS_A_SECOND))


def hot_partitions(table: TableDefinition, measured: Measurement | None, writes_per_second: float | None) -> Iterator[Finding]:
    """Yield the keys whose partition is a constant, and the measured partitions that have most items of their index."""
    for definition in table.entities.values():
        pairs: list[Pair] = [definition.key, *definition.indexes]
        for pair in pairs:
            if not pair.pk.parts and _key_parts(pair):  # an entity without any is a single item
                yield from _constant(pair, measured, writes_per_second)
    if measured is not None:
        for gsi, fill in [(None, measured.table), *measured.indexes.items()]:
            yield from _skewed(table, gsi, fill, measured, writes_per_second)


def _constant(pair: Pair, measured: Measurement | None, rate: float | None) -> Iterator[Finding]:
    """A sparse index may have a single partition: few items are in it. It is too much only for a rate that somebody names."""
    units = _units(pair, measured)
    key = pair.pk.fill(())
    if rate is not None:
        yield from _too_fast(pair, f"all writes of {_name(pair)} go to the one partition {key!r}", units, rate)
    elif isinstance(pair, Key) or is_never_absent(pair):
        yield _unrated(pair, f"every write of {_entity(pair)} goes to the one partition {key!r}", units, "info")


def _skewed(table: TableDefinition, gsi: str | None, fill: Fill, measured: Measurement, rate: float | None) -> Iterator[Finding]:
    largest = fill.largest
    if largest is None or fill.total < MIN_ITEMS or largest.items <= MAX_SHARE * fill.total:
        return
    pairs = [pair for pair in _pairs(table, gsi) if pair.pk.parts and _renders(pair, largest.key)]
    if not pairs:
        return
    pair = max(pairs, key=lambda each: fill.items.get(each.bound().name, 0))  # several entities may share the partition
    units = _units(pair, measured)
    said = (
        f"the partition {largest.key!r} has {'' if fill.exact else 'about '}{largest.items:,} of the {fill.total:,} items of "
        f"{'the table' if gsi is None else gsi}, {largest.items / fill.total:.0%}"
    )
    if rate is None:
        yield _unrated(pair, said, units, "warning")
    else:
        yield from _too_fast(pair, said, units, rate)


def _too_fast(pair: Pair, said: str, units: int, rate: float) -> Iterator[Finding]:
    """Yield a finding if one partition cannot take so many writes a second."""
    shards = shards_for(rate, units)
    if shards > 1:
        yield Finding(
            check="hot partition",
            severity="warning",
            about=_name(pair),
            figure=f"{rate:,g} writes a second of {_counted(units)}, and a partition takes {UNITS_A_SECOND // units:,}",
            says=said,
            remedy=f"split it into {shards} shards ({rate:,g} × {units} / {UNITS_A_SECOND:,}): {_sharded(pair, shards)}",
        )


def _unrated(pair: Pair, said: str, units: int, severity: Severity) -> Finding:
    return Finding(
        check="hot partition",
        severity=severity,
        about=_name(pair),
        figure=f"a partition takes {UNITS_A_SECOND // units:,} writes a second of {_counted(units)}",
        says=said,
        remedy=(
            f"if there are more, split it, for example into {EXAMPLE_SHARDS} shards (tell the writes a second to have them "
            f"computed): {_sharded(pair, EXAMPLE_SHARDS)}"
        ),
    )


def _sharded(pair: Pair, shards: int) -> str:
    """Say how to split a partition with this toolkit."""
    partition = f"{template_source(pair.pk)} / shard"
    name = pair.name.rpartition(".")[2]
    line = (
        index_source(pair, name, partition)
        if isinstance(pair, Index)
        else f"{name} = Key({partition}, {template_source(pair.sk)})"
    )
    return (
        f"declare `shard: Attr[int] = attr()`, set it by what never changes, as in `{_hash(pair)} % {shards}`, write `{line}`, "
        f"and query each of range({shards})"
    )


def _hash(pair: Pair) -> str:
    """Return what spreads items evenly, from the last attribute of the primary key."""
    last = _key_parts(pair)[-1]
    name = path_source(last.path, "")
    return {str: f"zlib.crc32({name}.encode())", int: name}.get(last.codec.kind, f"zlib.crc32(str({name}).encode())")


def _key_parts(pair: Pair) -> list[KeyPart]:
    key = pair.bound().key
    return [*key.pk.parts, *key.sk.parts]


def _pairs(table: TableDefinition, gsi: str | None) -> list[Pair]:
    if gsi is None:
        return [definition.key for definition in table.entities.values()]
    return [index for definition in table.entities.values() for index in definition.indexes if index.gsi == gsi]


def _renders(pair: Pair, key: str) -> bool:
    try:
        pair.pk.parse(key)
    except InvalidInput:
        return False
    return True


def _units(pair: Pair, measured: Measurement | None) -> int:
    size = 0 if measured is None else measured.bytes.get(pair.bound().name, 0)
    return max(1, math.ceil(size / UNIT_BYTES))


def _counted(units: int) -> str:
    return f"{units} unit{'' if units == 1 else 's'}"


def _entity(pair: Pair) -> str:
    return str(pair.bound().cls.__name__)


def _name(pair: Pair) -> str:
    return f"{_entity(pair)}.{pair.name.rpartition('.')[2]}"
