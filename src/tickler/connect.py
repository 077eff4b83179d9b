"""The composition root: a URL becomes a Tickler. The only place that names a backend."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from typing import Self, cast
from urllib.parse import parse_qsl

import msgspec

from tickler.blocking import Blocking
from tickler.clock import Clock, SystemClock
from tickler.errors import InvalidInput
from tickler.index import Index
from tickler.records import Records
from tickler.schedules import Schedules
from tickler.store import Capabilities, Store, StoreUrl
from tickler.when import tzdata_version

OpenStore = Callable[[StoreUrl], Store]

# Where a scheme's `open_store` lives. Others come by the entry point group `tickler.stores`, named after their scheme.
BACKENDS = {
    "memory": "tickler.stores.memory",
    "sqlite": "tickler.stores.sqlite",
    "postgresql": "tickler.stores.postgres",
    "postgres": "tickler.stores.postgres",
    "dynamodb": "tickler.stores.dynamodb",
}
EXTRAS = {"asyncpg": "postgres", "botocore": "dynamodb", "aiohttp": "dynamodb"}


class Tickler:
    """Schedules and the index that finds what is due, on one store. Made by `connect`; use it with `async with`."""

    def __init__(self, store: Store, clock: Clock, *, create: bool) -> None:
        self._store = store
        self._clock = clock
        self._create = create
        self.schedules = Schedules(store.schedules, clock)
        self.index = Index(store.index)
        self.records = Records(store.records, clock)

    @property
    def capabilities(self) -> Capabilities:
        """How this store differs from others."""
        return self._store.capabilities

    def now_ms(self) -> int:
        """The time to claim with: the store's, as far as it is known, so that all workers agree."""
        return self._clock.now_ms()

    async def open(self) -> Self:
        """Connect, look at the store's clock, and take back into the index what this worker can read again."""
        await self._store.open(create=self._create)
        try:
            await self._follow_clock()
            await self._store.index.restore()
            await self._record_tzdata()
        except BaseException:
            await self._store.close()
            raise
        return self

    async def close(self) -> None:
        await self._store.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def _follow_clock(self) -> None:
        if isinstance(self._clock, SystemClock):
            asked_at = self._clock.now_ms()
            store_now_ms = await self._store.now_ms()
            if store_now_ms is not None:
                self._clock.follow(store_now_ms, asked_at, self._clock.now_ms(), self.capabilities.clock_ms)

    async def _record_tzdata(self) -> None:
        """The newest time zone database that has been used with this store."""
        recorded = await self.records.get("store", "tzdata")
        known = recorded.value.get("version", "") if recorded and isinstance(recorded.value, dict) else ""
        ours = tzdata_version()
        if re.fullmatch(r"\d{4}[a-z]+", ours) and (ours > known or not re.fullmatch(r"\d{4}[a-z]+", known)):
            value = msgspec.json.encode({"version": ours})
            await self._store.records.put("store", "tzdata", value, now_ms=self._clock.now_ms())


def connect(
    url: str | None = None,
    *,
    pool: object = None,
    schema: str | None = None,
    create: bool | None = None,
    clock: Clock | None = None,
) -> Tickler:
    """A Tickler on the store that `url` names; nothing is opened before `async with`.

    `sqlite:///file.db`, `sqlite://` (in memory), `postgresql://…?schema=…`, `dynamodb://TABLE?region=…`; or `pool=`, an
    asyncpg pool of yours, with `schema=`. `create` (in a URL `?create=0`) says whether to make the tables where there are
    none: by default yes, on DynamoDB no. Nothing is ever migrated here (`tickler migrate` does that).
    """
    if (url is None) == (pool is None):
        raise InvalidInput("connect: pass a store's URL, such as 'sqlite:///tickler.db', or pool=, and not both")
    if url is None:
        store = _store_for_pool(pool, "public" if schema is None else schema)
        return Tickler(store, clock or SystemClock(), create=create is not False)
    if schema is not None:
        raise InvalidInput("connect: schema= goes with pool=: in a URL, write ?schema=…")
    parsed = parse_url(url)
    store = _store(parsed)
    wants_tables = _wants_tables(parsed, store.capabilities.makes_tables) if create is None else create
    return Tickler(store, clock or SystemClock(), create=wants_tables)


def connect_sync(url: str, *, create: bool | None = None, clock: Clock | None = None) -> Blocking:
    """The same object without `await`, for Django, Flask and scripts: `with connect_sync(url) as t: t.schedules.put(…)`."""
    return Blocking(connect(url, create=create, clock=clock))


def store_for_url(url: str) -> Store:
    """The store of a URL, not yet open. `InvalidInput` says which schemes there are."""
    return _store(parse_url(url))


def _store(parsed: StoreUrl) -> Store:
    parsed = msgspec.structs.replace(parsed, parameters={k: v for k, v in parsed.parameters.items() if k != "create"})
    if parsed.scheme in BACKENDS:
        return _backend(parsed.scheme)(parsed)
    others = {point.name: point for point in entry_points(group="tickler.stores")}
    if parsed.scheme in others:
        return cast(OpenStore, others[parsed.scheme].load())(parsed)
    schemes = ", ".join(f"{name}://" for name in [*BACKENDS, *others])
    raise InvalidInput(f"{parsed.text!r} is no store: use one of {schemes}")


def parse_url(url: str) -> StoreUrl:
    if not isinstance(url, str) or "://" not in url:
        raise InvalidInput(
            "that is no store's URL, which begins as 'sqlite:///tickler.db' or 'postgresql://user@host/database' do"
        )
    scheme, _, rest = url.partition("://")
    location, _, query = rest.partition("?")
    return StoreUrl(_without_password(url), scheme, location, dict(parse_qsl(query, keep_blank_values=True)))


def _wants_tables(url: StoreUrl, by_default: bool) -> bool:
    text = url.parameters.get("create", "1" if by_default else "0")
    if text not in ("0", "1"):
        raise InvalidInput(f"{url.text}: create={text!r} is neither 1 nor 0")
    return text == "1"


def _without_password(url: str) -> str:
    url = re.sub(r"(://[^:/?#@]*):.*@", r"\1:…@", url, flags=re.DOTALL)  # to the last @: a password may have anything in it
    return re.sub(r"(password=)[^&]*", r"\1…", url, flags=re.IGNORECASE)


def _backend(scheme: str) -> OpenStore:
    return cast(OpenStore, needing_extra(BACKENDS[scheme], f"{scheme}://").open_store)


def needing_extra(module: str, what: str) -> ModuleType:
    """Import a module of ours. `InvalidInput` names the extra to install, where a package of another's is missing."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        raise InvalidInput(f"{what} needs the package {error.name}: install it with `pip install 'tickler[{extra}]'`") from None


def _store_for_pool(pool: object, schema: str) -> Store:
    _backend("postgresql")
    return cast(Store, import_module(BACKENDS["postgresql"]).store_for_pool(pool, schema))
