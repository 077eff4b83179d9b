"""`tickler resume`: let a schedule fire again."""

from __future__ import annotations

import shlex

from tickler.cli.options import ByOption, JsonOption, KeyArgument, OwnerArgument, StoreOption, named
from tickler.cli.output import answer, say
from tickler.cli.store_session import on_store
from tickler.cli.time_format import utc
from tickler.client import Tickler
from tickler.errors import InvalidInput, NeverFires
from tickler.model.schedule import StoredSchedule
from tickler.model.schedule_json import stored_to_json


def command(
    owner: OwnerArgument, key: KeyArgument, by: ByOption = None, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """Let a schedule fire again, from now on: what lay in between was not missed."""
    stored = on_store(store, lambda tickler: _resume(tickler, owner, key, named(by)))
    if as_json:
        answer(stored_to_json(stored))
    else:
        coming = "" if stored.next_fire_at is None else f", due next at {utc(stored.next_fire_at)} UTC"
        say(f"{stored.id} is {stored.state}{coming}")


async def _resume(tickler: Tickler, owner: str, key: str, by: str) -> StoredSchedule:
    try:
        stored = await tickler.schedules.resume(owner, key)
    except NeverFires as error:
        place = f"{shlex.quote(owner)} {shlex.quote(key)}"
        raise InvalidInput(
            f"{error.sentence}; give it another time with `tickler update {place} --when …`, then resume it"
        ) from None
    await tickler.audit.record(by, "resumed", owner=owner, key=key)
    return stored
