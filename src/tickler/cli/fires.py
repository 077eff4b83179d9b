"""`tickler fires`: what is owed, what was given up, and what happened."""

from __future__ import annotations

from typing import Annotated

import typer

from tickler.cli.options import FLAG, AfterOption, JsonOption, KeyOption, LimitOption, OwnerOption, StoreOption, misused
from tickler.cli.output import answer, remark
from tickler.cli.session import on_store
from tickler.cli.shown import show_fires, show_history
from tickler.fires import FireState, HistoryPage

StateOption = Annotated[FireState, typer.Option(help="Those in this state.")]
HistoryOption = Annotated[
    bool, typer.Option("--history", metavar=FLAG, help="With --owner and --key: what happened, the latest first.")
]


def command(
    state: StateOption = "open",
    owner: OwnerOption = None,
    key: KeyOption = None,
    history: HistoryOption = False,
    limit: LimitOption = 50,
    after: AfterOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show fires that are not settled, by their nominal instant; or the history of a schedule, which outlives it."""
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


def _tell_of_more(following: str | None, as_json: bool) -> None:
    if following and not as_json:
        remark(f"there are more: --after {following}")
