"""What would happen if a change set were approved now."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

from pricebook.model import PriceKey
from pricebook.money import Money

FindingCode = Literal["negative", "large_change", "unknown_product", "currency", "conflict", "unchanged", "late", "unknown_store"]
Severity = Literal["error", "warning"]

MAX_FINDINGS = 200
MAX_LARGEST = 50


class Finding(Struct, frozen=True):
    """`other` is the id of the change set that it is in conflict with."""

    severity: Severity
    code: FindingCode
    message: str
    key: PriceKey | None = None
    other: str | None = None


class ReportLine(Struct, frozen=True):
    """`share` is by how much the price changes: -0.2 is a fifth less; None where there was no price, or will be none."""

    key: PriceKey
    before: Money | None
    after: Money | None
    share: float | None


class Report(Struct, frozen=True):
    """`errors` and `warnings` are their numbers; `findings` has at most 200 of them, and `largest` the 50 largest changes."""

    lines: int
    stores: int
    added: int
    removed: int
    raised: int
    lowered: int
    unchanged: int
    first_at: datetime | None
    last_at: datetime | None
    errors: int
    warnings: int
    findings: list[Finding]
    largest: list[ReportLine]

    @property
    def can_approve(self) -> bool:
        return self.errors == 0
