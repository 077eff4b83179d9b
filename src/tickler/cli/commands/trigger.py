"""`tickler trigger`: fire a schedule now."""

from __future__ import annotations

from tickler.cli.options import ByOption, JsonOption, KeyArgument, OwnerArgument, StoreOption, actor
from tickler.cli.output import print_result
from tickler.cli.store_session import with_store
from tickler.client import Tickler
from tickler.model.fire import Fire


def command(
    owner: OwnerArgument, key: KeyArgument, by: ByOption = None, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """Fire a schedule now, even if it is paused. A worker delivers the fire."""

    async def trigger(tickler: Tickler) -> Fire:
        fire = await tickler.trigger(owner, key)
        await tickler.audit.record(actor(by), "triggered", owner=owner, key=key, detail=fire.id)
        return fire

    fire = with_store(store, trigger)
    print_result(fire, f"{owner}/{key} queued for delivery as {fire.id}", as_json=as_json)
