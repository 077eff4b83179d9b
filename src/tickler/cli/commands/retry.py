"""`tickler retry`: retry dead fires."""

from __future__ import annotations

from typing import Annotated

import typer

from tickler.cli.fire_actions import FireAction, run_on_each
from tickler.cli.options import ByOption, JsonOption, KeyOption, OwnerOption, StoreOption, YesOption, actor, flag, usage_error
from tickler.cli.output import confirmed, print_note, print_result
from tickler.cli.store_session import with_store
from tickler.client import Tickler
from tickler.observe.human_format import count, some

PAGE = 1_000  # fires per query

IdsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="FIRE_ID", help="Fires to retry, as listed by `tickler fires --state dead`.")
]
AllOption = Annotated[bool, flag("--all", help="Retry all dead fires, or those of --owner and --key.")]


def command(
    ids: IdsArgument = None,
    all_of_them: AllOption = False,
    owner: OwnerOption = None,
    key: KeyOption = None,
    yes: YesOption = False,
    by: ByOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Retry dead fires. Their attempts are counted from zero. With --all, show their number and ask first, on a terminal."""
    if bool(ids) == all_of_them:
        raise usage_error("pass ids of dead fires, or --all")
    if ids and (owner or key):
        raise usage_error("--owner and --key go with --all: leave them out with ids")
    if ids:
        run_on_each(store, ids, _RETRY, actor(by), as_json=as_json)
    else:
        retried = with_store(store, lambda tickler: _retry_all(tickler, owner, key, yes, actor(by)))
        if retried is None:
            raise typer.Exit(1)
        summary = some(retried, "fire queued for delivery", "fires queued for delivery")
        print_result({"retried": retried}, summary, as_json=as_json)


async def _retry_all(tickler: Tickler, owner: str | None, key: str | None, yes: bool, by: str) -> int | None:
    """Return the number of retried fires; None if the user declined."""
    dead = await _count(tickler, owner, key)
    if not dead:
        return 0
    whose = "" if owner is None else f" of {owner}" if key is None else f" of {owner}/{key}"
    print_note(f"{count(dead, 'dead fire')}{whose}")
    if not confirmed(f"retry {'it' if dead == 1 else 'them'}?", yes):
        return None
    sent = await tickler.fires.retry_all(owner=owner, key=key, by=by)
    await tickler.audit.record(by, "retried all", owner=owner, key=key, detail=f"{sent} fires")
    return sent


async def _count(tickler: Tickler, owner: str | None, key: str | None) -> int:
    page = await tickler.fires.list(state="dead", owner=owner, key=key, limit=PAGE)
    found = len(page.items)
    while page.next is not None:
        page = await tickler.fires.list(state="dead", owner=owner, key=key, limit=PAGE, after=page.next)
        found += len(page.items)
    return found


_RETRY = FireAction(
    name="retried",
    run=lambda tickler, id, by: tickler.fires.retry(id, by=by),
    done="queued for delivery",
    not_found="no dead fire {id}: see `tickler fires --state dead`",
)
