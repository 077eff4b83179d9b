"""`pricebook load`: all stores and prices of a new installation at once."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from pricebook.app import Pricebook
from pricebook.cli.progress import progress_bars
from pricebook.cli.session import run
from pricebook.editions.timing import midnight
from pricebook.errors import InvalidField, NotAllowed
from pricebook.loading.catalogue_file import CatalogueFile
from pricebook.loading.loader import Catalogue, load_catalogue
from pricebook.loading.made_catalogue import MadeCatalogue
from pricebook.model import Head
from tickler.errors import InvalidInput

MAX_MADE = 100_000  # stores, and products

File = Annotated[Path | None, typer.Argument(metavar="FILE", help="CSV or NDJSON, as `pricebook export` writes it.")]
Made = Annotated[
    tuple[int, int] | None, typer.Option("--made", metavar="STORES PRODUCTS", help="Make up stores and products instead.")
]
Zone = Annotated[str, typer.Option(metavar="ZONE", help="Time zone of the stores in FILE, such as Europe/Paris.")]
Currency = Annotated[str, typer.Option(metavar="CODE", help="Currency of lines without one, such as EUR.")]


def load(file: File = None, made: Made = None, zone: Zone = "UTC", currency: Currency = "") -> None:
    """Load stores and prices that do not exist yet, fast. Prices of stores that exist are changed by `pricebook import`."""
    if (file is None) == (made is None):
        raise InvalidField("FILE", "name a file, or give --made STORES PRODUCTS")
    catalogue = _made(made) if file is None else _from_file(file, zone, currency)

    async def work(book: Pricebook) -> int:
        try:
            with progress_bars() as on_progress:
                await load_catalogue(book.db, catalogue, book.now(), home=book.settings.region, on_progress=on_progress)
        except InvalidInput:
            await _refuse_known_stores(book, catalogue)
            raise
        return len(catalogue)

    count = run(work)
    typer.echo(f"loaded {count:,} prices of {len(list(catalogue.stores())):,} stores")


async def _refuse_known_stores(book: Pricebook, catalogue: Catalogue) -> None:
    """Say which store is there already, if one is."""
    for each in catalogue.stores():
        if await book.db.get(Head.key.id(each.store)) is not None:
            remedy = "change its prices with `pricebook import`, or leave it out"
            raise NotAllowed(f"there is a store {each.store!r} already, so nothing was loaded: {remedy}")


def _from_file(file: Path, zone: str, currency: str) -> Catalogue:
    midnight(date(2000, 1, 1), zone)  # refuses unknown zones
    return CatalogueFile(file, tz=zone, currency=currency)


def _made(sizes: tuple[int, int] | None) -> Catalogue:
    stores, products = sizes or (0, 0)
    if not 1 <= stores <= MAX_MADE or not 1 <= products <= MAX_MADE:
        raise InvalidField("--made", f"give 1 to {MAX_MADE:,} stores, and as many products")
    return MadeCatalogue(store_count=stores, product_count=products)
