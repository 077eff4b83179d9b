"""`tickler table`: create, reindex and look at the tables of an application."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
from rich.console import Console

from tickler.cli.loading import load_table
from tickler.cli.options import JsonOption, StoreOption, TableArgument, flag, required_store
from tickler.cli.output import print_json, print_note, print_result
from tickler.cli.table_schema import advise, show
from tickler.cli.table_streams import consumers, discard, forget, parked, retry
from tickler.database.dynamodb_url import table_of
from tickler.database.extras import needing_extra
from tickler.database.progress import OnProgress, progress_bar
from tickler.database.store_url import parse_url
from tickler.table import Table
from tickler.table.index_texts import outdated, read_index_texts

app = typer.Typer(help="Create, reindex and look at the tables of an application.", no_args_is_help=True)

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
    defined = load_table(table)
    if print_cloudformation:
        _print_cloudformation(defined, store, as_json)
        return
    url = required_store(store)
    name = parse_url(url).text
    created, changed = asyncio.run(_create(defined, url))
    print_result(
        {"table": defined.name, "store": name, "created": created, "outdated": changed},
        f"{defined.name}: created {', '.join(created)} in {name}" if created else f"{defined.name} is up to date in {name}",
        as_json=as_json,
    )
    if changed:
        print_note(
            f"tickler: {defined.name} has items that were written before {', '.join(changed)} was defined like this: "
            f"run `tickler table reindex {table}`"
        )


@app.command()
def reindex(table: TableArgument, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Write the keys of all items anew. Needed after the definition of an index has changed, and safe while others write."""
    defined, url = load_table(table), required_store(store)
    with progress_bar("indexing") as on_progress:
        changed = asyncio.run(_reindex(defined, url, on_progress))
    items = "1 item" if changed == 1 else f"{changed:,} items"
    print_result({"table": defined.name, "changed": changed}, f"{defined.name}: {items} had other keys", as_json=as_json)


def _print_cloudformation(table: Table, store: str | None, as_json: bool) -> None:
    """Print the template, whatever the store is: a table that is developed on SQLite may go to DynamoDB later."""
    url = parse_url(store) if store else None
    name = table_of(url) if url is not None and url.scheme == "dynamodb" else table.name
    schema = needing_extra("tickler.table.engines.dynamodb.schema", "--print-cloudformation")
    text: str = schema.cloudformation(name, table.gsis, stream=table.stream)
    if as_json:
        print_json({"cloudformation": text})
    else:
        Console().out(text, highlight=False, end="")


async def _create(table: Table, url: str) -> tuple[list[str], list[str]]:
    """Return what was created, and which indexes are defined otherwise than when their items were written."""
    engine = table.connect(url).engine
    created = await engine.open(create=True)
    try:
        has_items = await engine.has_more_than(0)
        return created, outdated(table, await read_index_texts(engine.metadata)) if has_items else []
    finally:
        await engine.close()


async def _reindex(table: Table, url: str, on_progress: OnProgress) -> int:
    opened = table.connect(url)
    await opened.engine.open(create=False)
    try:
        return await opened.reindex(on_progress=on_progress)
    finally:
        await opened.close()


for look_or_stream in (show, advise, consumers, parked, retry, discard, forget):
    app.command()(look_or_stream)
