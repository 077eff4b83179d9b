"""`tickler trigger`: fire a schedule now."""

from __future__ import annotations

from tickler.cli.options import ByOption, JsonOption, KeyArgument, OwnerArgument, StoreOption, named
from tickler.cli.output import answer, say
from tickler.cli.store_session import on_store
from tickler.client import Tickler
from tickler.model.fire import Fire


def command(
    owner: OwnerArgument, key: KeyArgument, by: ByOption = None, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """Fire a schedule now, out of turn, paused or not; a worker delivers it."""
    fire = on_store(store, lambda tickler: _trigger(tickler, owner, key, named(by)))
    if as_json:
        answer(fire)
    else:
        say(f"{owner}/{key} fires now, as {fire.id}: a worker delivers it")


async def _trigger(tickler: Tickler, owner: str, key: str, by: str) -> Fire:
    fire = await tickler.trigger(owner, key)
    await tickler.audit.record(by, "triggered", owner=owner, key=key, detail=fire.id)
    return fire
