"""Draws the lateness of fires as a histogram, for light and dark pages."""

from __future__ import annotations

from pathlib import Path

WIDTH, ROW, LEFT, BAR = 760, 150, 20, 100
MAX_MS = 25  # later fires count in the last bar
BINS = 100
COLOURS = ("#2563eb", "#0d9488", "#9ca3af")


def draw(series: dict[str, list[float]], path: Path) -> None:
    """Draw one row per series, on the same time scale."""
    height = ROW * len(series) + 50
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'aria-label="Histogram of arrival less nominal instant, in milliseconds">',
        "<style>text{font:13px system-ui,sans-serif;fill:#111827}.soft{fill:#6b7280;font-size:12px}"
        ".axis{stroke:#9ca3af}@media(prefers-color-scheme:dark){text{fill:#f3f4f6}.soft{fill:#9ca3af}}</style>",
    ]
    for n, (name, late_ms) in enumerate(series.items()):
        parts += _row(name, late_ms, n * ROW + 10, COLOURS[n % len(COLOURS)])
    parts += _scale(len(series) * ROW + 15)
    path.write_text("\n".join([*parts, "</svg>"]) + "\n")


def _row(name: str, late_ms: list[float], top: int, colour: str) -> list[str]:
    counts = [0] * BINS
    for late in late_ms:
        counts[min(max(int(late * BINS / MAX_MS), 0), BINS - 1)] += 1
    highest = max(counts) or 1
    step = (WIDTH - 2 * LEFT) / BINS
    ordered = sorted(late_ms)
    marks = {at: ordered[min(len(ordered) * at // 100, len(ordered) - 1)] for at in (50, 95, 99)}
    said = ", ".join(f"p{at} {late:.1f} ms" for at, late in marks.items())
    parts = [f'<text x="{LEFT}" y="{top + 12}">{name} <tspan class="soft">{said}; {len(late_ms):,} fires</tspan></text>']
    base = top + BAR + 25
    for n, count in enumerate(counts):
        if count:
            tall = max(count / highest * BAR, 1)
            place = f'x="{LEFT + n * step:.1f}" y="{base - tall:.1f}"'
            parts.append(f'<rect {place} width="{step - 1:.1f}" height="{tall:.1f}" fill="{colour}"/>')
    parts.append(f'<line class="axis" x1="{LEFT}" y1="{base}" x2="{WIDTH - LEFT}" y2="{base}"/>')
    return parts


def _scale(y: int) -> list[str]:
    parts = []
    for ms in range(0, MAX_MS + 1, 5):
        anchor = "start" if ms == 0 else "end" if ms == MAX_MS else "middle"
        label = f"{ms} ms and later" if ms == MAX_MS else str(ms)
        x = LEFT + (WIDTH - 2 * LEFT) * ms / MAX_MS
        parts.append(f'<text class="soft" x="{x:.0f}" y="{y}" text-anchor="{anchor}">{label}</text>')
    parts.append(f'<text class="soft" x="{LEFT}" y="{y + 20}">arrival at the sink, less the nominal instant</text>')
    return parts
