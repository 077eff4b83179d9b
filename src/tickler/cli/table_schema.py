"""`tickler table show` and `tickler table advise`: look at a table, and at how full it is."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from tickler.cli.advice_rendering import show_advice
from tickler.cli.loading import load_table
from tickler.cli.options import JsonOption, TableArgument
from tickler.cli.output import print_json, print_result
from tickler.cli.schema_rendering import show_schema
from tickler.database.store_url import parse_url
from tickler.errors import InvalidInput
from tickler.table import Condition, Table
from tickler.table.measurement import SAMPLED_ITEMS, Measurement
from tickler.table.schema.page import GENERATOR, html_page

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


async def _measure(table: Table, url: str, sample: int) -> Measurement:
    """Measure a table as it is: nothing is created or reindexed."""
    opened = table.connect(url)
    await opened.engine.open(create=False)
    try:
        return await opened.measure(sample=sample)
    finally:
        await opened.close()
