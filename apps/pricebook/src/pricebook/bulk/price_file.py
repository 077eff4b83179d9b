"""Reads an upload in batches of lines, from wherever an earlier process has stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import NamedTuple, Protocol

from pricebook.bulk.csv_reader import CsvReader
from pricebook.bulk.limits import BulkLimits
from pricebook.bulk.lines import LineSplitter, Position, TextLine
from pricebook.bulk.ndjson import NdjsonReader
from pricebook.bulk.price_line import PriceLine, Refusal
from pricebook.bulk.uploads import Uploads
from pricebook.model import BulkFormat, BulkJob


class LineReader(Protocol):
    """Reads the lines of one format, in order."""

    @property
    def is_open(self) -> bool:
        """Tell whether what the last line began goes on in the next one."""

    @property
    def has_begun(self) -> bool:
        """Tell whether it has read what it needs of the beginning of a file to read any other part of it."""

    def read(self, line: TextLine) -> Iterator[PriceLine | Refusal]: ...

    def end(self) -> None:
        """Raise `InvalidField` if the file cannot end here."""


class Batch(NamedTuple):
    """What the next lines mean. Reading may go on at `end`."""

    found: list[PriceLine | Refusal]
    end: Position


def reader_of(format: BulkFormat, currency: str, limits: BulkLimits) -> LineReader:
    return CsvReader(currency, limits) if format == "csv" else NdjsonReader(currency, limits)


class PriceFile:
    def __init__(self, uploads: Uploads, limits: BulkLimits) -> None:
        self._uploads = uploads
        self._limits = limits

    async def batches(self, job: BulkJob, since: Position) -> AsyncIterator[Batch]:
        """Yield what the lines from a position on mean. The last batch ends where the file does."""
        reader = reader_of(job.options.format, job.options.currency, self._limits)
        if since.offset:
            await self._begin(reader, job)
        found: list[PriceLine | Refusal] = []
        begun = end = since
        async for line in self._lines(job, since):
            found += reader.read(line)
            end = line.end
            if end.line - begun.line >= self._limits.batch and not reader.is_open:
                yield Batch(found, end)
                found, begun = [], end
                await asyncio.sleep(0)  # reading may not have waited for anything, and others have to run
        reader.end()
        yield Batch(found, end)

    async def _begin(self, reader: LineReader, job: BulkJob) -> None:
        """Let a reader that begins in the middle of a file see how the file begins."""
        async for line in self._lines(job, Position()):
            if reader.has_begun:
                return
            for _ in reader.read(line):
                pass

    async def _lines(self, job: BulkJob, since: Position) -> AsyncIterator[TextLine]:
        splitter = LineSplitter(self._limits.line, since)
        async for piece in self._uploads.read(job.upload, since.offset):
            for line in splitter.feed(piece):
                yield line
        for line in splitter.end():
            yield line
