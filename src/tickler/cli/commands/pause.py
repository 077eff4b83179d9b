"""`tickler pause`: hold a schedule's fires."""

from __future__ import annotations

from typing import Annotated

import typer

from tickler.cli.options import ByOption, JsonOption, KeyArgument, OwnerArgument, StoreOption, named
from tickler.cli.output import answer, say
from tickler.cli.store_session import on_store
from tickler.client import Tickler
from tickler.model.schedule import StoredSchedule
from tickler.model.schedule_json import stored_to_json

ReasonOption = Annotated[str | None, typer.Option(metavar="TEXT", help="Why: is shown until it is resumed.")]


def command(
    owner: OwnerArgument,
    key: KeyArgument,
    reason: ReasonOption = None,
    by: ByOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hold new fires of a schedule; those that are open finish."""
    stored = on_store(store, lambda tickler: _pause(tickler, owner, key, reason, named(by)))
    if as_json:
        answer(stored_to_json(stored))
    else:
        say(f"{stored.id} is paused")


async def _pause(tickler: Tickler, owner: str, key: str, reason: str | None, by: str) -> StoredSchedule:
    stored = await tickler.schedules.pause(owner, key, reason=reason)
    await tickler.audit.record(by, "paused", owner=owner, key=key, detail=reason)
    return stored
