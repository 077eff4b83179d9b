"""Counts what a report says, and keeps the first findings and the largest changes. Pure, and of a bounded size."""

from __future__ import annotations

import heapq
from datetime import datetime

from pricebook.change_sets.report_values import MAX_FINDINGS, MAX_LARGEST, Finding, Report, ReportLine
from pricebook.model import PriceKey
from pricebook.money import Money


class Tally:
    def __init__(self) -> None:
        self._counts = dict.fromkeys(("lines", "stores", "added", "removed", "raised", "lowered", "unchanged"), 0)
        self._first_at: datetime | None = None
        self._last_at: datetime | None = None
        self._found = {"error": 0, "warning": 0}
        self._errors: list[Finding] = []
        self._warnings: list[Finding] = []
        self._largest: list[tuple[float, int, ReportLine]] = []  # a heap, the smallest share first

    def add_store(self, counts_from: datetime) -> None:
        self._counts["stores"] += 1
        self._first_at = counts_from if self._first_at is None else min(self._first_at, counts_from)
        self._last_at = counts_from if self._last_at is None else max(self._last_at, counts_from)

    def add_unknown_store(self, lines: int) -> None:
        self._counts["stores"] += 1
        self._counts["lines"] += lines

    def add(self, key: PriceKey, before: Money | None, after: Money | None) -> float | None:
        """Count a price, and return by how much it changes."""
        self._counts["lines"] += 1
        self._counts[_kind(before, after)] += 1
        if before is None or after is None or before.currency != after.currency or not before.minor:
            return None
        share = (after.minor - before.minor) / before.minor
        if share:
            entry = (abs(share), -self._counts["lines"], ReportLine(key, before, after, share))
            (heapq.heappush if len(self._largest) < MAX_LARGEST else heapq.heappushpop)(self._largest, entry)
        return share

    def find(self, finding: Finding) -> None:
        self._found[finding.severity] += 1
        kept = self._errors if finding.severity == "error" else self._warnings
        if len(kept) < MAX_FINDINGS:
            kept.append(finding)

    def report(self) -> Report:
        return Report(
            **self._counts,
            first_at=self._first_at,
            last_at=self._last_at,
            errors=self._found["error"],
            warnings=self._found["warning"],
            findings=[*self._errors, *self._warnings][:MAX_FINDINGS],
            largest=[line for *_, line in sorted(self._largest, key=lambda each: each[:2], reverse=True)],
        )


def _kind(before: Money | None, after: Money | None) -> str:
    if before is None or after is None:
        return "unchanged" if before is after else "added" if before is None else "removed"
    if before.minor == after.minor:
        return "unchanged"
    return "raised" if after.minor > before.minor else "lowered"
