"""Actions on fires by id: each id succeeds or fails on its own, and each success goes into the audit log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import typer

from tickler.cli.app import NOT_FOUND
from tickler.cli.output import print_json, print_line, print_note
from tickler.cli.store_session import with_store
from tickler.client import Tickler
from tickler.errors import FireNotFound
from tickler.model.fire import Fire


class FireAction(NamedTuple):
    """An action on one fire, and its messages. `name` is used in the audit log and in JSON."""

    name: str
    run: Callable[[Tickler, str, str], Awaitable[Fire]]  # with the fire's id and the actor's name
    done: str
    not_found: str


def run_on_each(store: str | None, ids: Sequence[str], action: FireAction, by: str, *, as_json: bool) -> None:
    done, not_found = with_store(store, lambda tickler: _run(tickler, ids, action, by))
    for id in not_found:
        print_note(f"tickler: {action.not_found.format(id=id)}")
    if as_json:
        print_json({action.name: len(done), "ids": done, "refused": not_found})
    for id in [] if as_json else done:
        print_line(f"{id} {action.done}")
    if not_found:
        raise typer.Exit(NOT_FOUND)


async def _run(tickler: Tickler, ids: Sequence[str], action: FireAction, by: str) -> tuple[list[str], list[str]]:
    done: list[str] = []
    not_found: list[str] = []
    for id in ids:
        try:
            fire = await action.run(tickler, id, by)
        except FireNotFound:
            not_found.append(id)
            continue
        done.append(id)
        await tickler.audit.record(by, action.name, owner=fire.owner, key=fire.key, detail=id)
    return done, not_found
