"""`tickler fires`: list and cancel fires, or show a history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from tickler.cli.fire_actions import FireAction, run_on_each
from tickler.cli.options import (
    AfterOption,
    ByOption,
    JsonOption,
    KeyOption,
    LimitOption,
    OwnerOption,
    StoreOption,
    YesOption,
    actor,
    flag,
    usage_error,
)
from tickler.cli.output import confirmed, print_json, print_note
from tickler.cli.rendering import show_fires, show_history
from tickler.cli.store_session import with_store
from tickler.fires.fires import FirePage, HistoryPage
from tickler.model.fire import FireState
from tickler.observe.human_format import count

IdsArgument = Annotated[list[str] | None, typer.Argument(metavar="FIRE_ID", help="Fires to cancel, with --cancel.")]
StateOption = Annotated[FireState, typer.Option(help="Show fires in this state.")]
HistoryOption = Annotated[
    bool, flag("--history", help="Show the history of a schedule, the latest first; needs --owner and --key.")
]
CancelOption = Annotated[bool, flag("--cancel", help="Cancel the given fires: they are never delivered.")]


def command(
    ids: IdsArgument = None,
    state: StateOption = "open",
    owner: OwnerOption = None,
    key: KeyOption = None,
    history: HistoryOption = False,
    cancel: CancelOption = False,
    yes: YesOption = False,
    by: ByOption = None,
    limit: LimitOption = 50,
    after: AfterOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """List undelivered fires by nominal time. With --history, show what happened to a schedule, also after it was deleted.

    With --cancel, cancel fires by id, for example dead ones that you do not want to retry.
    """
    if bool(ids) != cancel:
        raise usage_error("--cancel and fire ids go together: `tickler fires --cancel FIRE_ID`")
    if cancel and (history or owner or key):
        raise usage_error("--cancel takes fire ids only: leave out --history, --owner and --key")
    if ids:
        if not confirmed(f"cancel {count(len(ids), 'fire')}?", yes):
            raise typer.Exit(1)
        run_on_each(store, ids, _CANCEL, actor(by), as_json=as_json)
        return
    if history:
        if owner is None or key is None:
            raise usage_error("--history shows one schedule: pass --owner and --key too")
        entries = with_store(store, lambda tickler: tickler.fires.history(owner, key, limit=limit, after=after))
        _show_page(entries, lambda: show_history(entries.items), f"no history of {owner}/{key}", as_json)
        return
    fires = with_store(store, lambda tickler: tickler.fires.list(state=state, owner=owner, key=key, limit=limit, after=after))
    _show_page(fires, lambda: show_fires(fires.items), f"no {state} fires", as_json)


def _show_page(page: FirePage | HistoryPage, show: Callable[[], None], nothing: str, as_json: bool) -> None:
    if as_json:
        print_json(page)
        return
    if page.items:
        show()
    else:
        print_note(nothing)
    if page.next:
        print_note(f"more: --after {page.next}")


_CANCEL = FireAction(
    name="cancelled",
    run=lambda tickler, id, by: tickler.fires.cancel(id, by=by),
    done="cancelled",
    not_found="no fire {id} to cancel: see `tickler fires`; if a worker is delivering it, wait",
)
