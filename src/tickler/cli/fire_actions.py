"""What people do to fires by their ids: each for itself, and noted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import typer

from tickler.cli.app import NOT_FOUND
from tickler.cli.output import answer, remark, say
from tickler.cli.store_session import on_store
from tickler.client import Tickler
from tickler.errors import FireNotFound
from tickler.model.fire import Fire


class FireAction(NamedTuple):
    """`did` names it, in the log and in JSON; `done` is said of each, and `refused` of each that is not there for it."""

    did: str
    do: Callable[[Tickler, str, str], Awaitable[Fire]]  # with the id, and by whom
    done: str
    refused: str


def do_to_each(store: str | None, ids: Sequence[str], deed: FireAction, by: str, *, as_json: bool) -> None:
    done, refused = on_store(store, lambda tickler: _done_and_refused(tickler, ids, deed, by))
    for id in refused:
        remark(f"tickler: {deed.refused.format(id=id)}")
    if as_json:
        answer({deed.did: len(done), "ids": done, "refused": refused})
    for id in [] if as_json else done:
        say(f"{id} {deed.done}")
    if refused:
        raise typer.Exit(NOT_FOUND)


async def _done_and_refused(tickler: Tickler, ids: Sequence[str], deed: FireAction, by: str) -> tuple[list[str], list[str]]:
    done: list[str] = []
    refused: list[str] = []
    for id in ids:
        try:
            fire = await deed.do(tickler, id, by)
        except FireNotFound:
            refused.append(id)
            continue
        done.append(id)
        await tickler.audit.record(by, deed.did, owner=fire.owner, key=fire.key, detail=id)
    return done, refused
