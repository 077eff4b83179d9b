"""What this worker was asked to deliver to and cannot: handlers and packages that other workers may have."""

from __future__ import annotations

import logging

from tickler.distribution import install_command
from tickler.model.delivery import Outcome
from tickler.model.target import HttpTarget, LambdaTarget, PythonTarget, SqsTarget, Target

EXTRAS: dict[type[Target], str] = {HttpTarget: "http", SqsTarget: "aws", LambdaTarget: "aws"}

MAX_MISSING = 50
REMEMBERED_MS = 15 * 60_000  # longer than what is given back is put off

log = logging.getLogger("tickler.deliver")


class MissingTargets:
    """By label, when each was last asked for. Each is logged once."""

    def __init__(self) -> None:
        self._met_at: dict[str, int] = {}
        self._logged: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._met_at)

    def met(self, label: str, detail: str, now_ms: int) -> None:
        self._met_at.pop(label, None)
        self._met_at[label] = now_ms  # the last to go
        if len(self._met_at) > MAX_MISSING:
            del self._met_at[next(iter(self._met_at))]
        if label not in self._logged and len(self._logged) < 10 * MAX_MISSING:
            self._logged.add(label)
            log.warning("%s: fires that need it are given back for workers that have it, and no attempt is counted", detail)

    def recent(self, now_ms: int) -> dict[str, int]:
        """Those that were asked for lately."""
        self._met_at = {label: at for label, at in self._met_at.items() if now_ms - at < REMEMBERED_MS}
        return dict(self._met_at)


def lacking(target: Target | None) -> Outcome:
    """Of a claim that nothing here delivers: it is given back. Says nothing of what is here, since owners read it."""
    return Outcome(verdict="release", detail=_nobody_delivers(target), obstacle="missing")


def _nobody_delivers(target: Target | None) -> str:
    if target is None:
        return "its schedule has no target that this worker can read: put it with one, upgrade this worker, or cancel the fire"
    if isinstance(target, PythonTarget):
        return f"the worker has no handler {target.handler!r}: register it there, or correct the name"
    extra = EXTRAS.get(type(target))
    remedy = f"install it with `{install_command(extra)}`" if extra else "register what does with deliver_with"
    return f"the worker has nothing that delivers to {type(target).__name__}: {remedy}"
