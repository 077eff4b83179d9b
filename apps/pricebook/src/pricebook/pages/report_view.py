"""The report of a change set as the page draws it: findings by what is wrong, the shares of a bar, and the largest moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pricebook.change_sets import Finding, Report, ReportLine
from pricebook.change_sets.report_values import FindingCode
from pricebook.model import PriceKey
from pricebook.money import Money
from pricebook.pages.amounts import count, money

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
    """A change of a product, in one store or more alike, as a bar that begins where nothing would change."""

    lines: list[ReportLine]
    share: float
    x: float
    width: float
    kind: str

    @property
    def key(self) -> PriceKey:
        return self.lines[0].key

    @property
    def before(self) -> str:
        return _range([line.before for line in self.lines])

    @property
    def after(self) -> str:
        return _range([line.after for line in self.lines])


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
    """Return the largest moves, those of a product that are alike as one. What is lowered lies to the left of what is raised."""
    alike: dict[object, list[ReportLine]] = {}
    for line in report.largest:
        if line.share:
            key = (line.key.channel, line.key.type, line.key.product, line.key.combination, round(line.share, 2))
            alike.setdefault(key, []).append(line)
    largest = [(lines[0].share or 0.0, lines) for lines in alike.values()][:LARGEST]
    down = max((-share for share, _ in largest), default=0.0)
    up = max((share for share, _ in largest), default=0.0)
    scale = BAR / (max(down, 0) + max(up, 0)) if largest else 0.0
    zero = max(down, 0) * scale
    bars = []
    for share, lines in largest:
        width = abs(share) * scale
        x, kind = (zero - width, "down") if share < 0 else (zero, "up")
        bars.append(Bar(lines, share, round(x, 1), round(width, 1), kind))
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
        words = words.removeprefix(finding.key.words).strip()
    return FoundPrice(finding.key, words, finding.other)


def _range(amounts: Sequence[Money | None]) -> str:
    """Return the price, or the lowest and the highest if they are not the same."""
    known = sorted((each for each in amounts if each is not None), key=lambda each: each.minor)
    if not known or known[0] == known[-1]:
        return money(known[0] if known else None)
    return f"{money(known[0])} – {money(known[-1])}"
