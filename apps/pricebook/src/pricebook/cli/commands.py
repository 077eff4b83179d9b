"""All commands, and how they end."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from pricebook.cli import background, bulk, export, load, people, receivers, serve, stores, tokens
from pricebook.errors import NotFound, PricebookError
from tickler.errors import TicklerError

FAILED = 1
NOT_FOUND = 3

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_show_locals=False)
app.command("serve")(serve.serve_command)
app.command("load")(load.load)
app.command("import")(bulk.import_)
app.command("job")(bulk.job)
app.command("export")(export.export)
app.add_typer(stores.app, name="store")
app.add_typer(people.app, name="person")
app.add_typer(tokens.app, name="token")
app.add_typer(receivers.app, name="receiver")
app.command("sweep")(background.sweep_once)
app.command("tick")(background.tick)


@app.callback()
def root() -> None:
    """Prices that change at midnight, in thousands of stores."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command. An error is one line on stderr and exit code 1, or 3 if something was not found."""
    try:
        app(arguments)
    except (PricebookError, TicklerError) as error:
        typer.echo(f"pricebook: {error}", err=True)
        sys.exit(NOT_FOUND if isinstance(error, NotFound) else FAILED)
