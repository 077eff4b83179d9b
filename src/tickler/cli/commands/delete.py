"""`tickler delete`: remove a schedule."""

from __future__ import annotations

import typer

from tickler.cli.options import ByOption, JsonOption, KeyArgument, OwnerArgument, StoreOption, YesOption, named
from tickler.cli.output import agreed, answer, say
from tickler.cli.store_session import on_store
from tickler.client import Tickler
from tickler.errors import ScheduleNotFound


def command(
    owner: OwnerArgument,
    key: KeyArgument,
    yes: YesOption = False,
    by: ByOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a schedule, and cancel what it still owes; its history is kept. Asks first, on a terminal."""
    if not on_store(store, lambda tickler: _delete(tickler, owner, key, yes, named(by))):
        raise typer.Exit(1)
    if as_json:
        answer({"owner": owner, "key": key, "deleted": True})
    else:
        say(f"{owner}/{key} is deleted")


async def _delete(tickler: Tickler, owner: str, key: str, yes: bool, by: str) -> bool:
    if await tickler.schedules.get(owner, key) is None:
        raise ScheduleNotFound(owner, key)
    if not agreed(f"delete {owner}/{key}, and cancel what it still owes?", yes):
        return False
    if not await tickler.schedules.delete(owner, key):
        raise ScheduleNotFound(owner, key)
    await tickler.audit.record(by, "deleted", owner=owner, key=key)
    return True
