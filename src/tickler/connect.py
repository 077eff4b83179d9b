"""The composition root: a URL becomes a Tickler. Only `connect.py` and `dynamodb.py` name a backend."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from importlib.metadata import entry_points
from ipaddress import ip_network
from typing import cast

import msgspec

from tickler.client import Settings, Tickler
from tickler.clock import Clock, SystemClock
from tickler.database.blocking import Blocking
from tickler.database.extras import needing_extra
from tickler.database.store_url import StoreUrl, parse_url
from tickler.errors import InvalidInput
from tickler.model.duration import Duration, to_duration
from tickler.model.fire import HISTORY_RETENTION_MS
from tickler.stores.store import Store

MAX_HISTORY_RETENTION = timedelta(days=3_660)

OpenStore = Callable[[StoreUrl], Store]

# The module with the `open_store` of each scheme. Other packages add theirs by the entry point group `tickler.stores`.
BACKENDS = {
    "memory": "tickler.stores.memory",
    "sqlite": "tickler.stores.sqlite",
    "postgresql": "tickler.stores.postgres",
    "postgres": "tickler.stores.postgres",
    "dynamodb": "tickler.stores.dynamodb",
}


def connect(
    url: str | None = None,
    *,
    pool: object = None,
    schema: str | None = None,
    create: bool | None = None,
    clock: Clock | None = None,
    allow_networks: Sequence[str] = (),
    keep_history: Duration = timedelta(milliseconds=HISTORY_RETENTION_MS),
) -> Tickler:
    """Return a Tickler on the store that `url` names. Nothing is opened before `async with`.

    URLs are `sqlite:///file.db`, `sqlite://` (in memory), `postgresql://…?schema=…` and `dynamodb://TABLE?region=…`. Instead of a
    URL, pass your own asyncpg pool as `pool=`, with `schema=`. `create` (in a URL `?create=0`) decides whether missing tables are
    created: by default yes, on DynamoDB no. Tables are never migrated here; `tickler migrate` does that.

    A worker on a pool cannot open a second connection to extend its leases while a handler blocks the event loop. Its leases
    therefore last 60 s by default instead of 10 s, and the fires of a killed worker wait that long.

    Deliveries go to public addresses, and to those of `allow_networks` (or TICKLER_ALLOW_NETWORKS), such as ("10.0.0.0/8",).
    The history is kept for `keep_history`.
    """
    if (url is None) == (pool is None):
        raise InvalidInput("connect: pass either a store's URL, such as 'sqlite:///tickler.db', or pool=")
    settings = Settings(
        create=create is not False,
        environ=os.environ,
        allow_networks=_networks(allow_networks),
        keep_history=_retention(keep_history),
    )
    if url is None:
        postgres = needing_extra(BACKENDS["postgresql"], "postgresql://")
        on_pool = cast(Store, postgres.store_for_pool(pool, "public" if schema is None else schema))
        return Tickler(on_pool, clock or SystemClock(), settings)
    if schema is not None:
        raise InvalidInput("connect: schema= needs pool=: in a URL, write ?schema=…")
    parsed = parse_url(url)
    store = _store(parsed)
    wants_tables = _wants_tables(parsed, store.capabilities.makes_tables) if create is None else create
    settings = msgspec.structs.replace(settings, create=wants_tables, reopen=lambda: _store(parsed))
    return Tickler(store, clock or SystemClock(), settings)


def connect_sync(
    url: str,
    *,
    create: bool | None = None,
    clock: Clock | None = None,
    allow_networks: Sequence[str] = (),
    keep_history: Duration = timedelta(milliseconds=HISTORY_RETENTION_MS),
) -> Blocking:
    """Return the same object without `await` for Django, Flask and scripts: `with connect_sync(url) as t: t.schedules.put(…)`."""
    return Blocking(connect(url, create=create, clock=clock, allow_networks=allow_networks, keep_history=keep_history))


def store_for_url(url: str) -> Store:
    """Return the store of a URL, not yet open. `InvalidInput` lists the known schemes."""
    return _store(parse_url(url))


@asynccontextmanager
async def opened_store(url: str, *, create: bool | None = None) -> AsyncIterator[Store]:
    """Open the store of a URL without a Tickler, for maintenance. `create` is as in `connect`."""
    parsed = parse_url(url)
    store = _store(parsed)
    await store.open(create=_wants_tables(parsed, store.capabilities.makes_tables) if create is None else create)
    try:
        yield store
    finally:
        await store.close()


def _store(parsed: StoreUrl) -> Store:
    parsed = msgspec.structs.replace(parsed, parameters={k: v for k, v in parsed.parameters.items() if k != "create"})
    if parsed.scheme in BACKENDS:
        return cast(OpenStore, needing_extra(BACKENDS[parsed.scheme], f"{parsed.scheme}://").open_store)(parsed)
    others = {point.name: point for point in entry_points(group="tickler.stores")}
    if parsed.scheme in others:
        return cast(OpenStore, others[parsed.scheme].load())(parsed)
    schemes = ", ".join(f"{name}://" for name in [*BACKENDS, *others])
    raise InvalidInput(f"{parsed.text!r} has an unknown scheme: use one of {schemes}")


def _networks(given: Sequence[str]) -> tuple[str, ...]:
    if isinstance(given, str) or not all(isinstance(network, str) for network in given):
        raise InvalidInput(f"allow_networks: {given!r} is not a list of networks: pass ('10.0.0.0/8',)")
    for network in given:
        try:
            ip_network(network)
        except ValueError as error:
            raise InvalidInput(f"allow_networks: {error}: write '10.0.0.0/8', 'fd00::/8' or one address") from None
    return tuple(given)


def _retention(keep_history: object) -> timedelta:
    retention = to_duration("keep_history", keep_history, MAX_HISTORY_RETENTION)
    if not retention:
        raise InvalidInput("keep_history: must be longer than 0: pass seconds or a timedelta")
    return retention


def _wants_tables(url: StoreUrl, by_default: bool) -> bool:
    text = url.parameters.get("create", "1" if by_default else "0")
    if text not in ("0", "1"):
        raise InvalidInput(f"{url.text}: create={text!r} is invalid: write create=1 or create=0")
    return text == "1"
