"""The doctor's findings: each has a severity, an example and a remedy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec.structs import force_setattr

# critical: due schedules do not fire. warning: some schedules are affected, or will be. info: no harm.
Severity = Literal["critical", "warning", "info"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One problem. After a repair, `repaired` and `left` are the numbers of repaired and remaining cases."""

    check: str
    severity: Severity
    count: int
    says: str
    remedy: str
    example: str | None = None
    at_least: bool = False  # there may be more than `count`
    repairable: bool = False
    repaired: int | None = None
    left: int | None = None

    @property
    def is_repaired(self) -> bool:
        return self.left == 0


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """The findings of a store, the worst first, and the checks that passed.

    A store is `healthy` if every finding is repaired or only `info`.
    """

    at: int
    deep: bool
    findings: list[Finding]
    passed: list[str] = []  # names of checks that found nothing
    healthy: bool = True  # set by __post_init__

    def __post_init__(self) -> None:
        force_setattr(self, "healthy", all(found.severity == "info" or found.is_repaired for found in self.findings))

    @property
    def repaired(self) -> int:
        """The number of repaired cases of all findings."""
        return sum(found.repaired or 0 for found in self.findings)


def worst_first(findings: Sequence[Finding]) -> list[Finding]:
    order: tuple[Severity, ...] = ("critical", "warning", "info")
    return sorted(findings, key=lambda found: order.index(found.severity))
