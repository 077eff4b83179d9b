"""`tickler table consumers | parked | retry | discard | forget`: the consumers of the changes of a table."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import msgspec
import typer

from tickler.cli.loading import load_table
from tickler.cli.options import JsonOption, LimitOption, StoreOption, TableArgument, YesOption, required_store, usage_error
from tickler.cli.output import confirmed, print_json, print_result, show_table
from tickler.errors import ConsumerNotFound
from tickler.observe.human_format import count, instant
from tickler.table import Consumer
from tickler.table.open_table import OpenTable
from tickler.table.streams.parking import ParkedChange
from tickler.table.streams.status import MAX_COUNTED, ConsumerStatus

T = TypeVar("T")

ConsumerArgument = Annotated[str, typer.Argument(metavar="CONSUMER", help="The name of a consumer.")]
IdArgument = Annotated[str | None, typer.Argument(metavar="ID", help="A parked change.")]
AllOption = Annotated[bool, typer.Option("--all", help="All parked changes of the consumer.")]


def consumers(table: TableArgument, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Show how the consumers of a table are doing. Exits with 1 if one has stopped."""
    found = _with_table(table, store, lambda db: db.consumers())
    if as_json:
        print_json({"consumers": [{**msgspec.to_builtins(each), "state": each.state} for each in found]})
    elif found:
        show_table(("consumer", "state", "waiting", "parked", "last moved"), [_row(each) for each in found])
    else:
        print_result(None, "no consumer has run on this table", as_json=False)
    if any(each.is_stopped for each in found):
        raise typer.Exit(1)


def parked(
    table: TableArgument,
    consumer: ConsumerArgument,
    limit: LimitOption = 50,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """List changes that keep failing, and those of the same items that wait behind them, oldest first."""
    found = _with_consumer(table, store, consumer, lambda each: each.parked(limit=limit))
    if as_json:
        print_json({"parked": [_parked_json(each) for each in found]})
    elif found:
        rows = [(each.id, each.record.entity, f"{each.record.pk} {each.record.sk}", each.error) for each in found]
        show_table(("id", "entity", "item", "error"), rows, unwrapped=("id",))
    else:
        print_result(None, f"{consumer} has parked nothing", as_json=False)


def retry(
    table: TableArgument,
    consumer: ConsumerArgument,
    id: IdArgument = None,
    all: AllOption = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask for another try of a parked change, or of all. The consumer makes it where it runs, within some seconds."""
    _check_choice(id, all)
    asked = _with_consumer(table, store, consumer, lambda each: each.retry(id))
    print_result({"asked": asked}, f"{count(asked, 'change')} will be tried again where {consumer} runs", as_json=as_json)


def discard(
    table: TableArgument,
    consumer: ConsumerArgument,
    id: IdArgument = None,
    all: AllOption = False,
    yes: YesOption = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete a parked change, or all, so that they are never delivered."""
    _check_choice(id, all)
    if not confirmed(f"Delete {'all parked changes' if all else 'this parked change'} of {consumer}?", yes=yes):
        raise typer.Exit(1)
    deleted = _with_consumer(table, store, consumer, lambda each: each.discard(id))
    print_result({"discarded": deleted}, f"{count(deleted, 'change')} deleted", as_json=as_json)


def forget(
    table: TableArgument,
    consumer: ConsumerArgument,
    yes: YesOption = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete the positions and the parked changes of a consumer that is gone for good, so that no changes are kept for it."""
    if not confirmed(f"Forget {consumer}, and what it has parked?", yes=yes):
        raise typer.Exit(1)
    _with_consumer(table, store, consumer, lambda each: each.forget())
    print_result({"forgotten": consumer}, f"{consumer} is forgotten", as_json=as_json)


def _with_consumer(table: str, store: str | None, name: str, work: Callable[[Consumer], Awaitable[T]]) -> T:
    """Call `work` with a consumer that has run on the table. `ConsumerNotFound` names those that have if it has not."""

    async def known(db: OpenTable) -> T:
        consumer = db.consumer(name)
        names = [status.name for status in await db.consumers()]
        if name not in names and not await consumer.parked(limit=1):
            raise ConsumerNotFound(name, table, names)
        return await work(consumer)

    return _with_table(table, store, known)


def _with_table(table: str, store: str | None, work: Callable[[OpenTable], Awaitable[T]]) -> T:
    async def run() -> T:
        async with load_table(table).connect(required_store(store), create=False) as db:
            return await work(db)

    return asyncio.run(run())


def _row(status: ConsumerStatus) -> tuple[str, ...]:
    more = "+" if status.waiting == MAX_COUNTED else ""
    waiting = "?" if status.waiting is None else f"{status.waiting:,}{more}"
    moved = instant(status.moved_at_ms, None) if status.moved_at_ms else "never"
    return status.name, status.state, waiting, f"{status.parked:,}", moved


def _parked_json(parked: ParkedChange) -> dict[str, object]:
    record = parked.record
    return {
        "id": parked.id, "entity": record.entity, "pk": record.pk, "sk": record.sk, "error": parked.error,
        "attempts": parked.attempts, "parked_at": parked.parked_at,
    }  # fmt: skip


def _check_choice(id: str | None, all: bool) -> None:
    if (id is None) != all:
        raise usage_error("name one parked change, or all of them with --all")
