"""`tickler fires`: what is owed, what was given up, and what happened."""

from __future__ import annotations

from typing import Annotated

import typer

from tickler.cli.fire_actions import FireAction, do_to_each
from tickler.cli.options import (
    FLAG,
    AfterOption,
    ByOption,
    JsonOption,
    KeyOption,
    LimitOption,
    OwnerOption,
    StoreOption,
    YesOption,
    misused,
    named,
)
from tickler.cli.output import agreed, answer, remark
from tickler.cli.rendering import show_fires, show_history
from tickler.cli.store_session import on_store
from tickler.fires.fires import HistoryPage
from tickler.model.fire import FireState
from tickler.observe.human_format import count

IdsArgument = Annotated[list[str] | None, typer.Argument(metavar="FIRE_ID", help="With --cancel: which.")]
StateOption = Annotated[FireState, typer.Option(help="Those in this state.")]
HistoryOption = Annotated[
    bool, typer.Option("--history", metavar=FLAG, help="With --owner and --key: what happened, the latest first.")
]
CancelOption = Annotated[bool, typer.Option("--cancel", metavar=FLAG, help="Never deliver those that are named, dead or not.")]


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
    """Show fires that are not settled, by their nominal instant; or the history of a schedule, which outlives it.

    With --cancel, those that are named are never delivered: a dead one that nobody wants is gone from the list.
    """
    if bool(ids) != cancel:
        raise misused("pass --cancel and the ids of fires together: `tickler fires --cancel FIRE_ID`")
    if cancel and (history or owner or key):
        raise misused("--cancel takes ids alone: leave --history, --owner and --key out")
    if ids:
        _cancel(store, ids, yes, named(by), as_json)
        return
    if history:
        _show_history(owner, key, limit, after, store, as_json)
        return
    page = on_store(store, lambda tickler: tickler.fires.list(state=state, owner=owner, key=key, limit=limit, after=after))
    if as_json:
        answer(page)
    elif page.items:
        show_fires(page.items)
    else:
        remark(f"no fire is {state}")
    _tell_of_more(page.next, as_json)


def _show_history(owner: str | None, key: str | None, limit: int, after: str | None, store: str | None, as_json: bool) -> None:
    if owner is None or key is None:
        raise misused("--history is that of one schedule: pass --owner and --key too")
    page: HistoryPage = on_store(store, lambda tickler: tickler.fires.history(owner, key, limit=limit, after=after))
    if as_json:
        answer(page)
    elif page.items:
        show_history(page.items)
    else:
        remark(f"nothing is remembered of {owner}/{key}")
    _tell_of_more(page.next, as_json)


def _cancel(store: str | None, ids: list[str], yes: bool, by: str, as_json: bool) -> None:
    if not agreed(f"never deliver {count(len(ids), 'fire')}?", yes):
        raise typer.Exit(1)
    do_to_each(store, ids, _CANCEL, by, as_json=as_json)


def _tell_of_more(following: str | None, as_json: bool) -> None:
    if following and not as_json:
        remark(f"there are more: --after {following}")


_CANCEL = FireAction(
    did="cancelled",
    do=lambda tickler, id, by: tickler.fires.cancel(id, by=by),
    done="is cancelled",
    refused="there is no fire {id} to cancel: see `tickler fires`, or wait if a worker has it right now",
)
