"""A drawn time line of prices."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pricebook.money import Money
from pricebook.pages.clock import PageClock
from pricebook.pages.price_chart import NARROW, WIDE, Lane, PriceChart, draw, fitting_range
from pricebook.timelines.spans import Span

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def span(minor: int | None, from_day: float, to_day: float | None = None, *, until: bool = False) -> Span:
    """Return a price between days counted from now."""
    to_at = None if to_day is None else NOW + to_day * DAY
    amount = None if minor is None else Money(minor, "EUR")
    return Span(NOW + from_day * DAY, to_at, amount, to_at if until else None)


def drawn(*spans: Span, frame: object = WIDE, days: int = 8) -> PriceChart:
    return draw([Lane("TEA", spans)], PageClock(NOW, "UTC"), days * DAY, WIDE if frame is WIDE else NARROW)


def test_a_price_that_rises_is_drawn_higher_and_one_that_falls_lower() -> None:
    (lane,) = drawn(span(100, -1, 2), span(120, 2, 4), span(90, 4)).lanes
    assert [piece.kind for piece in lane.pieces] == ["same", "up", "down"]
    first, up, down = (piece.y for piece in lane.pieces)
    assert up < first < down  # the top is 0
    assert [piece.riser for piece in lane.pieces] == [None, first, up]


def test_pieces_follow_each_other_from_edge_to_edge() -> None:
    chart = drawn(span(100, -30, 2), span(120, 2))
    first, second = chart.lanes[0].pieces
    assert (first.x, first.to, second.to) == (chart.axis.left, second.x, chart.axis.right)


def test_prices_before_and_after_the_time_that_is_drawn_are_left_out() -> None:
    (lane,) = drawn(span(100, -30, -20), span(110, -20, 2), span(120, 2, 9), span(130, 9)).lanes
    assert [piece.title.split()[0] for piece in lane.pieces] == ["€1.10", "€1.20"]


def test_a_price_for_a_time_and_the_lack_of_one_are_drawn_as_such() -> None:
    (lane,) = drawn(span(100, -1, 2), span(80, 2, 4, until=True), span(None, 4, 6), span(90, 6)).lanes
    assert [(piece.kind, piece.is_temporary) for piece in lane.pieces] == [
        ("same", False), ("down", True), ("none", False), ("new", False),
    ]  # fmt: skip
    assert lane.pieces[2].y == lane.base


def test_a_price_that_never_changes_is_a_line_in_the_middle_of_its_lane() -> None:
    (lane,) = drawn(span(100, -1)).lanes
    assert lane.pieces[0].y == lane.base - (WIDE.bottom - WIDE.top) / 2
    assert lane.now == "€1.00 now"


def test_prices_are_written_only_where_there_is_room_for_them() -> None:
    (wide,) = drawn(span(100, -1, 2), span(120, 2, 2.01), span(90, 2.01)).lanes
    assert [text.words for text in wide.texts] == ["€1.00", "€0.90"]
    (narrow,) = drawn(span(100, -1, 7.9), span(120, 7.9), frame=NARROW).lanes
    assert [(text.words, text.anchor) for text in narrow.texts] == [("€1.00", "start"), ("€1.20", "end")]


def test_lanes_lie_below_each_other() -> None:
    chart = draw([Lane("TEA", [span(100, -1)]), Lane("MILK", [span(200, -1)])], PageClock(NOW, "UTC"), DAY, WIDE)
    assert [lane.y for lane in chart.lanes] == [WIDE.header, WIDE.header + WIDE.lane]
    assert chart.height >= chart.lanes[-1].y + WIDE.lane


def test_a_time_line_looks_as_far_ahead_as_its_last_change_needs() -> None:
    def fitting(*days: float) -> str:
        return fitting_range(NOW, [NOW + day * DAY for day in days])

    assert (fitting(0.01), fitting(0.2), fitting(0.5, 2.5), fitting(6.9), fitting(20)) == ("1h", "6h", "3d", "14d", "30d")
    assert fitting(0.01, 300) == "1h"  # what is far away does not hide what is near
    assert fitting() == "3d"
