"""`tickler resume`: resume a paused schedule."""

from __future__ import annotations

import shlex

from tickler.cli.options import ByOption, JsonOption, KeyArgument, OwnerArgument, StoreOption, actor
from tickler.cli.output import print_result
from tickler.cli.store_session import with_store
from tickler.cli.time_format import utc
from tickler.client import Tickler
from tickler.errors import InvalidInput, NeverFires
from tickler.model.schedule import StoredSchedule
from tickler.model.schedule_json import stored_to_json


def command(
    owner: OwnerArgument, key: KeyArgument, by: ByOption = None, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """Resume a paused schedule from now on. Fires in the pause do not count as missed."""
    stored = with_store(store, lambda tickler: _resume(tickler, owner, key, actor(by)))
    following = "" if stored.next_fire_at is None else f", due next at {utc(stored.next_fire_at)} UTC"
    print_result(stored_to_json(stored), f"{stored.id} is {stored.state}{following}", as_json=as_json)


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
