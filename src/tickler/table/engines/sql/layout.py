"""The layout of a table in an SQL database, and the text of its statements.

Statements mark their parameters `$1`, `$2` and so on, each of them once and in order, and the table's schema `{schema}`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple

from tickler.errors import InvalidInput, SchemaMismatch, SchemaMissing
from tickler.table.definition import TableDefinition
from tickler.table.engines.engine import THE_STREAM, THE_TABLE, Ask
from tickler.table.selection import Span

MAX_NAME = 63  # characters of a name on PostgreSQL

REMEDY = "run `tickler table create`, or open it with create=True"


class Dialect(NamedTuple):
    """Where SQLite and PostgreSQL differ. `finished` turns a text with `$1` and `{schema}` into one that the driver takes."""

    id: str
    text: str
    integer: str
    bytes: str
    no_bytes: str  # a value of that type, and empty
    distinct: str
    place: str  # the schema with its dot
    tie: str  # what an index needs behind its sort key, so that it has the order of (sort key, id)
    finished: Callable[[str], str]


class Index(NamedTuple):
    name: str
    drop: str
    create: str


class Found(NamedTuple):
    """What there is of a table in a database: names of columns and indexes, and whether its changes are kept."""

    columns: Sequence[str]
    indexes: Sequence[str]
    stream: bool


class _Shape(NamedTuple):
    """What the text of a read depends on. Values are not part of it, so that prepared statements are used again."""

    gsi: str | None
    has_low: bool
    high: str  # the comparison, "" if there is no bound
    has_start: bool
    backwards: bool
    entities: frozenset[str]


class Layout:
    """The SQL table of a table: an item is a row, with both halves of its key in each index, or null for both."""

    def __init__(self, table: TableDefinition, dialect: Dialect) -> None:
        if table.name.startswith(("tickler_", "sqlite_", "pg_")):
            raise InvalidInput(f"table {table.name!r}: names with this beginning are taken in SQL databases: choose another")
        self._dialect = dialect
        self._name = table.name
        self._stream = table.stream
        self._texts: dict[tuple[str, _Shape], str] = {}
        self.table = f'{dialect.place}"{table.name}"'
        self.gsis = tuple(table.gsis)
        self.keys = tuple(f"{gsi}{half}" for gsi in table.gsis for half in ("pk", "sk"))
        self.columns = ("pk", "sk", "entity", "expires_at", "body", *self.keys)
        listed = ", ".join(self.columns)
        changing = self.columns[2:]
        self.get = self.finished(f"SELECT entity, expires_at, body FROM {self.table} WHERE pk = $1 AND sk = $2")
        self.select_row = self.finished(f"SELECT {listed} FROM {self.table} WHERE pk = $1 AND sk = $2")
        self.conflict = f"""
            ON CONFLICT (pk, sk) DO UPDATE SET {", ".join(f"{column} = excluded.{column}" for column in changing)}
            WHERE ({", ".join(f"stored.{column}" for column in changing)})
                {dialect.distinct} ({", ".join(f"excluded.{column}" for column in changing)})
        """
        marks = ", ".join(f"${n}" for n, _ in enumerate(self.columns, 1))
        self.insert = self.finished(f"INSERT INTO {self.table} AS stored ({listed}) VALUES ({marks})")
        self.upsert = f"{self.insert}{self.conflict}"
        self.delete = self.finished(f"DELETE FROM {self.table} WHERE pk = $1 AND sk = $2")

    def create_table(self) -> str:
        """Return the statement for a new table. The body is its last column, since SQLite reads a row from its start."""
        dialect = self._dialect
        columns = [
            f"id {dialect.id}",
            f"pk {dialect.text} NOT NULL",
            f"sk {dialect.text} NOT NULL",
            f"entity {dialect.text} NOT NULL",
            f"expires_at {dialect.integer}",
            *(column for gsi in self.gsis for column in self.columns_of(gsi)),
            f"body {dialect.bytes} NOT NULL",
        ]
        return self.finished(f"CREATE TABLE IF NOT EXISTS {self.table} ({', '.join(columns)})")

    def columns_of(self, gsi: str) -> tuple[str, str]:
        text = self._dialect.text
        return f"{gsi}pk {text}", f"{gsi}sk {text} CHECK (({gsi}pk IS NULL) = ({gsi}sk IS NULL))"

    def add_columns(self, found: Iterable[str]) -> Iterator[str]:
        """Yield the statements that add the columns of indexes that a table lacks."""
        for gsi in self.missing_gsis(found):
            for column in self.columns_of(gsi):
                yield self.finished(f"ALTER TABLE {self.table} ADD COLUMN {column}")

    def missing_gsis(self, columns: Iterable[str]) -> list[str]:
        present = set(columns)
        return [gsi for gsi in self.gsis if not {f"{gsi}pk", f"{gsi}sk"} <= present]

    def unique_index(self) -> Index:
        return self._index("key", "(pk, sk)", unique=True)

    def secondary_indexes(self) -> list[Index]:
        tie = self._dialect.tie
        return [
            *(self._index(f"gsi.{gsi}", f"({gsi}pk, {gsi}sk{tie}) WHERE {gsi}pk IS NOT NULL") for gsi in self.gsis),
            self._index("expires_at", "(expires_at) WHERE expires_at IS NOT NULL"),
        ]

    def lacking(self, store: str, found: Found) -> list[str]:
        """Return the names of what a table lacks. No columns: there is no table. `SchemaMismatch` if it is somebody else's."""
        columns, stream = found.columns, [THE_STREAM] if self._stream and not found.stream else []
        if not columns:
            return [THE_TABLE, *self.gsis, *stream]
        if foreign := {"id", *self.columns} - set(self.keys) - set(columns):
            raise SchemaMismatch(
                store,
                f"the table {self._name!r} is not of this toolkit: it has no column {min(foreign)!r}: name yours otherwise",
                self._name,
            )
        present, without_columns = set(found.indexes), self.missing_gsis(columns)
        names = ["the unique index of its key", *self.gsis, "the index on expires_at"]
        all_indexes = [self.unique_index(), *self.secondary_indexes()]
        return [
            name for name, index in zip(names, all_indexes, strict=True) if index.name not in present or name in without_columns
        ] + stream

    def check(self, store: str, lacking: Sequence[str]) -> None:
        """Raise `SchemaMissing` or `SchemaMismatch` if a table lacks something."""
        if THE_TABLE in lacking:
            raise self.missing(store)
        if lacking:
            raise SchemaMismatch(store, f"the table {self._name!r} lacks {', '.join(lacking)}: {REMEDY}", lacking[0])

    def missing(self, store: str) -> SchemaMissing:
        return SchemaMissing(store, self._name)

    def some_rows(self, limit: int, ending: str = "") -> str:
        """Return the statement that reads rows behind an id, for `rekeyed`."""
        columns = ", ".join(["id", "entity", "body", "expires_at", *self.keys])
        return self.finished(f"SELECT {columns} FROM {self.table} WHERE id > $1 ORDER BY id LIMIT {limit} {ending}")

    def set_keys(self) -> str:
        derived = ("expires_at", *self.keys)
        sets = ", ".join(f"{column} = ${n}" for n, column in enumerate(derived, 1))
        return self.finished(f"UPDATE {self.table} SET {sets} WHERE id = ${len(derived) + 1}")

    def larger_than(self, rows: int) -> str:
        return self.finished(f"SELECT count(*) > {rows} FROM (SELECT 1 FROM {self.table} LIMIT {rows + 1}) AS counted")

    def slice(self, ask: Ask, now_ms: int) -> tuple[str, list[Any]]:
        """Return the statement of a slice: rows of entity, body, sort key, and in an index the id."""
        span, start = ask.span, ask.start
        low, high = span.low, span.high
        if start is not None:
            low, high = (low, None) if ask.backwards else (None, high)  # the start is the narrower bound
        shape = self._shape(span, low, high, ask)
        text = self._texts.get(("slice", shape))
        if text is None:
            text = self._texts["slice", shape] = self.finished(self._slice_text(shape))
        range_values = [value for value in (low, high) if value is not None]
        if start is None:
            return text, [span.partition, *range_values, now_ms, ask.limit]
        if span.gsi is None:
            return text, [span.partition, *range_values, start[0], now_ms, ask.limit]
        return text, [span.partition, start[0], start[1], now_ms, span.partition, *range_values, start[0], now_ms, ask.limit]

    def count(self, span: Span, entities: frozenset[str], now_ms: int) -> tuple[str, list[Any]]:
        shape = self._shape(span, span.low, span.high, Ask(span, 0, entities))
        text = self._texts.get(("count", shape))
        if text is None:
            conditions = self._conditions(shape, count(1), [])
            text = self._texts["count", shape] = self.finished(f"SELECT count(*) FROM {self.table} WHERE {conditions}")
        return text, [span.partition, *(value for value in (span.low, span.high) if value is not None), now_ms]

    def _shape(self, span: Span, low: str | None, high: str | None, ask: Ask) -> _Shape:
        bound = "" if high is None else "<=" if span.high_included else "<"
        return _Shape(span.gsi, low is not None, bound, ask.start is not None, ask.backwards, ask.entities)

    def _slice_text(self, shape: _Shape) -> str:
        """Read behind a position of an index in two steps, since SQLite does not search an index for `(sort key, id) > (…)`."""
        sort = "sk" if shape.gsi is None else f"{shape.gsi}sk"
        behind = "<" if shape.backwards else ">"
        direction = " DESC" if shape.backwards else ""
        chosen = f"SELECT entity, body, {sort}{'' if shape.gsi is None else ', id'} FROM {self.table} WHERE"
        order = f"{sort}{direction}{'' if shape.gsi is None else f', id{direction}'}"
        numbers = count(1)
        equal = ""
        if shape.has_start and shape.gsi is not None:
            same_sort = shape._replace(has_low=False, high="")
            equal = f"{chosen} {self._conditions(same_sort, numbers, [f'{sort} =', f'id {behind}'])} UNION ALL "
        start = [f"{sort} {behind}"] if shape.has_start else []
        return f"{equal}{chosen} {self._conditions(shape, numbers, start)} ORDER BY {order} LIMIT ${next(numbers)}"

    def _conditions(self, shape: _Shape, numbers: Iterator[int], start: Sequence[str]) -> str:
        prefix = "" if shape.gsi is None else shape.gsi
        compared = [f"{prefix}pk ="]
        if shape.has_low:
            compared.append(f"{prefix}sk >=")
        if shape.high:
            compared.append(f"{prefix}sk {shape.high}")
        conditions = [f"{each} ${next(numbers)}" for each in (*compared, *start)]
        names = ", ".join(f"'{name}'" for name in sorted(shape.entities))
        alive = f"(expires_at IS NULL OR expires_at > ${next(numbers)})"
        return " AND ".join([*conditions, f"entity IN ({names})", alive])

    def _index(self, part: str, columns: str, *, unique: bool = False) -> Index:
        name = f"{self._name}.{part}"
        if len(name) > MAX_NAME:
            name = f"{name[:40]}.{hashlib.blake2b(name.encode(), digest_size=10).hexdigest()}"
        kind = "UNIQUE INDEX" if unique else "INDEX"
        return Index(
            name,
            self.finished(f'DROP INDEX {self._dialect.place}"{name}"'),
            self.finished(f'CREATE {kind} IF NOT EXISTS "{name}" ON {self.table} {columns}'),
        )

    def finished(self, text: str) -> str:
        return self._dialect.finished(text)
