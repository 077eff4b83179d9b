"""Targets that this worker was asked to deliver to and cannot: it lacks a handler or a package that other workers may have."""

from __future__ import annotations

import logging

from tickler.distribution import install_command
from tickler.model.delivery import Outcome
from tickler.model.target import HttpTarget, LambdaTarget, PythonTarget, SqsTarget, Target

EXTRAS: dict[type[Target], str] = {HttpTarget: "http", SqsTarget: "aws", LambdaTarget: "aws"}

MAX_MISSING = 50
REMEMBERED_MS = 15 * 60_000  # longer than the longest delay of a fire that was released

log = logging.getLogger("tickler.deliver")


class MissingTargets:
    """When each missing target was last asked for, by label. Each is logged once."""

    def __init__(self) -> None:
        self._asked_at: dict[str, int] = {}
        self._logged: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._asked_at)

    def add(self, label: str, detail: str, now_ms: int) -> None:
        self._asked_at.pop(label, None)
        self._asked_at[label] = now_ms  # now the newest
        if len(self._asked_at) > MAX_MISSING:
            del self._asked_at[next(iter(self._asked_at))]
        if label not in self._logged and len(self._logged) < 10 * MAX_MISSING:
            self._logged.add(label)
            log.warning("%s; fires that need it are released for other workers, and no attempt is counted", detail)

    def recent(self, now_ms: int) -> dict[str, int]:
        """Return those that were asked for lately, each with when."""
        self._asked_at = {label: at for label, at in self._asked_at.items() if now_ms - at < REMEMBERED_MS}
        return dict(self._asked_at)


def missing_target(target: Target | None) -> Outcome:
    """Return the outcome of a claim that this worker cannot deliver. Owners read it, so it does not say what the worker has."""
    return Outcome(verdict="release", detail=_detail(target), obstacle="missing")


def _detail(target: Target | None) -> str:
    if target is None:
        return "its schedule has no target that this worker can read: put it with one, upgrade this worker, or cancel the fire"
    if isinstance(target, PythonTarget):
        return f"the worker has no handler {target.handler!r}: register it there, or correct the name"
    extra = EXTRAS.get(type(target))
    remedy = f"install it with `{install_command(extra)}`" if extra else "register a deliverer with deliver_with"
    return f"the worker cannot deliver to {type(target).__name__}: {remedy}"
