"""A store with users and their accounts on the local networks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import aiohttp

import tickler
from slothpost.accounts.access_tokens import AccessTokens
from slothpost.accounts.connections import AccountConnections
from slothpost.identifiers import REFRESH
from slothpost.model import Account, Channel, ChannelName, Product, User, Voice, slothpost
from slothpost.networks.network import Networks
from slothpost.networks.threads import ThreadsNetwork, ThreadsSettings
from slothpost.networks.x import XNetwork, XSettings
from slothpost.notices import Notices
from slothpost.standins.threads import ThreadsStandIn
from slothpost.standins.x import XStandIn
from tickler import Delivery, ManualClock, Tickler
from tickler.table import OpenTable

BACK = "http://127.0.0.1:8322/accounts/callback"
TIMEOUT_S = 1.0


def networks_at(x_url: str, threads_url: str, now: Callable[[], datetime]) -> Networks:
    """Return clients of local networks, as they are in an installation."""
    x_settings = XSettings(
        client_id=XStandIn.client_id,
        client_secret=XStandIn.client_secret,
        api_url=x_url,
        authorize_url=f"{x_url}/i/oauth2/authorize",
        site_url=x_url,
        timeout_s=TIMEOUT_S,
    )
    threads_settings = ThreadsSettings(
        client_id=ThreadsStandIn.client_id,
        client_secret=ThreadsStandIn.client_secret,
        api_url=threads_url,
        authorize_url=f"{threads_url}/oauth/authorize",
        site_url=threads_url,
        timeout_s=TIMEOUT_S,
        status_pause_s=0.0,
    )
    return {
        "x": XNetwork(x_settings, aiohttp.ClientSession, now),
        "threads": ThreadsNetwork(threads_settings, aiohttp.ClientSession, now),
    }


class Desk:
    """What the tests of this folder have: `tokens` and `connections` on one store, and the networks beside them."""

    def __init__(self, t: Tickler, db: OpenTable, x: XStandIn, threads: ThreadsStandIn) -> None:
        self.t = t
        self.db = db
        self.x = x
        self.threads = threads
        self.notices = Notices(t, db)
        self.rearranged: list[str] = []
        self.networks = networks_at(x.url, threads.url, self.now)
        self.tokens = AccessTokens(t, db, self.networks, self.notices)
        self.connections = self.connections_to(self.networks)

        @t.handler(REFRESH)
        async def refresh(delivery: Delivery) -> str:
            assert isinstance(delivery.payload, dict)
            return await self.tokens.refresh_due(delivery.payload["user"], delivery.payload["account"])

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.t.now_ms() / 1000, UTC)

    async def rearrange(self, user: str) -> None:
        self.rearranged.append(user)

    def connections_to(self, networks: Networks) -> AccountConnections:
        return AccountConnections(self.t, self.db, networks, self.notices, self.rearrange)

    async def connect(
        self, network: ChannelName, user: str = "ada", *, handle: str | None = None, product: str | None = None
    ) -> Account:
        """Connect an account as a person does: go to the network, consent, and come back."""
        state, code = await self.consent(network, user, handle=handle, product=product)
        return await self.connections.finish(user, state=state, code=code, redirect_uri=BACK)

    async def consent(
        self, network: ChannelName, user: str = "ada", *, handle: str | None = None, product: str | None = None
    ) -> tuple[str, str]:
        """Return the state and the code that a person comes back with."""
        url = await self.connections.authorize_url(user, network, redirect_uri=BACK, product=product)
        fields = {name: value for name, (value,) in parse_qs(urlsplit(url).query).items()}
        form = {**fields, "handle": handle or user, "decision": "allow"}
        async with (
            aiohttp.ClientSession() as browser,
            browser.post(url.partition("?")[0], data=form, allow_redirects=False) as answer,
        ):
            assert answer.status == 302, await answer.text()
            query = parse_qs(urlsplit(answer.headers["location"]).query)
        return query["state"][0], query["code"][0]

    async def stored(self, account: Account) -> Account:
        found = await self.db.get(account.key)
        assert found is not None
        return found

    async def told(self, user: str = "ada") -> list[str]:
        """Return the texts of a user's notices."""
        return [notice.text for notice in await self.notices.latest(user)]

    async def product(self, id: str = "teapot", user: str = "ada") -> Product:
        product = Product(id=id, user=user, name=id, voice=Voice(), created_at=self.now())
        channels = [Channel(product=id, name=name, user=user, zone="UTC", active_since=self.now()) for name in ("x", "threads")]
        async with self.db.transaction() as tx:
            for item in (product, *channels):
                tx.put(item)
        return product

    async def account_of(self, product: str, name: ChannelName) -> object:
        """Return the id of the account that a channel posts with."""
        channel = await self.db.get(Channel.key.id(product, name))
        assert channel is not None
        return channel.account


@asynccontextmanager
async def open_desk(
    url: str, clock: ManualClock, x: XStandIn, threads: ThreadsStandIn, table: str = "slothpost"
) -> AsyncIterator[Desk]:
    async with (
        tickler.connect(url, clock=clock, create=True) as t,
        slothpost.connect(t, name=table, create=True) as db,
    ):
        for id in ("ada", "eve"):
            await db.put(User(id=id, name=id.title(), created_at=datetime.fromtimestamp(t.now_ms() / 1000, UTC)))
        yield Desk(t, db, x, threads)
