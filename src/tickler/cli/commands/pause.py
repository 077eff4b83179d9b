"""`tickler pause`: pause a schedule."""

from __future__ import annotations

from typing import Annotated

import typer

from tickler.cli.options import ByOption, JsonOption, KeyArgument, OwnerArgument, StoreOption, actor
from tickler.cli.output import print_result
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

    async def pause(tickler: Tickler) -> StoredSchedule:
        stored = await tickler.schedules.pause(owner, key, reason=reason)
        await tickler.audit.record(actor(by), "paused", owner=owner, key=key, detail=reason)
        return stored

    stored = with_store(store, pause)
    print_result(stored_to_json(stored), f"{stored.id} paused", as_json=as_json)
