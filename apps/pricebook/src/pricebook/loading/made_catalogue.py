"""A catalogue of made data: any number of stores and products, the same for the same seed. For the demo, tests and benchmarks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from zlib import crc32

from msgspec import Struct

from pricebook.loading.loader import CatalogueStore, loaded_value
from pricebook.model import ALL, Price, PriceRow

ZONES = ("America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles", "Europe/Berlin", "Asia/Tokyo")
ENDINGS = (9, 49, 79, 99)  # of prices, in minor units


class MadeCatalogue(Struct, frozen=True):
    """`web_every`: every how many products have a price of their own in the channel WEB; 0: none."""

    store_count: int = 200
    product_count: int = 100
    currency: str = "EUR"
    web_every: int = 0
    seed: int = 1

    def __len__(self) -> int:
        return self.store_count * (self.product_count + self._web_count)

    @property
    def _web_count(self) -> int:
        return len(range(0, self.product_count, self.web_every)) if self.web_every else 0

    def store(self, number: int) -> str:
        return f"{10_000 + number}"

    def product(self, number: int) -> str:
        return f"PROD{number:04}"

    def stores(self) -> Iterator[CatalogueStore]:
        channels = frozenset({ALL, "WEB"} if self.web_every else {ALL})
        for number in range(self.store_count):
            yield CatalogueStore(self.store(number), ZONES[number % len(ZONES)], channels=channels)

    def prices(self, from_at: datetime) -> Iterator[PriceRow]:
        """Yield rows in the order of their keys, in which an engine takes them fastest."""
        for store_number in range(self.store_count):
            store = self.store(store_number)
            for number in range(self.product_count):
                yield self._row(store, ALL, number, from_at)
            for number in range(0, self.product_count, self.web_every) if self.web_every else ():
                yield self._row(store, "WEB", number, from_at)

    def amount(self, store: str, channel: str, number: int) -> int:
        """Return a price in minor units: of each product about the same everywhere, and a little less on the web."""
        base = 100 + crc32(f"{self.seed} {number}".encode()) % 9_900
        local = crc32(f"{self.seed} {number} {store}".encode()) % 5 * 100
        return (base + local - (50 if channel != ALL else 0)) // 100 * 100 + ENDINGS[number % len(ENDINGS)]

    def _row(self, store: str, channel: str, number: int, from_at: datetime) -> PriceRow:
        value = loaded_value(self.amount(store, channel, number), self.currency)
        return Price(store=store, channel=channel, type="Base", product=self.product(number), values={from_at: value})
