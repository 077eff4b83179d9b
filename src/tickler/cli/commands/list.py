"""`tickler list`: list schedules."""

from __future__ import annotations

from typing import Annotated

import typer

from tickler.cli.options import AfterOption, JsonOption, LimitOption, OwnerOption, StoreOption, flag
from tickler.cli.output import print_json, print_note
from tickler.cli.rendering import show_schedules
from tickler.cli.store_session import with_store
from tickler.client import Tickler
from tickler.model.fire import Health, health_to_json
from tickler.model.schedule import Id, State
from tickler.model.schedule_json import stored_to_json
from tickler.schedules.schedules import Page

StateOption = Annotated[State | None, typer.Option(help="Show schedules in this state only.")]
FailingOption = Annotated[bool, flag("--failing", help="Show only schedules with a dead fire.")]
PrefixOption = Annotated[
    str | None, typer.Option("--key-prefix", metavar="TEXT", help="Show only keys that start with this; needs --owner.")
]


def command(
    owner: OwnerOption = None,
    key_prefix: PrefixOption = None,
    state: StateOption = None,
    failing: FailingOption = False,
    limit: LimitOption = 50,
    after: AfterOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """List schedules by owner and key, with their last result."""

    async def read(tickler: Tickler) -> tuple[Page, dict[Id, Health]]:
        page = await tickler.schedules.list(
            owner=owner, key_prefix=key_prefix, state=state, failing=failing, limit=limit, after=after
        )
        return page, await tickler.fires.health(each.id for each in page.items)

    page, health = with_store(store, read)
    if as_json:
        items = [stored_to_json(each) | health_to_json(health[each.id]) for each in page.items]
        print_json({"items": items, "next": page.next})
        return
    if not page.items:
        print_note(_nothing_found(owner, key_prefix, state, failing, after))
        return
    show_schedules(page.items, health)
    if page.next:
        print_note(f"more: --after {page.next}")


def _nothing_found(owner: str | None, key_prefix: str | None, state: State | None, failing: bool, after: str | None) -> str:
    """Repeat the filters: an owner without schedules says nothing about the others."""
    kind = " ".join(word for word in ("more" if after else "", "failing" if failing else "", state or "", "schedules") if word)
    found = f"{owner} has no {kind}" if owner else f"no {kind}"
    return f"{found} whose key starts with {key_prefix}" if key_prefix else found
