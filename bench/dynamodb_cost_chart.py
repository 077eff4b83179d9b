"""Draws dollars against schedules on two log axes, as SVG with light and dark mode."""

from __future__ import annotations

import math
from collections.abc import Iterator
from xml.sax.saxutils import escape

import msgspec

MIN_SCHEDULES, MAX_SCHEDULES = 1000, 100_000_000  # schedules; the axis grows when the marker is outside
MIN_DOLLARS = 0.1  # lower costs are cut off
HEADROOM = 0.8  # decades above the highest line, for the marker's text

WIDTH, HEIGHT = 900, 560
LEFT, RIGHT, TOP, BOTTOM = 84, 722, 84, 492
LINE_HEIGHT = 18
ROOM_FOR_STOP = 540  # two lines of text that start left of this fit

# Blue, vermilion and green after Okabe and Ito, which colour-blind readers can distinguish, darkened until text is legible.
STYLE = """
  svg { --paper: #ffffff; --ink: #1b1f24; --quiet: #57606a; --grid: #e3e7eb;
        --ours: #0068a8; --partition: #b34700; --managed: #00755a; }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #0d1117; --ink: #e6edf3; --quiet: #9aa4af; --grid: #252c35;
          --ours: #6cb9f0; --partition: #f59a4c; --managed: #3fcf9f; }
  }
  .paper { fill: var(--paper); }
  text { font: 13px system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; fill: var(--ink);
         paint-order: stroke; stroke: var(--paper); stroke-width: 4px; stroke-linejoin: round; }
  .title { font-size: 18px; font-weight: 600; }
  .quiet { fill: var(--quiet); }
  .strong { font-weight: 600; }
  .grid { stroke: var(--grid); stroke-width: 1; }
  .marker { stroke: var(--quiet); stroke-width: 1; stroke-dasharray: 2 3; }
  .leader { stroke: var(--partition); stroke-width: 1; }
  .curve { fill: none; stroke-linejoin: round; }
  .curve.ours { stroke: var(--ours); stroke-width: 7; }
  .curve.casing { stroke: var(--paper); stroke-width: 3; }
  .curve.partition { stroke: var(--partition); stroke-width: 3; stroke-dasharray: 7 6; }
  .curve.managed { stroke: var(--managed); stroke-width: 2.5; }
  .cross { stroke: var(--partition); stroke-width: 3; stroke-linecap: round; }
  text.ours { fill: var(--ours); } text.partition { fill: var(--partition); } text.managed { fill: var(--managed); }
  .dot { stroke: var(--paper); stroke-width: 2; }
  .dot.ours { fill: var(--ours); } .dot.managed { fill: var(--managed); }
"""


class Line(msgspec.Struct, frozen=True):
    """`style` is a class above. `stops` says why the line ends before the axis does; it is drawn with a cross."""

    name: str
    style: str
    points: list[tuple[int, float]]  # schedules, dollars a month
    stops: str = ""
    note: str = ""  # under its name


class Marker(msgspec.Struct, frozen=True):
    schedules: int
    dollars: dict[str, float]  # by the style of a line
    text: str


class Chart(msgspec.Struct, frozen=True):
    title: str
    subtitle: str
    lines: list[Line]
    marker: Marker


