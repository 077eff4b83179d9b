"""`tickler table`: create and reindex the tables of an application."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
from rich.console import Console

from tickler.cli.loading import load_object
from tickler.cli.options import JsonOption, StoreOption, flag, required_store
from tickler.cli.output import print_result
from tickler.database.extras import needing_extra
from tickler.database.progress import OnProgress, progress_bar
from tickler.database.store_url import parse_url
from tickler.errors import InvalidInput
from tickler.table import Table

app = typer.Typer(help="Create and reindex the tables of an application.", no_args_is_help=True)

TableArgument = Annotated[
    str, typer.Argument(metavar="MODULE:TABLE", help="The table, as `shop.model:table`, with its entities in the same module.")
]
PrintCloudFormation = Annotated[
    bool, flag("--print-cloudformation", help="Print the DynamoDB table as a CloudFormation template, and change nothing.")
]


@app.command()
def create(
    table: TableArgument,
    store: StoreOption = None,
    print_cloudformation: PrintCloudFormation = False,
    as_json: JsonOption = False,
) -> None:
    """Create the table and the indexes that are missing."""
    defined = _load(table)
    if print_cloudformation:
        name = parse_url(store).location if store and store.startswith("dynamodb://") else defined.name
        schema = needing_extra("tickler.table.engines.dynamodb.schema", "--print-cloudformation")
        Console().out(schema.cloudformation(name, defined.gsis), highlight=False, end="")
        return
    url = required_store(store)
    asyncio.run(_create(defined, url))
    indexes = list(defined.gsis)
    print_result(
        {"table": defined.name, "store": parse_url(url).text, "indexes": indexes},
        f"{defined.name} is complete in {parse_url(url).text}: {', '.join(indexes) or 'no indexes'}",
        as_json=as_json,
    )


@app.command()
def reindex(table: TableArgument, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Write the keys of all items anew, after the definition of an index has changed. Safe while others write."""
    defined, url = _load(table), required_store(store)
    with progress_bar("indexing") as on_progress:
        changed = asyncio.run(_reindex(defined, url, on_progress))
    print_result(
        {"table": defined.name, "changed": changed}, f"{defined.name}: {changed:,} items had other keys", as_json=as_json
    )


def _load(name: str) -> Table:
    found = load_object(name, "table", "name a table as in shop.model:table")
    if not isinstance(found, Table):
        raise InvalidInput(f"{name} is a {type(found).__name__}: name a Table")
    return found


async def _create(table: Table, url: str) -> None:
    engine = table.connect(url).engine
    await engine.open(create=True)
    await engine.close()


async def _reindex(table: Table, url: str, on_progress: OnProgress) -> int:
    opened = table.connect(url)
    await opened.engine.open(create=True)
    try:
        return await opened.reindex(on_progress=on_progress)
    finally:
        await opened.close()
