"""An installation of slothpost for tests: what happens in it, in few words."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from slothpost.app import Slothpost, open_slothpost
from slothpost.model import Account, Activity, ChannelName, Post, Product, Slot, User
from slothpost.networks.threads import ThreadsSettings
from slothpost.networks.x import XSettings
from slothpost.people.products import ProductChanges
from slothpost.settings import Settings
from slothpost.standins.threads import ThreadsStandIn
from slothpost.standins.x import XStandIn
from tickler import ManualClock
from tickler.testing import Played, play

ZONE = "Europe/Berlin"


def network_settings(x: XStandIn, threads: ThreadsStandIn) -> dict[str, Any]:
    """Return the settings that lead to local networks."""
    return {
        "allow_networks": ("127.0.0.0/8",),
        "x": XSettings(
            client_id=x.client_id, api_url=x.url, authorize_url=f"{x.url}/i/oauth2/authorize", site_url=x.url, timeout_s=20.0
        ),
        "threads": ThreadsSettings(
            client_id=threads.client_id,
            client_secret=threads.client_secret,
            api_url=threads.url,
            authorize_url=f"{threads.url}/oauth/authorize",
            site_url=threads.url,
            timeout_s=20.0,
            status_pause_s=0.01,
        ),
    }


@asynccontextmanager
async def open_installation(
    settings: Settings, clock: ManualClock, x: XStandIn, threads: ThreadsStandIn
) -> AsyncIterator[Installation]:
    async with open_slothpost(settings, clock=clock) as app:
        yield Installation(app, clock, x, threads)


class Installation:
    """Users, products and activity are made with `a_…`; time passes with `until` and `for_`."""

    def __init__(self, app: Slothpost, clock: ManualClock, x: XStandIn, threads: ThreadsStandIn) -> None:
        self.app = app
        self.clock = clock
        self.x = x
        self.threads = threads
        self._numbers = itertools.count(1)

    def now(self) -> datetime:
        return self.app.now()

    async def until(self, at: datetime) -> Played:
        """Deliver everything that comes due until an instant."""
        return await play(self.app.t, self.clock, until=at)

    async def for_(self, time: timedelta) -> Played:
        return await play(self.app.t, self.clock, until=time)

    async def a_user(self, id: str = "ada") -> User:
        found = await self.app.users.get(id)
        return found or await self.app.users.create(id.title(), zone=ZONE, id=id)

    async def a_product(self, user: str = "ada", **changes: Any) -> Product:
        await self.a_user(user)
        return await self.app.products.create(
            user, ProductChanges(**{"name": "Teapot", "url": "https://teapot.example.com", **changes})
        )

    async def a_channel(
        self, days: Mapping[str, object], name: ChannelName = "x", *, user: str = "ada", connected: bool = True, **changes: Any
    ) -> Product:
        """Return a product with a plan for one channel, connected to an account of the local network."""
        product = await self.a_product(user, **changes)
        if connected:
            account = await self.an_account(name, user)
            await self.app.accounts.use(user, product.id, name, account.id)
        await self.app.plans.set_plan(user, product.id, name, days, ZONE)
        return product

    async def an_account(self, name: ChannelName = "x", user: str = "ada") -> Account:
        """Return an account of a local network, whose tokens the network has issued."""
        network = self.x if name == "x" else self.threads
        return await self.app.accounts.add(user, name, network.issue_tokens(user))

    async def an_activity(
        self, product: Product, title: str = "Tea timers that survive a restart", **attributes: Any
    ) -> Activity:
        return await self.app.db.create(
            Activity(
                product=product.id,
                at=self.now(),
                **{"id": f"commit:{next(self._numbers):040x}", "kind": "feature", "title": title, "worth": 80, **attributes},
            )
        )

    async def a_draft(self, product: Product, text: str = "Tea timers now survive a restart.", name: ChannelName = "x") -> Post:
        """Return a post that somebody wrote for the next slot of a channel."""
        return await self.app.drafts.write(product.user, product.id, name, text, by=product.user)

    async def post(self, post: Post) -> Post:
        """Return a post as it is now."""
        found = await self.app.db.get(Post.key.id(post.user, post.id))
        assert found is not None
        return found

    async def posts(self, product: Product, name: ChannelName = "x") -> list[Post]:
        return [post async for post in self.app.db.iterate(Post.of_channel(product.id, name))]

    async def slots(self, product: Product, name: ChannelName = "x") -> list[Slot]:
        return [slot async for slot in self.app.db.iterate(Slot.key(product.id).under(name))]


def berlin(text: str) -> datetime:
    """Return an instant that is written as a wall-clock time in Berlin, such as 2027-03-02 09:00."""
    from zoneinfo import ZoneInfo

    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(ZONE)).astimezone(UTC)
