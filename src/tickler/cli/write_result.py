"""Output of `tickler add` and `tickler update`: the schedule, the fields that were removed, and warnings."""

from __future__ import annotations

from typing import NamedTuple

from tickler.cli.output import print_json, print_note
from tickler.cli.rendering import show_schedule, upcoming_of
from tickler.client import Tickler
from tickler.model.schedule_json import stored_to_json
from tickler.schedules.schedules import Written

MAX_UPCOMING = 5


class WriteResult(NamedTuple):
    """The result of a write at `now_ms`, from which the next fires are computed."""

    written: Written
    now_ms: int
    warnings: list[str]


def result_of(tickler: Tickler, written: Written) -> WriteResult:
    return WriteResult(written, tickler.now_ms(), tickler.warnings(written.schedule.target))


def show_result(result: WriteResult, as_json: bool) -> None:
    stored, removed = result.written.schedule, result.written.removed
    upcoming = upcoming_of(stored, result.now_ms, MAX_UPCOMING)
    if as_json:
        more = {"warnings": result.warnings} if result.warnings else {}
        following = [each.to_json() for each in upcoming]
        print_json(stored_to_json(stored) | {"upcoming": following, "removed": removed} | more)
        return
    show_schedule(stored, upcoming)
    if removed:
        print_note(f"tickler: removed from {stored.id}: {', '.join(removed)}")
    for warning in result.warnings:
        print_note(f"warning: {warning}")
