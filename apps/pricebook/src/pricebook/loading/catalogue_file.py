"""A catalogue in a file: prices as imports and exports have them, of stores that do not exist yet."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from pricebook.bulk.limits import BulkLimits
from pricebook.bulk.lines import LineSplitter
from pricebook.bulk.price_file import reader_of
from pricebook.bulk.price_line import PriceLine, Refusal
from pricebook.errors import InvalidField
from pricebook.loading.loader import CatalogueStore, loaded_value
from pricebook.model import ALL, PriceRow

READ_AT_A_TIME = 1 << 20  # bytes


class CatalogueFile:
    """Reads the file twice: first to check every line and to find the stores, then to load the prices."""

    def __init__(self, path: Path, *, tz: str = "UTC", currency: str = "") -> None:
        self._path = path
        self._tz = tz
        self._currency = currency
        self._channels: dict[str, set[str]] = {}
        self._count = 0
        for each in self._lines():
            if isinstance(each, Refusal):
                raise InvalidField("file", f"line {each.line:,} {each.reason}; nothing was loaded")
            if each.amount is None:
                raise InvalidField("file", f"line {each.line:,} has no amount, and a new product needs one; nothing was loaded")
            self._channels.setdefault(each.key.store, {ALL}).add(each.key.channel)
            self._count += 1

    def __len__(self) -> int:
        return self._count

    def stores(self) -> Iterator[CatalogueStore]:
        for store, channels in sorted(self._channels.items()):
            yield CatalogueStore(store, self._tz, channels=frozenset(channels))

    def prices(self, from_at: datetime) -> Iterator[PriceRow]:
        for each in self._lines():
            if isinstance(each, PriceLine) and each.amount is not None:
                yield each.key.new_row({from_at: loaded_value(each.amount.minor, each.amount.currency)})

    def _lines(self) -> Iterator[PriceLine | Refusal]:
        limits = BulkLimits()
        reader = reader_of("csv" if self._path.suffix.lower() == ".csv" else "ndjson", self._currency, limits)
        splitter = LineSplitter(limits.line)
        try:
            with self._path.open("rb") as file:
                while piece := file.read(READ_AT_A_TIME):
                    for line in splitter.feed(piece):
                        yield from reader.read(line)
        except OSError as error:
            raise InvalidField("file", f"{self._path} cannot be read: {error.strerror}") from None
        for line in splitter.end():
            yield from reader.read(line)
        reader.end()