class Axes(msgspec.Struct, frozen=True):
    """The first and last decade of both axes."""

    x: tuple[int, int]
    y: tuple[int, int]

    def across(self, schedules: float) -> float:
        return LEFT + (RIGHT - LEFT) * (math.log10(schedules) - self.x[0]) / (self.x[1] - self.x[0])

    def down(self, dollars: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * (math.log10(dollars) - self.y[0]) / (self.y[1] - self.y[0])


def short(number: float) -> str:
    """1k, 1.8M, 100M."""
    for size, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def numbers(marked: int, exactly: list[float], rises_from: float) -> list[int]:
    """Return numbers of schedules to compute; dense where a line rises from zero, which is a cliff on a log axis."""
    fewest, most = min(MIN_SCHEDULES, marked), max(MAX_SCHEDULES, marked)
    cliff = [rises_from * (1 + 10**-power) for power in range(7)]
    steps = [10 ** (step / 20) for step in range(20 * 13)]
    return sorted({int(n) for n in [*steps, *cliff, *exactly, fewest, most] if fewest <= n <= most})


def draw(chart: Chart) -> str:
    visible = [line for line in map(_visible, chart.lines) if line.points]
    axes = _axes(visible, chart.marker)
    drawn = [*_frame(chart, axes), *_marker_line(chart.marker, axes), '<g clip-path="url(#plot)">']
    drawn += [_curve(line, axes) for line in visible]
    drawn += ["</g>", *_marker_text(chart.marker, axes), *_end_labels(visible, axes)]
    for line in visible:
        drawn += _stop(line, axes)
    for at, line in enumerate(line for line in chart.lines if not _visible(line).points):
        y = BOTTOM - (2 * at + 1) * LINE_HEIGHT
        drawn += [_text(RIGHT + 10, y, line.name, line.style), _text(RIGHT + 10, y + LINE_HEIGHT, "not in this range", "quiet")]
    return "\n".join([*drawn, "</svg>", ""])


def _visible(line: Line) -> Line:
    """Drop points that cost almost nothing, except the last one, where the line enters the chart."""
    shown = [(n, max(dollars, MIN_DOLLARS / 10)) for n, dollars in line.points]
    first = next((at for at, (_, dollars) in enumerate(shown) if dollars >= MIN_DOLLARS), len(shown))
    return msgspec.structs.replace(line, points=shown[max(0, first - 1) :] if first < len(shown) else [])


def _axes(lines: list[Line], marker: Marker) -> Axes:
    highest = max([dollars for line in lines for _, dollars in line.points], default=1)
    fewest, most = min(MIN_SCHEDULES, marker.schedules), max(MAX_SCHEDULES, marker.schedules)
    return Axes(
        x=(math.floor(math.log10(fewest)), math.ceil(math.log10(most))),
        y=(round(math.log10(MIN_DOLLARS)), math.ceil(math.log10(highest) + HEADROOM)),
    )


def _text(x: float, y: float, text: str, classes: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{classes}" text-anchor="{anchor}">{escape(text)}</text>'


def _rule(x1: float, y1: float, x2: float, y2: float, classes: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{classes}"/>'


def _frame(chart: Chart, axes: Axes) -> Iterator[str]:
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">'
    yield f"<title>{escape(chart.title)}</title><style>{STYLE}</style>"
    yield f'<clipPath id="plot"><rect x="{LEFT}" y="{TOP}" width="{RIGHT - LEFT}" height="{BOTTOM - TOP}"/></clipPath>'
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" class="paper"/>'
    yield _text(24, 34, chart.title, "title")
    yield _text(24, 56, chart.subtitle, "quiet")
    for decade in range(axes.x[0], axes.x[1] + 1):
        x = axes.across(10**decade)
        yield _rule(x, TOP, x, BOTTOM, "grid")
        yield _text(x, BOTTOM + 20, short(10**decade), "quiet", "middle")
    for decade in range(axes.y[0], axes.y[1] + 1):
        y = axes.down(10**decade)
        yield _rule(LEFT, y, RIGHT, y, "grid")
        yield _text(LEFT - 8, y + 4, f"${short(10**decade)}" if decade >= 0 else f"${10**decade:.2f}", "quiet", "end")
    yield _text((LEFT + RIGHT) / 2, BOTTOM + 46, "schedules", "", "middle")
    yield f'<g transform="translate(28 {(TOP + BOTTOM) / 2}) rotate(-90)">{_text(0, 0, "dollars a month", "", "middle")}</g>'


def _curve(line: Line, axes: Axes) -> str:
    points = " ".join(f"{axes.across(n):.1f},{axes.down(dollars):.1f}" for n, dollars in line.points)
    casing = f'<polyline points="{points}" class="curve casing"/>' if line.style == "partition" else ""  # it lies on ours
    return f'{casing}<polyline points="{points}" class="curve {line.style}"/>'


def _marker_line(marker: Marker, axes: Axes) -> list[str]:
    x = axes.across(marker.schedules)
    return [_rule(x, TOP, x, BOTTOM, "marker")]


def _marker_text(marker: Marker, axes: Axes) -> Iterator[str]:
    x = axes.across(marker.schedules)
    for style, dollars in marker.dollars.items():
        if dollars >= MIN_DOLLARS:
            yield f'<circle cx="{x:.1f}" cy="{axes.down(dollars):.1f}" r="6" class="dot {style}"/>'
    left_half = x < (LEFT + RIGHT) / 2
    for at, text in enumerate(marker.text.splitlines()):
        y = TOP + (at + 1) * LINE_HEIGHT
        yield _text(x + (8 if left_half else -8), y, text, "" if at else "strong", "start" if left_half else "end")


def _end_labels(lines: list[Line], axes: Axes) -> Iterator[str]:
    """Names beside the ends of the lines, highest first, moved down where two would touch."""
    lowest = -math.inf
    for line in sorted((line for line in lines if not line.stops), key=lambda line: -line.points[-1][1]):
        lowest = max(axes.down(line.points[-1][1]) + 4, lowest + LINE_HEIGHT)
        yield _text(RIGHT + 10, lowest, line.name, f"strong {line.style}")
        for text in line.note.splitlines():
            lowest += LINE_HEIGHT
            yield _text(RIGHT + 10, lowest, text, "quiet")


def _stop(line: Line, axes: Axes) -> Iterator[str]:
    if not line.stops:
        return
    x, y = axes.across(line.points[-1][0]), axes.down(line.points[-1][1])
    room = x < ROOM_FOR_STOP  # to the right of it; lines rise, so that below right and above left are empty
    top = min(y + 4 * LINE_HEIGHT, BOTTOM - 2 * LINE_HEIGHT) if room else y - 1.6 * LINE_HEIGHT
    if room:
        yield _rule(x, y, x, top - LINE_HEIGHT, "leader")
    yield _rule(x - 6, y - 6, x + 6, y + 6, "cross")
    yield _rule(x - 6, y + 6, x + 6, y - 6, "cross")
    for at, text in enumerate(line.stops.splitlines()):
        classes = "partition" if at else "strong partition"
        yield _text(x - 4 if room else x - 12, top + at * LINE_HEIGHT, text, classes, "start" if room else "end")
