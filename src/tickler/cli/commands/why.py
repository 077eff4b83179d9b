"""`tickler why`: explain why a schedule fired or did not."""

from __future__ import annotations

from typing import Annotated

import typer

from tickler.cli.options import JsonOption, KeyArgument, OwnerArgument, StoreOption
from tickler.cli.output import print_json, print_line, show_table
from tickler.cli.store_session import with_store
from tickler.cli.time_format import parse_instant
from tickler.client import Tickler
from tickler.errors import ScheduleNotFound
from tickler.observe.why import Why

AtOption = Annotated[
    str | None, typer.Option("--at", metavar="TIME", help="Time to explain: ISO 8601, with an offset or in the schedule's zone.")
]


def command(
    owner: OwnerArgument, key: KeyArgument, at: AtOption = None, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """Explain why a schedule fired or did not. Prints one sentence and the facts behind it, for now or for --at."""
    why = with_store(store, lambda tickler: _why(tickler, owner, key, at))
    if as_json:
        print_json(why)
        return
    print_line(why.sentence, "")
    show_table(["", "about", "fact"], [["" if fact.good else "!", fact.about, fact.says] for fact in why.facts])


async def _why(tickler: Tickler, owner: str, key: str, at: str | None) -> Why:
    schedule = await tickler.schedules.get(owner, key)
    if schedule is None and not (await tickler.fires.history(owner, key, limit=1)).items:
        raise ScheduleNotFound(owner, key)
    tz = "UTC" if schedule is None else schedule.tz
    return await tickler.why(owner, key, None if at is None else parse_instant(at, tz, "at"))
