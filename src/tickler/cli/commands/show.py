"""`tickler show`: show one schedule."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from tickler.cli.options import JsonOption, KeyArgument, OwnerArgument, StoreOption
from tickler.cli.output import print_json, print_line
from tickler.cli.rendering import show_fires, show_history, show_schedule, upcoming_of
from tickler.cli.store_session import with_store
from tickler.client import Tickler
from tickler.errors import ScheduleNotFound
from tickler.model.fire import Entry, Fire, FireState, Health, health_to_json
from tickler.model.schedule import StoredSchedule
from tickler.model.schedule_json import stored_to_json
from tickler.when import in_words

MAX_FIRES = 10
STATES: tuple[FireState, ...] = ("open", "waiting", "dead")

NumberOption = Annotated[int, typer.Option("-n", min=0, max=1000, help="Number of next fires to show.")]
HistoryOption = Annotated[int, typer.Option("--history", min=0, max=1000, help="Number of history entries to show.")]


class ScheduleDetails(msgspec.Struct, frozen=True):
    """A schedule with its health, undelivered fires and latest history."""

    schedule: StoredSchedule
    health: Health
    fires: list[Fire]
    history: list[Entry]
    now_ms: int


def command(
    owner: OwnerArgument,
    key: KeyArgument,
    number: NumberOption = 5,
    history: HistoryOption = 5,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a schedule: its definition, next fires, undelivered fires and latest history."""
    details = with_store(store, lambda tickler: _read(tickler, owner, key, history))
    upcoming = upcoming_of(details.schedule, details.now_ms, number)
    if as_json:
        more: dict[str, object] = {"words": in_words(details.schedule.when), "upcoming": [each.to_json() for each in upcoming]}
        more |= {"fires": details.fires, "history": details.history}
        print_json(stored_to_json(details.schedule) | health_to_json(details.health) | more)
        return
    show_schedule(details.schedule, upcoming, details.health)
    if details.fires:
        print_line("", "undelivered:")
        show_fires(details.fires)
    if details.history:
        print_line("", "history:")
        show_history(details.history)


async def _read(tickler: Tickler, owner: str, key: str, number: int) -> ScheduleDetails:
    schedule = await tickler.schedules.get(owner, key)
    if schedule is None:
        raise ScheduleNotFound(owner, key)
    fires: list[Fire] = []
    for state in STATES:
        fires += (await tickler.fires.list(state=state, owner=owner, key=key, limit=MAX_FIRES)).items
    history = (await tickler.fires.history(owner, key, limit=number)).items if number else []
    health = (await tickler.fires.health([schedule.id]))[schedule.id]
    return ScheduleDetails(schedule, health, fires, history, tickler.now_ms())
