"""A drawn time line of prices: a lane for each product, in which its price steps up and down. Pure geometry."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from pricebook.money import Money
from pricebook.pages.amounts import money
from pricebook.pages.clock import PageClock
from pricebook.pages.time_axis import Band, ClockChange, Tick, TimeAxis
from pricebook.timelines.spans import Span

HOUR, DAY = timedelta(hours=1), timedelta(days=1)

# How far a time line looks ahead, by its name in the address.
RANGES: dict[str, timedelta] = {
    "1h": HOUR, "6h": 6 * HOUR, "1d": DAY, "3d": 3 * DAY, "7d": 7 * DAY, "14d": 14 * DAY, "30d": 30 * DAY,
}  # fmt: skip
RANGE_NAMES = {
    "1h": "1 hour", "6h": "6 hours", "1d": "1 day", "3d": "3 days", "7d": "7 days", "14d": "14 days", "30d": "30 days",
}  # fmt: skip
PAST_SHARE = 8  # one part in so many is before now
CHARACTER = 7.4  # its width in pixels
GAP = 6


class Frame(NamedTuple):
    """The measures of a drawing. Where `label_width` is 0, the name of a lane is above it."""

    width: int
    label_width: int
    header: int
    lane: int
    top: int  # of the line within its lane
    bottom: int


WIDE = Frame(width=1120, label_width=170, header=46, lane=62, top=26, bottom=50)
NARROW = Frame(width=356, label_width=0, header=46, lane=82, top=46, bottom=70)


class Lane(NamedTuple):
    """What is drawn of a product. `prices` has its spans one after the other."""

    name: str
    prices: Sequence[Span]


class Piece(NamedTuple):
    """A price as a line from `x` to `to`; `riser` is where the line comes from."""

    x: float
    to: float
    y: float
    riser: float | None
    kind: str  # up, down, new, same or none
    is_temporary: bool
    title: str


class Text(NamedTuple):
    x: float
    y: float
    anchor: str
    words: str
    kind: str


class DrawnLane(NamedTuple):
    name: str
    now: str
    y: float
    base: float
    pieces: list[Piece]
    texts: list[Text]


class PriceChart(NamedTuple):
    frame: Frame
    height: int
    lanes: list[DrawnLane]
    bands: list[Band]
    ticks: list[Tick]
    now_x: float
    clock_changes: list[ClockChange]
    axis: TimeAxis


def window(now: datetime, ahead: timedelta) -> tuple[datetime, datetime]:
    """Return from when until when a time line is drawn that looks so far ahead."""
    return now - ahead / PAST_SHARE, now + ahead


def fitting_range(now: datetime, instants: Sequence[datetime]) -> str:
    """Return the shortest range that shows all instants, with some time after the last."""
    last = max((at for at in instants if at - now < RANGES["30d"]), default=now + 2 * DAY)
    return next((name for name, ahead in RANGES.items() if last + ahead / 10 <= now + ahead), "30d")


def draw(lanes: Sequence[Lane], clock: PageClock, ahead: timedelta, frame: Frame) -> PriceChart:
    start, end = window(clock.now, ahead)
    axis = TimeAxis(start, end, clock, frame.label_width, frame.width - 8)
    drawn = [_lane(lane, number, axis, frame) for number, lane in enumerate(lanes)]
    height = frame.header + frame.lane * len(lanes) + 4
    return PriceChart(frame, height, drawn, axis.bands, axis.ticks, axis.x(clock.now), axis.clock_changes, axis)


def _lane(lane: Lane, number: int, axis: TimeAxis, frame: Frame) -> DrawnLane:
    y = frame.header + number * frame.lane
    prices = [span for span in lane.prices if span.from_at < axis.end and (span.to_at is None or span.to_at > axis.start)]
    amounts = [span.amount.minor for span in prices if span.amount is not None]
    low, high = min(amounts, default=0), max(amounts, default=0)
    base = y + frame.bottom

    def height(amount: Money | None) -> float:
        if amount is None:
            return base
        share = 0.5 if low == high else (amount.minor - low) / (high - low)
        return round(base - share * (frame.bottom - frame.top), 1)

    pieces: list[Piece] = []
    before: Span | None = None
    for span in prices:
        x, to = axis.x(span.from_at), axis.right if span.to_at is None else axis.x(span.to_at)
        riser = None if before is None else height(before.amount)
        title = _title(span, axis)
        pieces.append(Piece(x, to, height(span.amount), riser, _kind(before, span), span.until is not None, title))
        before = span
    now = next((span for span in reversed(prices) if span.from_at <= axis.clock.now), None)
    shown = "no price" if now is None else money(now.amount)
    return DrawnLane(lane.name, f"{shown} now", y, base, pieces, _texts(prices, pieces, axis))


def _texts(prices: Sequence[Span], pieces: Sequence[Piece], axis: TimeAxis) -> list[Text]:
    """Return the prices that there is room for, beside the beginning of each."""
    found: list[Text] = []
    taken = axis.left
    for number, (span, piece) in enumerate(zip(prices, pieces, strict=True)):
        words = money(span.amount)
        width = len(words) * CHARACTER
        limit = pieces[number + 1].x if number + 1 < len(pieces) else axis.right
        y = piece.y - GAP
        if piece.x + GAP >= taken and piece.x + GAP + width <= limit:
            found.append(Text(piece.x + GAP, y, "start", words, piece.kind))
            taken = piece.x + GAP + width
        elif number + 1 == len(pieces) and piece.x - GAP - width >= taken:
            found.append(Text(piece.x - GAP, y, "end", words, piece.kind))
            taken = piece.x
    return found


def _kind(before: Span | None, span: Span) -> str:
    if span.amount is None:
        return "none"
    if before is None or before.amount is None:
        return "new" if before is not None else "same"
    if before.amount.currency != span.amount.currency or before.amount.minor == span.amount.minor:
        return "same"
    return "up" if span.amount.minor > before.amount.minor else "down"


def _title(span: Span, axis: TimeAxis) -> str:
    clock = axis.clock
    until = "" if span.to_at is None else f" until {clock.text(span.to_at)}"
    return f"{money(span.amount)} from {clock.text(span.from_at)}{until}"
