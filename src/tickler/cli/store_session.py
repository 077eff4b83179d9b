"""Opens the store of `--store` for one command."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tickler.cli.options import required_store
from tickler.client import Tickler
from tickler.connect import connect
from tickler.database.store_url import parse_url

T = TypeVar("T")


def with_store(store: str | None, work: Callable[[Tickler], Awaitable[T]], *, create: bool = False) -> T:
    """Open the store, run `work`, and close it.

    With `create`, create missing tables where the store supports that, and log it. Commands that only read do not pass it: a
    mistyped URL must not create an empty store.
    """
    url = required_store(store)
    if create:
        logging.basicConfig(level=logging.INFO, format="tickler: %(message)s")
    return asyncio.run(_run(url, work, None if create else False))


def create_if_asked(url: str) -> bool | None:
    """Return the `create` argument of `connect` for a worker: create a store only if its URL says `create=1`.

    A worker on an empty store with a mistyped name would look healthy and find nothing due.
    """
    return None if "create" in parse_url(url).parameters else False


async def _run(url: str, work: Callable[[Tickler], Awaitable[T]], create: bool | None) -> T:
    async with connect(url, create=create) as tickler:
        return await work(tickler)
