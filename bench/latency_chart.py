"""Draws latencies by percentile, as SVG for light and dark pages and as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from http_load import Latencies

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 64, 640, 40, 360
COLOURS = ("#2563eb", "#9ca3af", "#0d9488")
PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9)
TICKS_MS = (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)
BAR = 60


def draw(asked: Mapping[str, Latencies], seed: Mapping[int, float], path: Path) -> None:
    """Draw a line for each series, and a point for each percentile of the seed, on a logarithmic scale."""
    values = [latencies.percentile(percent) for latencies in asked.values() for percent in PERCENTILES]
    least, most = min(values), max(*values, *seed.values())

    def x(percent: float) -> float:
        return LEFT + (RIGHT - LEFT) * -math.log10(1 - percent / 100) / 3

    def y(ms: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * math.log(ms / least) / math.log(most / least)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-label="Latency by percentile, in milliseconds">',
        "<style>text{font:13px system-ui,sans-serif;fill:#111827}.soft{fill:#6b7280;font-size:12px}"
        ".grid{stroke:#9ca3af;stroke-opacity:.3}@media(prefers-color-scheme:dark){text{fill:#f3f4f6}.soft{fill:#9ca3af}}</style>",
    ]
    for ms in TICKS_MS:
        if least <= ms <= most:
            parts.append(f'<line class="grid" x1="{LEFT}" y1="{y(ms):.1f}" x2="{RIGHT}" y2="{y(ms):.1f}"/>')
            parts.append(f'<text class="soft" x="{LEFT - 8}" y="{y(ms) + 4:.1f}" text-anchor="end">{ms:g} ms</text>')
    for percent in (50, 90, 95, 99, 99.9):
        parts.append(f'<line class="grid" x1="{x(percent):.1f}" y1="{TOP}" x2="{x(percent):.1f}" y2="{BOTTOM}"/>')
        parts.append(f'<text class="soft" x="{x(percent):.1f}" y="{BOTTOM + 20}" text-anchor="middle">p{percent:g}</text>')
    for n, (name, latencies) in enumerate(asked.items()):
        points = " ".join(f"{x(percent):.1f},{y(latencies.percentile(percent)):.1f}" for percent in PERCENTILES)
        colour = COLOURS[n % len(COLOURS)]
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        parts.append(f'<text x="{RIGHT + 8}" y="{y(latencies.percentile(99.9)) + 4:.1f}">{name}</text>')
    for percent, ms in seed.items():
        parts.append(f'<circle cx="{x(percent):.1f}" cy="{y(ms):.1f}" r="5" fill="#b34700"/>')
        parts.append(f'<text class="soft" x="{x(percent) + 9:.1f}" y="{y(ms) + 4:.1f}">the first design, {ms:g} ms</text>')
    path.write_text("\n".join([*parts, "</svg>"]) + "\n")


def text_plot(asked: Mapping[str, Latencies], seed: Mapping[int, float]) -> Iterator[str]:
    """Yield a bar for each percentile, all on one logarithmic scale."""
    rows = [(f"{name} p{p:g}", latencies.percentile(p)) for name, latencies in asked.items() for p in (50, 95, 99, 99.9)]
    rows += [(f"the first design p{percent}", ms) for percent, ms in seed.items()]
    least, most = min(ms for _, ms in rows) / 2, max(ms for _, ms in rows)
    for name, ms in rows:
        filled = round(BAR * math.log(ms / least) / math.log(most / least))
        yield f"{name:>16} {'█' * filled} {ms:.2f} ms"
