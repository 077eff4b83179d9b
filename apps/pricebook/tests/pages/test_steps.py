"""The changes of prices that are still to come."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pricebook.model import PriceKey
from pricebook.money import Money
from pricebook.pages.steps import grouped, next_steps, steps_of
from pricebook.timelines.spans import Span

NOW = datetime(2026, 3, 1, tzinfo=UTC)
TEA, MILK = PriceKey("1", "ALL", "Base", "TEA"), PriceKey("1", "ALL", "Base", "MILK")


def day(number: int) -> datetime:
    return NOW + timedelta(days=number)


def span(minor: int | None, begin: int, end: int | None, *, edition: int | None = None, until: int | None = None) -> Span:
    amount = None if minor is None else Money(minor, "EUR")
    to_at = None if end is None else day(end)
    return Span(day(begin), to_at, amount, None if until is None else day(until), edition)


def test_each_step_says_what_the_price_is_before_and_after_it() -> None:
    spans = [span(100, -3, 2), span(120, 2, 4, edition=7), span(None, 4, None, edition=8)]
    first, second = steps_of(TEA, spans, NOW)
    assert (first.before, first.after, first.direction, first.edition) == (spans[0].amount, spans[1].amount, "up", 7)
    assert (second.before, second.after, second.direction, second.edition) == (spans[1].amount, None, "none", 8)


def test_what_is_past_and_what_sets_the_same_price_again_is_no_step() -> None:
    assert steps_of(TEA, [span(90, -9, -3), span(100, -3, 2), span(100, 2, None, edition=7)], NOW) == []


def test_the_end_of_a_price_for_a_time_belongs_to_no_edition() -> None:
    spans = [span(100, -3, 2), span(80, 2, 4, edition=7, until=4), span(100, 4, None, edition=3)]
    down, up = steps_of(TEA, spans, NOW)
    assert (down.ends, down.until, up.ends, up.edition) == (False, day(4), True, None)


def test_steps_of_an_edition_are_a_group_and_groups_come_in_the_order_of_time() -> None:
    tea = steps_of(TEA, [span(100, -3, 4), span(120, 4, None, edition=7)], NOW)
    milk = steps_of(MILK, [span(90, -3, 2), span(80, 2, 4, edition=6), span(85, 4, None, edition=7)], NOW)
    groups = grouped([*tea, *milk])
    assert [(group.at, group.edition, group.size) for group in groups] == [(day(2), 6, 1), (day(4), 7, 2)]
    assert (groups[1].count_of("up"), groups[1].count_of("down"), groups[0].count_of("down")) == (2, 0, 1)


def test_the_next_step_is_known_of_prices_that_have_one() -> None:
    spans = {TEA: [span(100, -3, None)], MILK: [span(90, -3, 2), span(80, 2, 3), span(70, 3, None)]}
    assert {key.product: step.at for key, step in next_steps(spans, NOW).items()} == {"MILK": day(2)}
