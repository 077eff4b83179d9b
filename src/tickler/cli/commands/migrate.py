"""`tickler migrate`: the store's schema, up to this version."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
from rich.console import Console

from tickler.cli.options import FLAG, JsonOption, StoreOption, needed
from tickler.cli.output import answer, say
from tickler.cli.progress import doing
from tickler.connect import parse_url, store_for_url
from tickler.database.progress import OnMessage
from tickler.errors import InvalidInput
from tickler.stores.optional import Distributed, PrintsDefinition
from tickler.stores.store import Store

PrintSql = Annotated[
    bool, typer.Option("--print-sql", metavar=FLAG, help="Print all of the schema as a script, and touch nothing.")
]
PrintCloudFormation = Annotated[
    bool,
    typer.Option("--print-cloudformation", metavar=FLAG, help="Print the table as a CloudFormation template, and touch nothing."),
]
PrintTerraform = Annotated[
    bool, typer.Option("--print-terraform", metavar=FLAG, help="Print the table for Terraform, and touch nothing.")
]
PrintIam = Annotated[
    bool, typer.Option("--print-iam", metavar=FLAG, help="Print the policies of a worker and of an API process.")
]
Shards = Annotated[int | None, typer.Option(min=1, help="Spread what is due over so many shards, while workers run.")]
Home = Annotated[str | None, typer.Option(metavar="REGION", help="Let this region claim what others did: after a failure.")]
ComeFrom = Annotated[str | None, typer.Option("--from", metavar="REGION", help="With --home: only what is at home there.")]


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
    """Bring the store's schema up to date."""
    url = needed(store)
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
    said: list[str] = []
    with doing("migrating", said.append if as_json else say) as tell:
        names = asyncio.run(_migrate(opened, name, shards, home, come_from, tell))
    if as_json:
        answer({"store": name, "ran": names, "said": said})
    else:
        say(*(f"ran {each}" for each in names), f"{name} is up to date")


async def _migrate(
    store: Store, name: str, shards: int | None, home: str | None, come_from: str | None, tell: OnMessage
) -> list[str]:
    distributed = store if isinstance(store, Distributed) else None
    if distributed is None and (shards, home, come_from) != (None, None, None):
        raise InvalidInput(f"{name} has no shards and no regions: leave --shards and --home out")
    names = await store.migrate()
    if distributed is not None and shards is not None:
        await distributed.reshard(shards, tell)
    if distributed is not None and home is not None:
        await distributed.move_home(home, come_from, tell)
    return names


def _print(definitions: dict[str, str], as_json: bool) -> None:
    if as_json:
        answer(definitions)
        return
    for text in definitions.values():
        Console().out(text, highlight=False, end="")
