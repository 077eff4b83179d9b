"""Random histories of change sets in two stores, and an oracle that knows no editions: it lists who said what, from when on.

Decisions are made at odd milliseconds, and for whole seconds. So no two count from the same instant unless somebody asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

from change_desk import APPROVER, ChangeDesk, Prices
from pricebook.access.caller import Caller
from pricebook.errors import NotAllowed
from tickler.table import MISSING

SECOND = timedelta(seconds=1)
PRODUCTS = ("P1", "P2")
OTHER = Caller("otto", APPROVER.roles)


@dataclass
class Said:
    """What an approval says of a store: prices that count from one instant until another."""

    change_set: str
    order: int
    slot: datetime | None  # that somebody has asked for
    from_at: datetime
    prices: Prices
    until: datetime | None
    to_at: datetime | None = None

    def counts_at(self, at: datetime) -> bool:
        ends = [each for each in (self.until, self.to_at) if each is not None]
        return self.from_at <= at < min(ends, default=at + SECOND)

    @property
    def ever_counts(self) -> bool:
        return self.to_at is None or self.from_at < self.to_at


@dataclass
class History:
    desk: ChangeDesk
    random: Random
    name: str
    said: dict[str, list[Said]] = field(default_factory=dict)
    when: dict[str, tuple[datetime | None, datetime | None]] = field(default_factory=dict)
    prices: dict[str, dict[str, Prices]] = field(default_factory=dict)
    order: int = 0
    wrong: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    @property
    def stores(self) -> tuple[str, str]:
        return f"{self.name}-a", f"{self.name}-b"

    async def run(self, steps: int) -> None:
        for store in self.stores:
            await self.desk.book.switch.open_store(store)
            self.said[store] = []
        actions = [self.make, self.make, self.approve, self.approve, self.approve, self.settle, self.withdraw, self.roll_back]
        for _ in range(steps):
            await self.random.choice(actions)()
            self.desk.clock.advance(self.random.choice((0, 1, 1, 3, 10, 60, 100_000)))
            self.desk.clock.advance(0.001 if self._now().microsecond else 0.5)
            await self.look()

    async def make(self) -> None:
        """Submit a change set for some prices."""
        now = self._now().replace(microsecond=0)
        at = self.random.choice((None, *(now + n * SECOND for n in (-5, 1, 5, 20, 20, 100))))
        until = self.random.choice((None, None, now + 90_000 * SECOND))
        stores = self.random.sample(self.stores, self.random.randint(1, 2))
        prices: dict[str, Prices] = {
            store: {product: self.random.choice((None, *range(1, 9))) for product in self._some_products()} for store in stores
        }
        found = await self.desk.submitted(prices, at=at, until_at=until)
        self.when[found.id], self.prices[found.id] = (at, until), prices

    async def approve(self) -> None:
        id = await self._pick("submitted")
        if id is None:
            return
        at, until = self.when[id]
        conflict = self._conflicts(id)
        try:
            await self.desk.approve(id)
        except NotAllowed as error:
            self._expect(conflict is not None or (until is not None and until <= self._now() + 60 * SECOND), f"{id}: {error}")
            self._expect(conflict is None or conflict in str(error), f"{error} does not name {conflict}")
            return
        found = await self.desk.carried(id)
        self._expect(conflict is None and found.state == "approved", f"{id} is {found.state}: {found.refused}")
        now, margin = self._now(), self.desk.timing.margin
        self.order += 1
        is_wanted = at is not None and at >= now + margin
        from_at = now + margin if at is None else at if is_wanted else now + self.desk.timing.buffer
        for store, prices in self.prices[id].items():
            self.said[store].append(Said(id, self.order, at if is_wanted else None, from_at, prices, until))
        self.done.append("approve")

    async def withdraw(self) -> None:
        id = await self._pick("approved")
        if id is None:
            return
        act = self.random.choice((self.desk.change_sets.unapprove, self.desk.change_sets.cancel))
        await act(APPROVER, id)
        found = await self.desk.carried(id)
        self._expect(found.state in ("submitted", "cancelled"), f"{id} is {found.state}")
        self._end(id)
        self.done.append("withdraw")

    async def roll_back(self) -> None:
        id = await self._pick("approved", "settled")
        if id is None:
            return
        made = await self.desk.change_sets.roll_back(APPROVER, id)
        await self.desk.change_sets.approve(OTHER, made.id, rev=made.rev)
        await self.desk.carried(made.id)
        found = await self.desk.get(id)
        self._expect((found.state, found.superseded_by) == ("superseded", made.id), f"{id} is {found.state}")
        self._end(id)
        self.done.append("roll_back")

    async def settle(self) -> None:
        await self.desk.settle(self.random.choice(self.stores))
        self.done.append("settle")

    async def look(self) -> None:
        """Compare what readers see now with the oracle."""
        now = self._now()
        for store in self.stores:
            shown, expected = await self.desk.shown(store), self._prices_at(store, now)
            self._expect(shown == expected, f"{store} shows {shown} at {now}, and should show {expected}")

    async def look_ahead(self) -> None:
        """Compare what readers will see at each instant at which something changes."""
        points = {each for said in self.said.values() for one in said for each in (one.from_at, one.to_at, one.until) if each}
        for at in sorted(each for each in points if each > self._now()):
            self.desk.clock.set(at)
            await self.look()

    def _prices_at(self, store: str, at: datetime) -> dict[str, int]:
        found: dict[str, int] = {}
        for product in PRODUCTS:
            counting = [each for each in self.said[store] if product in each.prices and each.counts_at(at)]
            last = max(counting, key=lambda each: (each.from_at, each.order), default=None)
            if last is not None and (minor := last.prices[product]) is not None:
                found[product] = minor
        return found

    def _conflicts(self, id: str) -> str | None:
        """Return the change set that has a price of this one and its instant."""
        at, _ = self.when[id]
        if at is None or at < self._now() + self.desk.timing.margin:
            return None
        for store, prices in sorted(self.prices[id].items()):
            for other in self.said[store]:
                if other.slot == at and other.ever_counts and prices.keys() & other.prices.keys():
                    return other.change_set
        return None

    def _end(self, id: str) -> None:
        soonest = self._now() + self.desk.timing.margin
        for said in self.said.values():
            for each in said:
                if each.change_set == id and each.to_at is None:
                    each.to_at = max(soonest, each.from_at) if each.from_at >= soonest else soonest

    async def _pick(self, *states: str) -> str | None:
        found = [await self.desk.get(id) for id in self.when]
        ids = [each.id for each in found if each.state in states and each.superseded_by is MISSING]
        return self.random.choice(ids) if ids else None

    def _some_products(self) -> list[str]:
        return self.random.sample(PRODUCTS, self.random.randint(1, 2))

    def _now(self) -> datetime:
        return self.desk.book.now()

    def _expect(self, is_so: bool, otherwise: str) -> None:
        if not is_so:
            self.wrong.append(f"{self.name} after {len(self.done)}: {otherwise}")
