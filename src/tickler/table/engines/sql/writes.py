"""What operations come to as rows of an SQL table, and rows as items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from tickler.errors import StoreUnavailable
from tickler.table.definition import Cells as Cells
from tickler.table.definition import EntityDefinition, TableDefinition
from tickler.table.engines.engine import Ask, Position, Slice
from tickler.table.engines.rows import decode_alike, decode_all, decode_at, is_alive
from tickler.table.key import ItemId
from tickler.table.operation import Check, Delete, Operation, Put, decide, with_next_version
from tickler.table.operation import is_blind as is_blind

TOLD_EVERY = 2_000  # rows of a load

KeyOfRow = tuple[str, str]


class Writes(NamedTuple):
    """What operations come to: their results, rows to insert and to change, and keys of rows to delete.

    `absent` are the keys that the decisions need to stay absent until they are committed, though no row is written there.
    """

    results: list[Any]
    inserted: list[Cells]
    changed: list[Cells]
    removed: list[KeyOfRow]
    absent: list[ItemId[Any]]


def decided(table: TableDefinition, operations: Sequence[Operation], stored: Mapping[KeyOfRow, Cells], now_ms: int) -> Writes:
    """Decide what operations do to the rows that are stored. A row that would stay as it is is not written."""
    writes = Writes([], [], [], [], [])
    for operation in operations:
        id = operation.id
        cells = stored.get((id.pk, id.sk))
        seen = None if cells is None or is_blind(operation) or not is_alive(cells[3], now_ms) else cells
        found = None if seen is None else decode_at(table, id, seen[2], seen[4])
        entity = decide(operation, found)
        writes.results.append(found if isinstance(operation, Delete) else entity)
        if cells is None and isinstance(operation, Check | Delete):
            writes.absent.append(id)
        if isinstance(operation, Check):
            continue
        if entity is not None:
            wanted = id.definition.cells(entity)
            if cells is None:
                writes.inserted.append(wanted)
            elif wanted != cells:
                writes.changed.append(wanted)
        elif cells is not None:
            writes.removed.append((id.pk, id.sk))
    return writes


def rekeyed(table: TableDefinition, rows: Iterable[Iterable[Any]]) -> list[Cells]:
    """Return what `set_keys` takes for each row of `some_rows` that its entity defines otherwise now."""
    changed = []
    for id, entity, body, *derived in rows:
        definition = table.entities.get(entity)
        if definition is None:
            continue
        _, _, _, expires_at, _, *keys = definition.cells(definition.decode(body))
        if [expires_at, *keys] != derived:
            changed.append((expires_at, *keys, id))
    return changed


def last_of_each(operations: Sequence[Operation]) -> tuple[list[Cells], list[KeyOfRow]]:
    """Return the rows to put and the keys to delete, in key order. Of several operations on one item the last one counts."""
    last = {(operation.id.pk, operation.id.sk): operation for operation in operations}
    puts = [each.id.definition.cells(each.entity) for _, each in sorted(last.items(), key=_key) if isinstance(each, Put)]
    return puts, sorted(key for key, each in last.items() if isinstance(each, Delete))


def slice_of(table: TableDefinition, rows: Sequence[Any], ask: Ask) -> Slice:
    """Return what `Layout.slice` found."""
    bodies = [row[1] for row in rows]
    if len(ask.entities) == 1:
        (only,) = ask.entities
        items = decode_alike(table, only, bodies)
    else:
        items = decode_all(table, [row[0] for row in rows], bodies)
    positions: list[Position] = [(row[2],) for row in rows] if ask.span.gsi is None else [(row[2], row[3]) for row in rows]
    return Slice(items, positions, positions[-1] if len(rows) == ask.limit else None)


def chunks(rows: Iterator[Cells]) -> Iterator[list[Cells]]:
    """Yield the rows of a load in lists, after each of which progress is told."""
    while chunk := list(islice(rows, TOLD_EVERY)):
        yield chunk


class Source:
    """The rows of entities that are loaded, rendered as they are asked for. A transaction may have to begin again."""

    def __init__(self, table: TableDefinition, entities: Iterable[Any]) -> None:
        self._table = table
        self._entities = entities
        self._is_used = False

    def rows(self) -> Iterator[Cells]:
        if self._is_used and iter(self._entities) is self._entities:
            raise StoreUnavailable("the load was interrupted, and nothing was loaded: repeat it, with an iterator from its start")
        self._is_used = True
        return (new_cells(self._table.definition_of(entity), entity) for entity in self._entities)


def new_cells(definition: EntityDefinition, entity: Any) -> Cells:
    """Return the row of an item that is loaded, with its first version."""
    return definition.cells(entity if definition.version is None else with_next_version(definition, entity))


def _key(pair: tuple[KeyOfRow, Operation]) -> KeyOfRow:
    return pair[0]
