"""`tickler why`: why a schedule fired, or did not."""

from __future__ import annotations

from typing import Annotated

import typer

from tickler.cli.options import JsonOption, KeyArgument, OwnerArgument, StoreOption
from tickler.cli.output import answer, say, show_table
from tickler.cli.store_session import on_store
from tickler.cli.time_format import read_moment
from tickler.client import Tickler
from tickler.errors import ScheduleNotFound
from tickler.observe.why import Why

AtOption = Annotated[
    str | None, typer.Option("--at", metavar="TIME", help="An instant of its: ISO 8601, in its zone or with an offset.")
]


def command(
    owner: OwnerArgument, key: KeyArgument, at: AtOption = None, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """Say in one sentence why a schedule fired at an instant, or did not; or how it stands now. Then the facts."""
    why = on_store(store, lambda tickler: _why(tickler, owner, key, at))
    if as_json:
        answer(why)
        return
    say(why.sentence, "")
    show_table(["", "about", "fact"], [["" if fact.good else "!", fact.about, fact.says] for fact in why.facts])


async def _why(tickler: Tickler, owner: str, key: str, at: str | None) -> Why:
    schedule = await tickler.schedules.get(owner, key)
    if schedule is None and not (await tickler.fires.history(owner, key, limit=1)).items:
        raise ScheduleNotFound(owner, key)
    tz = "UTC" if schedule is None else schedule.tz
    return await tickler.why(owner, key, None if at is None else read_moment(at, tz, "at"))
