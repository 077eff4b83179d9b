"""The changes of a table on SQL: rows that triggers write, in the transaction of the change, whoever makes it.

A row with the entity "" stands for changes that were deleted before all consumers had read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tickler.table.engines.change_log import ChangeRecord, ShardRead, shard_of
from tickler.table.engines.sql.layout import Dialect

DELETED = ""  # the entity of a row that stands for deleted changes
MAX_READ_BYTES = 8 * 1024 * 1024  # of images; the change that exceeds it is the last of a read

Positions = Mapping[str, str | None]


class ChangeRow(NamedTuple):
    seq: int
    at_ms: int
    entity: str
    pk: str
    sk: str
    old: bytes | None
    new: bytes | None


class ChangeLogStatements:
    """The text of statements on the changes of one table. `now` is the database's expression for the present millisecond."""

    def __init__(self, dialect: Dialect, table: str, *, seq: str, now: str) -> None:
        finished = dialect.finished
        self.name = f"{table}.stream"
        self.table = f'{dialect.place}"{self.name}"'
        columns = [
            f"seq {seq}",
            f"at_ms {dialect.integer} NOT NULL",
            f"entity {dialect.text} NOT NULL",
            f"pk {dialect.text} NOT NULL",
            f"sk {dialect.text} NOT NULL",
            f"old {dialect.bytes}",
            f"new {dialect.bytes}",
        ]
        self.create = finished(f"CREATE TABLE IF NOT EXISTS {self.table} ({', '.join(columns)})")
        self.insert = finished(f"INSERT INTO {self.table} (at_ms, entity, pk, sk, old, new)")
        self.keys = finished(f"SELECT seq, pk FROM {self.table} WHERE seq > $1 AND entity <> '{DELETED}' ORDER BY seq LIMIT $2")
        self.oldest = finished(f"SELECT seq, entity, at_ms < {now} - $1 FROM {self.table} WHERE seq > $2 ORDER BY seq LIMIT $3")
        self.delete_read = finished(
            f"""
            DELETE FROM {self.table} WHERE seq IN (
                SELECT seq FROM {self.table} WHERE seq <= $1 ORDER BY seq LIMIT $2
            )
            """
        )
        self.delete_before = finished(f"DELETE FROM {self.table} WHERE seq < $1")
        self.mark_deleted = finished(f"UPDATE {self.table} SET entity = '{DELETED}', old = NULL, new = NULL WHERE seq = $1")


def first_of(positions: Positions) -> int:
    """Return the number behind which to read: the least of several positions."""
    return min((int(position or 0) for position in positions.values()), default=0)


def shard_reads(rows: Iterable[ChangeRow], positions: Positions, reached: int) -> list[ShardRead]:
    """Sort rows into shards. `reached` is the number up to which all changes are among them."""
    records: dict[str, list[ChangeRecord]] = {shard: [] for shard in positions}
    behind = {shard: int(position or 0) for shard, position in positions.items()}
    lost = set()
    for row in rows:
        if row.entity == DELETED:
            lost |= {shard for shard, position in positions.items() if position is not None and int(position) < row.seq}
            continue
        shard = shard_of(row.pk)
        if shard in records and row.seq > behind[shard]:
            records[shard].append(ChangeRecord(shard, str(row.seq), *row[1:]))
    return [ShardRead(shard, found, str(max(reached, behind[shard])), lost=shard in lost) for shard, found in records.items()]


def count_waiting(keys: Iterable[tuple[int, str]], positions: Positions) -> int:
    behind = {shard: int(position or 0) for shard, position in positions.items()}
    return sum(seq > behind[shard] for seq, pk in keys if (shard := shard_of(pk)) in behind)


def read_by_all(positions: Sequence[Positions]) -> int:
    """Return the number up to which all consumers have read; 0 without any."""
    return min((first_of(each) for each in positions), default=0)


def aged(rows: Iterable[tuple[int, str, bool]]) -> tuple[int, int]:
    """Return the number up to which the oldest changes are too old to be kept, and how many they are; 0, 0 if none is."""
    last = count = 0
    for seq, entity, is_old in rows:
        if not is_old:
            break
        last, count = seq, count + (entity != DELETED)
    return (last, count) if count else (0, 0)
