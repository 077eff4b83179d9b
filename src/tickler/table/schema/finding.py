"""What the advisor says: findings with the figure that it saw and a remedy, and how to find what somebody wishes to find."""

from __future__ import annotations

from typing import Literal

import msgspec

Check = Literal["not sparse", "never absent", "absence", "could share", "hot partition"]
Severity = Literal["warning", "info"]  # warning: it costs, or will fail. info: it may be meant like this


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One remark on an index or a key. `figure` is what was measured or counted."""

    check: Check
    severity: Severity
    about: str
    figure: str
    says: str
    remedy: str


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """How to find the items that satisfy a condition: a call, or None and what to change."""

    wish: str
    says: str
    call: str | None = None
    remedy: str | None = None


class Advice(msgspec.Struct, frozen=True):
    """All findings, warnings first, and the answer to a wish if there was one."""

    findings: tuple[Finding, ...]
    answer: Answer | None = None

    @property
    def is_fine(self) -> bool:
        """True unless there is a warning, or a wish that no index answers."""
        warned = any(finding.severity == "warning" for finding in self.findings)
        return not warned and (self.answer is None or self.answer.call is not None)
