"""`tickler table`: create, reindex and look at the tables of an application."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from tickler.cli.advice_rendering import show_advice
from tickler.cli.loading import load_table
from tickler.cli.options import JsonOption, StoreOption, TableArgument, flag, required_store
from tickler.cli.output import print_json, print_note, print_result
from tickler.cli.schema_rendering import show_schema
from tickler.cli.table_streams import consumers, discard, forget, parked, retry
from tickler.database.dynamodb_url import table_of
from tickler.database.extras import needing_extra
from tickler.database.progress import OnProgress, progress_bar
from tickler.database.store_url import parse_url
from tickler.errors import InvalidInput
from tickler.table import Condition, Table
from tickler.table.index_texts import outdated, read_index_texts
from tickler.table.measurement import SAMPLED_ITEMS, Measurement
from tickler.table.schema.page import GENERATOR, html_page

app = typer.Typer(help="Create, reindex and look at the tables of an application.", no_args_is_help=True)

PrintCloudFormation = Annotated[
    bool, flag("--print-cloudformation", help="Print the DynamoDB table as a CloudFormation template, and change nothing.")
]
HtmlOption = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write one page of HTML that needs nothing else.")
]
# Without an environment variable: a table is read only if somebody says so here.
MeasuredStoreOption = Annotated[
    str | None, typer.Option("--store", metavar="URL", help="Measure the table there: how full each index is.")
]
SampleOption = Annotated[
    int, typer.Option("--sample", min=1, help="On DynamoDB, the most items to read of the table and of each index.")
]
RateOption = Annotated[
    float | None,
    typer.Option("--writes-per-second", min=0, metavar="N", help="The highest rate of writes that a single partition gets."),
]
FindOption = Annotated[
    str | None,
    typer.Option("--find", metavar="CONDITION", help="Say how to find these items, as in \"Order.status == 'pending'\"."),
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


@app.command()
def show(
    table: TableArgument,
    html: HtmlOption = None,
    store: MeasuredStoreOption = None,
    sample: SampleOption = SAMPLED_ITEMS,
    as_json: JsonOption = False,
) -> None:
    """Show which items write which key, while what, and which calls that answers. With --store, how full each index is."""
    defined = _load_with_entities(table)
    schema = defined.describe()
    source = None if store is None else parse_url(store).text
    measured = _measured(defined, store, sample)
    if html is not None:
        _write_page(html, html_page(schema, measured, source))
        print_result({"html": str(html)}, f"{html} written", as_json=as_json)
    elif as_json:
        print_json({"schema": schema, "measured": measured})
    else:
        show_schema(schema, measured, source)


@app.command()
def advise(
    table: TableArgument,
    store: MeasuredStoreOption = None,
    sample: SampleOption = SAMPLED_ITEMS,
    writes_per_second: RateOption = None,
    find: FindOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what to change about the indexes. Exit code 1 means warnings, or a --find that no index answers."""
    defined = _load_with_entities(table)
    wish = None if find is None else _condition(find, table.partition(":")[0])
    advice = defined.advise(_measured(defined, store, sample), writes_per_second=writes_per_second, find=wish)
    if as_json:
        print_json(advice)
    else:
        show_advice(advice)
    if not advice.is_fine:
        raise typer.Exit(1)


def _condition(text: str, module: str) -> Condition[Any]:
    """Evaluate an expression of the operator in the module of the table, which was imported for them, too."""
    try:
        found = eval(text, dict(vars(sys.modules[module])))  # noqa: S307  # it is what somebody typed who can run any code here
    except Exception as error:
        raise InvalidInput(f"--find {text}: {error}: write a condition as in Order.status == 'pending'") from None
    if not isinstance(found, Condition):
        raise InvalidInput(f"--find {text}: that is a {type(found).__name__}: write a condition as in Order.status == 'pending'")
    return found


def _measured(table: Table, url: str | None, sample: int) -> Measurement | None:
    if url is None:
        return None
    with Console(stderr=True).status("measuring …"):
        return asyncio.run(_measure(table, url, sample))


def _write_page(file: Path, page: str) -> None:
    """Write a page over an older one, but over nothing else."""
    try:
        if file.exists() and GENERATOR not in file.read_text(encoding="utf-8", errors="replace")[:1_000]:
            raise InvalidInput(f"{file} already exists, and is no page of `{GENERATOR}`: name another file")
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written: {error.strerror}: name another file") from None


def _load_with_entities(name: str) -> Table:
    table = load_table(name)
    if not table.entities:
        raise InvalidInput(f"{name} has no entities: name the module that defines them, or import it there")
    return table


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


async def _measure(table: Table, url: str, sample: int) -> Measurement:
    """Measure a table as it is: nothing is created or reindexed."""
    opened = table.connect(url)
    await opened.engine.open(create=False)
    try:
        return await opened.measure(sample=sample)
    finally:
        await opened.close()


for of_streams in (consumers, parked, retry, discard, forget):
    app.command()(of_streams)
