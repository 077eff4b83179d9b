"""The changes of prices that are still to come, each with what the price is before and after it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from pricebook.model import PriceKey
from pricebook.money import Money
from pricebook.pages.amounts import direction
from pricebook.timelines.spans import Span


class Step(NamedTuple):
    """A price that changes at an instant. `ends`: the price before it was for a time, and that is over."""

    at: datetime
    key: PriceKey
    before: Money | None
    after: Money | None
    edition: int | None
    ends: bool
    until: datetime | None

    @property
    def direction(self) -> str:
        return direction(self.before, self.after)


class StepGroup(NamedTuple):
    """Prices of a store that change together."""

    at: datetime
    edition: int | None
    ends: bool
    steps: list[Step]

    @property
    def size(self) -> int:
        return len(self.steps)

    def count_of(self, direction: str) -> int:
        return sum(1 for step in self.steps if step.direction == direction)


def steps_of(key: PriceKey, spans: Sequence[Span], now: datetime) -> list[Step]:
    """Return what becomes of a price after now."""
    found = []
    before: Span | None = None
    for span in spans:
        if span.from_at > now and not (before is not None and before.amount == span.amount):
            ends = before is not None and before.until == span.from_at
            amount = None if before is None else before.amount
            found.append(Step(span.from_at, key, amount, span.amount, None if ends else span.edition, ends, span.until))
        before = span
    return found


def grouped(steps: Iterable[Step]) -> list[StepGroup]:
    """Return steps by what they belong to, in the order of time."""
    groups: dict[tuple[datetime, int | None, bool], StepGroup] = {}
    for step in sorted(steps, key=lambda each: (each.at, each.edition or 0, each.key)):
        group = groups.setdefault((step.at, step.edition, step.ends), StepGroup(step.at, step.edition, step.ends, []))
        group.steps.append(step)
    return list(groups.values())


def next_steps(spans: Mapping[PriceKey, Sequence[Span]], now: datetime) -> dict[PriceKey, Step]:
    """Return the next change of each price that has one."""
    return {key: steps[0] for key, each in spans.items() if (steps := steps_of(key, each, now))}
