"""`tickler list`: schedules, by owner and key."""

from __future__ import annotations

from typing import Annotated

import typer

from tickler.cli.options import AfterOption, JsonOption, LimitOption, OwnerOption, StoreOption
from tickler.cli.output import answer, remark
from tickler.cli.session import on_store
from tickler.cli.shown import show_schedules
from tickler.schedule import State
from tickler.schedule_json import stored_to_json

StateOption = Annotated[State | None, typer.Option(help="Only those in this state.")]
PrefixOption = Annotated[str | None, typer.Option("--key-prefix", metavar="TEXT", help="With --owner: keys that begin so.")]


def command(
    owner: OwnerOption = None,
    key_prefix: PrefixOption = None,
    state: StateOption = None,
    limit: LimitOption = 50,
    after: AfterOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show schedules, by owner and key."""
    page = on_store(
        store,
        lambda tickler: tickler.schedules.list(owner=owner, key_prefix=key_prefix, state=state, limit=limit, after=after),
    )
    if as_json:
        answer({"items": [stored_to_json(each) for each in page.items], "next": page.next})
        return
    if not page.items:
        remark("there is no such schedule" if owner or state else "there are no schedules")
        return
    show_schedules(page.items)
    if page.next:
        remark(f"there are more: --after {page.next}")
