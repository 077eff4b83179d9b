"""`tickler migrate`: create or upgrade the schema of a store."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
from rich.console import Console

from tickler.cli.options import JsonOption, StoreOption, flag, required_store
from tickler.cli.output import print_json, print_line, print_result
from tickler.cli.progress import progress_lines
from tickler.connect import store_for_url
from tickler.database.progress import OnProgress
from tickler.database.store_url import parse_url
from tickler.errors import InvalidInput
from tickler.stores.optional import Distributed, PrintsDefinition
from tickler.stores.store import Store

PrintSql = Annotated[bool, flag("--print-sql", help="Print the complete schema as SQL, and change nothing.")]
PrintCloudFormation = Annotated[
    bool, flag("--print-cloudformation", help="Print the table as a CloudFormation template, and change nothing.")
]
PrintTerraform = Annotated[bool, flag("--print-terraform", help="Print the table for Terraform, and change nothing.")]
PrintIam = Annotated[bool, flag("--print-iam", help="Print the IAM policies of a worker and of an API process.")]
Shards = Annotated[int | None, typer.Option(min=1, help="Raise the number of index shards. Safe while workers run.")]
Home = Annotated[str | None, typer.Option(metavar="REGION", help="Move schedules to this region, after another one has failed.")]
ComeFrom = Annotated[
    str | None, typer.Option("--from", metavar="REGION", help="With --home: move only the schedules of this region.")
]


def command(
    store: StoreOption = None,
    print_sql: PrintSql = False,
    print_cloudformation: PrintCloudFormation = False,
    print_terraform: PrintTerraform = False,
    print_iam: PrintIam = False,
    shards: Shards = None,
    home: Home = None,
    come_from: ComeFrom = None,
    as_json: JsonOption = False,
) -> None:
    """Create or upgrade the schema of the store."""
    url = required_store(store)
    opened, name = store_for_url(url), parse_url(url).text
    printed: dict[str, bool] = {
        "sql": print_sql,
        "cloudformation": print_cloudformation,
        "terraform": print_terraform,
        "iam": print_iam,
    }
    wanted = [form for form, asked in printed.items() if asked]
    if wanted:
        if not isinstance(opened, PrintsDefinition):
            raise InvalidInput(f"{name} has no schema to print")
        _print({form: opened.definition(form) for form in wanted}, as_json)
        return
    messages: list[str] = []
    with progress_lines("migrating", messages.append if as_json else print_line) as on_progress:
        names = asyncio.run(_migrate(opened, name, shards, home, come_from, on_progress))
    ran = [f"ran {each}" for each in names]
    print_result({"store": name, "ran": names, "messages": messages}, *ran, f"{name} is up to date", as_json=as_json)


async def _migrate(
    store: Store, name: str, shards: int | None, home: str | None, come_from: str | None, on_progress: OnProgress
) -> list[str]:
    distributed = store if isinstance(store, Distributed) else None
    if distributed is None and (shards, home, come_from) != (None, None, None):
        raise InvalidInput(f"{name} has no shards and no regions: leave --shards and --home out")
    names = await store.migrate()
    if distributed is not None and shards is not None:
        await distributed.reshard(shards, on_progress)
    if distributed is not None and home is not None:
        await distributed.move_home(home, come_from, on_progress)
    return names


def _print(definitions: dict[str, str], as_json: bool) -> None:
    if as_json:
        print_json(definitions)
        return
    for text in definitions.values():
        Console().out(text, highlight=False, end="")
