"""Random histories of one store without a database: what was decided, when, and what readers saw.

It calls the same pure functions as the switch, and keeps a log of the decisions for the oracle in `painted_prices`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

from book import MARCH
from painted_prices import Amount, Decision, paint
from pricebook.editions import transitions
from pricebook.editions.evaluate import value_at
from pricebook.editions.settled_row import Settlement, settled_row
from pricebook.editions.slots import edition_to_stage, how_to_stage
from pricebook.editions.timing import Timing
from pricebook.errors import NotAllowed
from pricebook.model import Edition, EditionState, Head, PriceKey, Value
from tickler.table import MISSING, evolve

SECOND = timedelta(seconds=1)
MARGIN, BUFFER, RETENTION = 2, 5, 10  # seconds
TIMING = Timing(margin=MARGIN * SECOND, buffer=BUFFER * SECOND, retention=RETENTION * SECOND)
PRODUCTS = ("P1", "P2")
GRID = 4  # seconds between the instants that people choose, so that editions often meet


@dataclass(frozen=True)
class Seen:
    """What a reader saw at second `read_at`, of a traversal that began at second `at`."""

    product: str
    at: int
    read_at: int
    amount: Amount


@dataclass
class History:
    random: Random
    now: int = 0
    head: Head = field(default_factory=lambda: Head(store="1"))
    rows: dict[str, dict[datetime, Value]] = field(default_factory=lambda: {product: {} for product in PRODUCTS})
    past: dict[str, dict[datetime, Value]] = field(default_factory=lambda: {product: {} for product in PRODUCTS})
    decisions: dict[int, Decision] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    settled: set[int] = field(default_factory=set)

    def run(self, steps: int) -> None:
        """Do random things, some of which are refused, and read meanwhile."""
        actions = [*[self.open] * 3, *[self.stage] * 5, *[self.seal] * 4, *[self.move] * 2, *[self.settle] * 3]
        actions += [self.cancel, self.roll_back]
        for _ in range(steps):
            try:
                self.random.choice(actions)()
            except NotAllowed:
                self.read()
            self.read()
            self.now += self.random.choice((0, 0, 0, 1, 1, 2, 4))

    def mistakes(self) -> list[str]:
        """Compare what was seen, and what can be read now of every second, with the oracle."""
        painted = {product: paint(self.decisions.values(), product, self.now + 1) for product in PRODUCTS}
        for product in PRODUCTS:
            for at in range(self.now + 1):
                self.seen.append(Seen(product, at, self.now, self.amount(product, at)))
        return [
            f"{each} should be {painted[each.product][each.at]}"
            for each in self.seen
            if each.amount != painted[each.product][each.at]
        ]

    def open(self) -> None:
        self._open(max(self.now, self._on_grid(-3, 12)), None)

    def stage(self) -> None:
        number = self._pick("open")
        for product in self.random.sample(PRODUCTS, self.random.randint(1, len(PRODUCTS))):
            amount = self.random.choice((None, 1, 2, 3, 4, 5, 6, 7, 8, 9))
            until = self.random.choice((None, None, self._on_grid(0, 24)))
            value = Value(
                edition=number,
                amount=MISSING if amount is None else amount,
                currency=MISSING if amount is None else "EUR",
                until=MISSING if until is None else instant(until),
            )
            self._stage(number, product, value)
            self.decisions[number].prices[product] = (amount, until)

    def seal(self) -> None:
        number = self._pick("open")
        edition = self.head.editions[number]
        slot = second(edition.slot)
        from_at = self.random.choice((None, None, self._on_grid(-3, 12)))
        after = transitions.sealed(edition, None if from_at is None else instant(from_at), instant(self.now), TIMING)
        wanted = slot if from_at is None else from_at
        if wanted < self.now + MARGIN:
            wanted = max(slot, self.now + (MARGIN if from_at is None else BUFFER))
        assert second(after.from_at) == wanted
        self._set(number, after)
        self.decisions[number].from_at = wanted

    def move(self) -> None:
        number, to = self._pick("sealed"), self._on_grid(0, 16)
        self._set(number, transitions.moved(self.head.editions[number], instant(to), instant(self.now), TIMING))
        assert to >= self.now + MARGIN
        self.decisions[number].from_at = to

    def cancel(self) -> None:
        number = self._pick("sealed")
        self._set(number, transitions.cancelled(self.head.editions[number], instant(self.now), TIMING))
        self.decisions[number].to_at = self.now + MARGIN
        if (self.decisions[number].from_at or 0) >= self.now + MARGIN:
            self.decisions[number].from_at = None  # it never counts

    def roll_back(self) -> None:
        """Take a settled edition back, of which rows may have given up what was before it."""
        if not self.settled:
            return
        retracted = self.random.choice(sorted(self.settled))
        number = self._open(self.now, retracted)
        for product in PRODUCTS:
            if any(value.settled == retracted for value in self.rows[product].values()):
                self.rows[product] = {**self.past[product], **self.rows[product]}
                self._stage(number, product, Value(edition=number, retracts=retracted))
                self.decisions[number].retracted.add(product)
        after = transitions.sealed(self.head.editions[number], None, instant(self.now), TIMING)
        self._set(number, after)
        self.decisions[number].from_at = self.now + MARGIN

    def settle(self) -> None:
        """Settle some rows, and if those are all, let the head forget the editions: a process may stop in between."""
        editions = self.head.editions
        for number, edition in editions.items():
            if edition.state == "sealed" and transitions.is_due(edition, instant(self.now)):
                self._set(number, transitions.settling(edition))
        due = {
            number: edition
            for number, edition in self.head.editions.items()
            if edition.state == "settling" or (edition.state == "open" and transitions.is_due(edition, instant(self.now)))
        }
        others = {number: edition for number, edition in self.head.editions.items() if number not in due}
        settlement = Settlement(due, others, self.head.next_edition, instant(self.now - RETENTION))
        for product in self.random.sample(PRODUCTS, self.random.randint(1, len(PRODUCTS))):
            if settlement.concerns(self.rows[product]):
                row = settled_row(self.rows[product], settlement)
                self.rows[product] = row.values
                self.past[product].update(row.past)
            self.read()
        if not any(settlement.concerns(row) for row in self.rows.values()):
            self.settled |= {number for number, edition in due.items() if transitions.ever_counts(edition)}
            self.head = evolve(self.head, editions=others)

    def read(self) -> None:
        """Read as a traversal does that began a while ago."""
        at = max(0, self.now - self.random.randint(0, RETENTION))
        product = self.random.choice(PRODUCTS)
        self.seen.append(Seen(product, at, self.now, self.amount(product, at)))

    def amount(self, product: str, at: int) -> Amount:
        values = self.rows[product]
        if self.now - at > RETENTION:
            values = {**self.past[product], **values}
        counting = value_at(values, self.head.editions, instant(at))
        return None if counting is None or counting.value.amount is MISSING else counting.value.amount

    def _open(self, slot: int, retracts: int | None) -> int:
        number = self.head.next_edition
        edition = transitions.opened(instant(slot), instant(self.now), MISSING if retracts is None else retracts)
        self.head = evolve(self.head, next_edition=number + 1)
        self._set(number, edition)
        self.decisions[number] = Decision(number, retracts)
        return number

    def _stage(self, number: int, product: str, value: Value) -> None:
        slot = edition_to_stage(self.head, number, instant(self.now - RETENTION)).slot
        key = PriceKey("1", "ALL", "Base", product)
        if how_to_stage(key, value, self.rows[product].get(slot), self.head) is not None:
            self.rows[product][slot] = value

    def _on_grid(self, low: int, high: int) -> int:
        return (self.now + self.random.randint(low, high)) // GRID * GRID

    def _pick(self, state: EditionState) -> int:
        """Choose an edition, most often one of this state."""
        all_of_them = list(self.head.editions)
        of_state = [number for number, edition in self.head.editions.items() if edition.state == state]
        if not all_of_them:
            raise NotAllowed("there is no edition")
        return self.random.choice(of_state if of_state and self.random.random() < 0.9 else all_of_them)

    def _set(self, number: int, edition: Edition) -> None:
        self.head = evolve(self.head, editions={**self.head.editions, number: edition})


def instant(second: int) -> datetime:
    return MARCH + second * SECOND


def second(at: object) -> int:
    assert isinstance(at, datetime)
    return (at - MARCH) // SECOND
