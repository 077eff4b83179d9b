"""The report of a change set as the page draws it: findings by what is wrong, the shares of a bar, and the largest moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pricebook.change_sets import Finding, Report, ReportLine
from pricebook.change_sets.report_values import FindingCode
from pricebook.model import PriceKey
from pricebook.pages.amounts import count

LARGEST = 20
BAR = 200  # how wide the drawing of a move is
SHARES = 1_000  # and that of all shares

LABELS: Mapping[FindingCode, tuple[str, str]] = {
    "negative": ("price is negative", "prices are negative"),
    "currency": ("price has another currency", "prices have another currency"),
    "conflict": ("price is in another change set, too", "prices are in another change set, too"),
    "unknown_store": ("store is unknown", "stores are unknown"),
    "late": ("time has passed", "times have passed"),
    "large_change": ("price changes a lot", "prices change a lot"),
    "unknown_product": ("product is new in its store", "products are new in their stores"),
    "unchanged": ("price stays as it is", "prices stay as they are"),
}


class FoundPrice(NamedTuple):
    """A finding: what is wrong with a price, or with the change set."""

    key: PriceKey | None
    words: str
    other: str | None


class FindingGroup(NamedTuple):
    severity: str
    title: str
    found: list[FoundPrice]


class Bar(NamedTuple):
    """A change as a bar that begins where nothing would change."""

    line: ReportLine
    x: float
    width: float
    kind: str


class Share(NamedTuple):
    """A part of all lines, as a piece of one bar."""

    kind: str
    label: str
    number: int
    x: float
    width: float


class Moves(NamedTuple):
    zero: float
    bars: list[Bar]


def groups_of(report: Report) -> list[FindingGroup]:
    """Return findings by what is wrong, errors first."""
    found: dict[tuple[str, FindingCode], list[Finding]] = {}
    for finding in sorted(report.findings, key=lambda each: (each.severity, list(LABELS).index(each.code))):
        found.setdefault((finding.severity, finding.code), []).append(finding)
    return [
        FindingGroup(severity, count(len(same), *LABELS[code]), [_without_key(finding) for finding in same])
        for (severity, code), same in found.items()
    ]


def moves_of(report: Report) -> Moves:
    """Return the largest moves. What is lowered lies to the left of what is raised."""
    largest = [line for line in report.largest if line.share][:LARGEST]
    down = max((-line.share for line in largest if line.share and line.share < 0), default=0.0)
    up = max((line.share for line in largest if line.share and line.share > 0), default=0.0)
    scale = BAR / (down + up) if largest else 0.0
    zero = down * scale
    bars = []
    for line in largest:
        width = abs(line.share or 0.0) * scale
        is_down = (line.share or 0.0) < 0
        bars.append(Bar(line, round(zero - width if is_down else zero, 1), round(width, 1), "down" if is_down else "up"))
    return Moves(round(zero, 1), bars)


def shares_of(report: Report) -> Sequence[Share]:
    """Return what the lines do, as the pieces of one bar."""
    parts = (("up", "raised", report.raised), ("down", "lowered", report.lowered), ("new", "added", report.added),
             ("none", "removed", report.removed), ("same", "unchanged", report.unchanged))  # fmt: skip
    total = sum(number for _, _, number in parts)
    found, x = [], 0.0
    for kind, label, number in parts:
        if number:
            width = SHARES * number / total
            found.append(Share(kind, label, number, round(x, 1), round(width, 1)))
            x += width
    return found


def _without_key(finding: Finding) -> FoundPrice:
    """Leave out of the message what the page shows beside it."""
    words = finding.message
    if finding.key is not None:
        words = words.removeprefix(f"store {finding.key.store}: ").removeprefix(str(finding.key)).strip()
    return FoundPrice(finding.key, words, finding.other)
