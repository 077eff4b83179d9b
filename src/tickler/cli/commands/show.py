"""`tickler show`: all there is to know of one schedule."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from tickler.cli.options import JsonOption, KeyArgument, OwnerArgument, StoreOption
from tickler.cli.output import answer, say
from tickler.cli.rendering import show_fires, show_history, show_schedule, upcoming_of
from tickler.cli.store_session import on_store
from tickler.cli.time_format import upcoming_json
from tickler.client import Tickler
from tickler.errors import ScheduleNotFound
from tickler.model.fire import Entry, Fire, FireState, Health, health_to_json
from tickler.model.schedule import StoredSchedule
from tickler.model.schedule_json import stored_to_json
from tickler.when import in_words

MAX_FIRES = 10
STATES: tuple[FireState, ...] = ("open", "waiting", "dead")

NumberOption = Annotated[int, typer.Option("-n", min=0, max=1000, help="How many of its next fires to show.")]
HistoryOption = Annotated[int, typer.Option("--history", min=0, max=1000, help="How much of what happened last to show.")]


class Known(msgspec.Struct, frozen=True):
    """What the store has of a schedule."""

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
    """Show a schedule, its next fires, what it owes and what happened last."""
    known = on_store(store, lambda tickler: _known(tickler, owner, key, history))
    upcoming = upcoming_of(known.schedule, known.now_ms, number)
    if as_json:
        more = {"words": in_words(known.schedule.when), "upcoming": upcoming_json(upcoming)}
        answer(
            stored_to_json(known.schedule)
            | health_to_json(known.health)
            | more
            | {"fires": known.fires, "history": known.history}
        )
        return
    show_schedule(known.schedule, upcoming, known.health)
    if known.fires:
        say("", "owed:")
        show_fires(known.fires)
    if known.history:
        say("", "last:")
        show_history(known.history)


async def _known(tickler: Tickler, owner: str, key: str, number: int) -> Known:
    schedule = await tickler.schedules.get(owner, key)
    if schedule is None:
        raise ScheduleNotFound(owner, key)
    fires: list[Fire] = []
    for state in STATES:
        fires += (await tickler.fires.list(state=state, owner=owner, key=key, limit=MAX_FIRES)).items
    history = (await tickler.fires.history(owner, key, limit=number)).items if number else []
    health = (await tickler.fires.health([schedule.id]))[schedule.id]
    return Known(schedule, health, fires, history, tickler.now_ms())
