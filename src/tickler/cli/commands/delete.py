"""`tickler delete`: delete a schedule."""

from __future__ import annotations

import typer

from tickler.cli.options import ByOption, JsonOption, KeyArgument, OwnerArgument, StoreOption, YesOption, actor
from tickler.cli.output import confirmed, print_result
from tickler.cli.store_session import with_store
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
    """Delete a schedule and cancel its undelivered fires. The history is kept. On a terminal, ask first."""
    if not with_store(store, lambda tickler: _delete(tickler, owner, key, yes, actor(by))):
        raise typer.Exit(1)
    print_result({"owner": owner, "key": key, "deleted": True}, f"{owner}/{key} deleted", as_json=as_json)


async def _delete(tickler: Tickler, owner: str, key: str, yes: bool, by: str) -> bool:
    if await tickler.schedules.get(owner, key) is None:
        raise ScheduleNotFound(owner, key)
    if not confirmed(f"delete {owner}/{key} and cancel its undelivered fires?", yes):
        return False
    if not await tickler.schedules.delete(owner, key):
        raise ScheduleNotFound(owner, key)
    await tickler.audit.record(by, "deleted", owner=owner, key=key)
    return True
