"""The oracle: prices by painting a time line, second by second, edition after edition. Written from the rules alone.

It knows nothing of rows, heads, slots or settling. It knows what was decided: which prices an edition has, and when it counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

Amount = int | None


@dataclass
class Decision:
    """An edition as people decided it, in seconds. One without `from_at` never counts."""

    number: int
    retracts: int | None = None
    prices: dict[str, tuple[Amount, int | None]] = field(default_factory=dict)
    retracted: set[str] = field(default_factory=set)
    from_at: int | None = None
    to_at: int | None = None


def paint(decisions: Iterable[Decision], product: str, length: int) -> list[Amount]:
    """Return the price of a product at each second: later editions are painted over earlier ones."""
    counting = [each for each in decisions if each.from_at is not None]
    line: list[Amount] = [None] * length
    for edition in sorted(counting, key=lambda each: (each.from_at, each.number)):
        if product not in edition.prices:
            continue
        amount, until = edition.prices[product]
        for second in range(length):
            begun = edition.from_at is not None and second >= edition.from_at
            ended = (edition.to_at is not None and second >= edition.to_at) or (until is not None and second >= until)
            if begun and not ended and not _is_taken_back(edition.number, product, second, counting):
                line[second] = amount
    return line


def _is_taken_back(number: int, product: str, second: int, counting: Iterable[Decision]) -> bool:
    for edition in counting:
        if edition.retracts == number and product in edition.retracted and edition.from_at is not None:
            still = edition.to_at is None or second < edition.to_at
            if second >= edition.from_at and still:
                return True
    return False
