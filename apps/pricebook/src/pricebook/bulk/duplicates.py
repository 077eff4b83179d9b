"""Finds the lines of a file that are about the same price, however many lines there are.

Each line becomes 16 bytes: a digest of 12 bytes of its key, and its number. Two different keys of 20,000,000 have the same digest
with a probability below 10^-14. Digests are divided into partitions, and what belongs together is in the same one.

A file of one run is compared in memory. For a larger one, each run of lines is written to the table, one item for each partition;
then one partition after the other is read and sorted. So memory holds one run, and later one partition. With the limits as they
are, both have 50,000 lines, which take 5 MB. From 12,800,000 lines on, there are 256 partitions, which get larger: to about 15 MB
for 1 GB of the shortest lines.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from pricebook.model import BulkDigests, BulkJob, PriceKey
from tickler.table import Missing, OpenTable

MIN_PARTITIONS, MAX_PARTITIONS = 4, 256
LINES_OF_A_PARTITION = 50_000
WRITTEN_AT_A_TIME = 16

_DIGEST, _NUMBER = 12, 4  # bytes
_RECORD = _DIGEST + _NUMBER


class Duplicate(NamedTuple):
    """A line, and another one that is about the same price."""

    line: int
    other: int


class Run:
    """Digests of the lines from one checkpoint to the next."""

    def __init__(self, lines: int) -> None:
        """`lines` is how many the whole file has."""
        self._partitions = [bytearray() for _ in range(_partitions(lines))]

    def add(self, key: PriceKey, line: int) -> None:
        names = f"{key.store}\0{key.channel}\0{key.type}\0{key.product}\0{key.combination or ''}"  # none has a NUL
        digest = hashlib.blake2b(names.encode(), digest_size=_DIGEST).digest()
        self._partitions[digest[0] % len(self._partitions)] += digest + line.to_bytes(_NUMBER)

    def items(self, upload: str, number: int, expires_at: datetime | Missing) -> Iterator[BulkDigests]:
        for partition, records in enumerate(self._partitions):
            if records:
                yield BulkDigests(upload=upload, partition=partition, run=number, records=bytes(records), expires_at=expires_at)

    def duplicates(self) -> Iterator[Duplicate]:
        for records in self._partitions:
            yield from _duplicates([records])


class Runs:
    """The digests of a large file, in the table."""

    def __init__(self, db: OpenTable) -> None:
        self._db = db

    async def keep(self, job: BulkJob, run: Run, number: int) -> None:
        """Write a run. Doing that twice is the same as once."""
        items: list[BulkDigests] = []
        for item in run.items(job.upload.id, number, job.expires_at):
            items.append(item)
            if len(items) == WRITTEN_AT_A_TIME:
                await self._db.put_many(items)
                items = []
        await self._db.put_many(items)

    async def duplicates(self, job: BulkJob) -> AsyncIterator[Duplicate]:
        for partition in range(_partitions(job.upload.lines)):
            records = [each.records async for each in self._of(job, partition)]
            for each in _duplicates(records):
                yield each

    async def delete(self, job: BulkJob) -> None:
        for partition in range(_partitions(job.upload.lines)):
            ids = [each.key async for each in self._of(job, partition)]
            if ids:
                await self._db.delete_many(ids)

    async def _of(self, job: BulkJob, partition: int) -> AsyncIterator[BulkDigests]:
        cursor: str | None = None
        while True:
            page = await self._db.query(
                BulkDigests.key(job.upload.id).under(partition), first=WRITTEN_AT_A_TIME, after=cursor, consistent=True
            )
            for item in page.items:
                yield item
            if not page.has_next:
                return
            cursor = page.end


def _partitions(lines: int) -> int:
    return max(MIN_PARTITIONS, min(MAX_PARTITIONS, -(-lines // LINES_OF_A_PARTITION)))


def _duplicates(chunks: Iterable[bytes | bytearray]) -> Iterator[Duplicate]:
    """Yield each line that has a digest that another line has. A line that was written twice is one line."""
    records = sorted({bytes(chunk[n : n + _RECORD]) for chunk in chunks for n in range(0, len(chunk), _RECORD)})
    for _, alike in groupby(records, lambda record: record[:_DIGEST]):
        lines = [int.from_bytes(record[_DIGEST:]) for record in alike]
        for line in lines if len(lines) > 1 else ():
            yield Duplicate(line, lines[1] if line == lines[0] else lines[0])
