"""Says what lines would do: which may not be imported, and which change nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from pricebook.access.caller import Caller
from pricebook.bulk.moments import in_zone, read_moment
from pricebook.bulk.price_line import PriceLine, Refusal
from pricebook.bulk.store_zones import StoreZones
from pricebook.editions.pages import PriceNode
from pricebook.editions.timing import Now
from pricebook.model import BulkCounts, BulkJob, PriceKey
from tickler.table import OpenTable


class PricesAt(Protocol):
    async def as_of_many(self, keys: Sequence[PriceKey], at: datetime) -> list[PriceNode | None]: ...


class Allowed(NamedTuple):
    lines: list[PriceLine]
    refusals: list[Refusal]


class Compared(NamedTuple):
    """Lines that change a price, and how many do and do not."""

    changes: list[PriceLine]
    counts: BulkCounts


class Comparing:
    """Looks at the stores and the prices of one table."""

    def __init__(self, db: OpenTable, prices: PricesAt, now: Now) -> None:
        self._zones = StoreZones(db)
        self._prices = prices
        self._now = now

    async def allowed(self, found: Iterable[PriceLine | Refusal], caller: Caller) -> Allowed:
        """Refuse lines of stores that do not exist for a caller."""
        lines: list[PriceLine] = []
        refusals: list[Refusal] = []
        for each in found:
            if isinstance(each, Refusal):
                refusals.append(each)
            elif not caller.may_see(each.key.store):
                refusals.append(_unknown(each))
            else:
                lines.append(each)
        zones = await self._zones.of({line.key.store for line in lines})
        refusals += [_unknown(line) for line in lines if line.key.store not in zones]
        return Allowed([line for line in lines if line.key.store in zones], refusals)

    async def compare(self, job: BulkJob, lines: Sequence[PriceLine]) -> Compared:
        """Leave out lines whose price would be the same anyway when they are to count. That of ALL is not a channel's own."""
        giving = [line for line in lines if not line.keeps]
        changes: list[PriceLine] = []
        for at, some in (await self._by_instant(job, giving)).items():
            before = await self._prices.as_of_many([line.key for line in some], at)
            changes += [line for line, node in zip(some, before, strict=True) if _changes(line, node)]
        changes.sort(key=lambda line: line.line)
        kept, unchanged = len(lines) - len(giving), len(giving) - len(changes)
        return Compared(changes, BulkCounts(changes=len(changes), unchanged=unchanged, kept=kept))

    async def _by_instant(self, job: BulkJob, lines: Sequence[PriceLine]) -> dict[datetime, list[PriceLine]]:
        moment, now = read_moment("effective", job.options.effective), self._now()
        zones = await self._zones.of({line.key.store for line in lines})
        instants = {tz: in_zone(moment, tz, now) for tz in {zones[line.key.store] for line in lines}}
        found: dict[datetime, list[PriceLine]] = {}
        for line in lines:
            found.setdefault(instants[zones[line.key.store]], []).append(line)
        return found


def _changes(line: PriceLine, before: PriceNode | None) -> bool:
    own = before.amount if before is not None and before.channel == line.key.channel else None
    return own != line.amount


def _unknown(line: PriceLine) -> Refusal:
    return Refusal(line.line, f"there is no store {line.key.store[:40]!r}: check its name")
