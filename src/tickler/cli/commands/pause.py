"""`tickler pause`: pause a schedule."""

from __future__ import annotations

from typing import Annotated

import typer

from tickler.cli.options import ByOption, JsonOption, KeyArgument, OwnerArgument, StoreOption, actor
from tickler.cli.output import print_json, print_line
from tickler.cli.store_session import with_store
from tickler.client import Tickler
from tickler.model.schedule import StoredSchedule
from tickler.model.schedule_json import stored_to_json

ReasonOption = Annotated[str | None, typer.Option(metavar="TEXT", help="Reason, shown until the schedule is resumed.")]


def command(
    owner: OwnerArgument,
    key: KeyArgument,
    reason: ReasonOption = None,
    by: ByOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Pause a schedule. Fires that are open are still delivered."""
    stored = with_store(store, lambda tickler: _pause(tickler, owner, key, reason, actor(by)))
    if as_json:
        print_json(stored_to_json(stored))
    else:
        print_line(f"{stored.id} paused")


async def _pause(tickler: Tickler, owner: str, key: str, reason: str | None, by: str) -> StoredSchedule:
    stored = await tickler.schedules.pause(owner, key, reason=reason)
    await tickler.audit.record(by, "paused", owner=owner, key=key, detail=reason)
    return stored
