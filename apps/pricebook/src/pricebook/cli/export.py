"""`pricebook export`: prices into a file."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from pricebook.app import Pricebook
from pricebook.bulk.export import ExportOptions, Exports
from pricebook.bulk.format_names import read_delimiter, read_format
from pricebook.cli.progress import progress_bars
from pricebook.cli.session import OPERATOR, run

FAILED = 1

Format = Annotated[str, typer.Option(metavar="FORMAT", help="csv or ndjson.")]
Stores = Annotated[list[str] | None, typer.Option("--store", metavar="STORE", help="A store; may be repeated. By default all.")]
Channels = Annotated[list[str] | None, typer.Option("--channel", metavar="CHANNEL", help="A channel; may be repeated.")]
Types = Annotated[list[str] | None, typer.Option("--type", metavar="TYPE", help="A type of prices; may be repeated.")]
Delimiter = Annotated[str, typer.Option(metavar="CHARACTER", help="Between the fields of a CSV: , or ;")]


def export(
    format: Format = "ndjson",
    delimiter: Delimiter = ",",
    stores: Stores = None,
    channels: Channels = None,
    types: Types = None,
) -> None:
    """Write the prices that count now to standard output. Importing them changes nothing."""
    options = ExportOptions(
        format=read_format(format, "--format"),
        delimiter=read_delimiter(delimiter, "--delimiter"),
        stores=tuple(stores or ()),
        channels=tuple(channels or ()),
        types=tuple(types or ()),
    )

    async def work(book: Pricebook) -> None:
        found = await Exports(book.db, book.now, book.timing).export(OPERATOR, options)
        written = 0
        with progress_bars() as on_progress:
            async for piece in found.pieces:
                sys.stdout.buffer.write(piece)
                written += len(piece)
                on_progress("exporting, bytes", written, None)
        sys.stdout.buffer.flush()

    try:
        run(work)
    except BrokenPipeError:  # whoever reads has enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(FAILED) from None
