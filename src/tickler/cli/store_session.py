"""Runs what a command does on the store that was named."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tickler.cli.options import needed
from tickler.client import Tickler
from tickler.connect import connect, parse_url

T = TypeVar("T")


def on_store(store: str | None, work: Callable[[Tickler], Awaitable[T]], *, create: bool = False) -> T:
    """Open the store, work, and close it. With `create`, tables that are missing are made, if the store does that, and told of.

    Whoever only looks does not make a store of one that was mistyped.
    """
    url = needed(store)
    if create:
        logging.basicConfig(level=logging.INFO, format="tickler: %(message)s")
    return asyncio.run(_worked(url, work, None if create else False))


def made_if_asked(url: str) -> bool | None:
    """As `connect` takes `create`: for who works on a store that is there, and makes one only where its URL says create=1.

    One that was mistyped would be empty, and to find nothing due in it for ever looks as if all were well.
    """
    return None if "create" in parse_url(url).parameters else False


async def _worked(url: str, work: Callable[[Tickler], Awaitable[T]], create: bool | None) -> T:
    async with connect(url, create=create) as tickler:
        return await work(tickler)
