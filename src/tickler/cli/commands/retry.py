"""`tickler retry`: send dead fires again."""

from __future__ import annotations

from typing import Annotated

import typer

from tickler.cli.fire_actions import FireAction, do_to_each
from tickler.cli.options import FLAG, ByOption, JsonOption, KeyOption, OwnerOption, StoreOption, YesOption, misused, named
from tickler.cli.output import agreed, answer, remark, say
from tickler.cli.store_session import on_store
from tickler.client import Tickler
from tickler.observe.human_format import count, some

PAGE = 1_000  # dead fires that are counted together

IdsArgument = Annotated[list[str] | None, typer.Argument(metavar="FIRE_ID", help="Ids, as `tickler fires` shows them.")]
AllOption = Annotated[bool, typer.Option("--all", metavar=FLAG, help="All that are dead, of an owner or a schedule if named.")]


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
    """Send dead fires again, with all their attempts. Of many, it says first how many, and asks, on a terminal."""
    if bool(ids) == all_of_them:
        raise misused("pass the ids of dead fires, or --all")
    if ids and (owner or key):
        raise misused("--owner and --key go with --all: ids say it already")
    if ids:
        do_to_each(store, ids, _RETRY, named(by), as_json=as_json)
    else:
        _retry_all(store, owner, key, yes, named(by), as_json)


def _retry_all(store: str | None, owner: str | None, key: str | None, yes: bool, by: str, as_json: bool) -> None:
    sent = on_store(store, lambda tickler: _send_all(tickler, owner, key, yes, by))
    if sent is None:
        raise typer.Exit(1)
    if as_json:
        answer({"retried": sent})
    else:
        say(some(sent, "fire is sent again", "fires are sent again"))


async def _send_all(tickler: Tickler, owner: str | None, key: str | None, yes: bool, by: str) -> int | None:
    """How many were; None when somebody thought better of it."""
    dead = await _count(tickler, owner, key)
    if not dead:
        return 0
    whose = "" if owner is None else f" of {owner}" if key is None else f" of {owner}/{key}"
    remark(f"{count(dead, 'dead fire')}{whose}")
    if not agreed(f"send {'it' if dead == 1 else 'them'} again?", yes):
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
    did="retried",
    do=lambda tickler, id, by: tickler.fires.retry(id, by=by),
    done="is sent again",
    refused="there is no dead fire {id}: see `tickler fires --state dead`",
)
