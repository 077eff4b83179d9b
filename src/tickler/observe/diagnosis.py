"""What the doctor says: findings, each with how bad it is, an example and what mends it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec
from msgspec.structs import force_setattr

# critical: something that is due does not fire. warning: some schedules suffer, or will. info: only worth knowing.
Severity = Literal["critical", "warning", "info"]

OnProgress = Callable[[str, int, int | None], None]  # what is being done, how much of it is, and how much there is, if known


def no_progress(doing: str, done: int, total: int | None) -> None:
    """For those who do not want to hear it."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong. After a repair, `repaired` says how many were mended, and `left` how many were not."""

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
    def is_mended(self) -> bool:
        return self.left == 0


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with a store, the worst first, and what was found to be right.

    It is `healthy` when nothing is left that is more than worth knowing.
    """

    at: int
    deep: bool
    findings: list[Finding]
    passed: list[str] = []  # names of the checks that were made and found nothing
    healthy: bool = True  # from __post_init__ on

    def __post_init__(self) -> None:
        force_setattr(self, "healthy", all(found.severity == "info" or found.is_mended for found in self.findings))

    @property
    def repaired(self) -> int:
        """How many things were mended."""
        return sum(found.repaired or 0 for found in self.findings)


def worst_first(findings: Sequence[Finding]) -> list[Finding]:
    order: tuple[Severity, ...] = ("critical", "warning", "info")
    return sorted(findings, key=lambda found: order.index(found.severity))
