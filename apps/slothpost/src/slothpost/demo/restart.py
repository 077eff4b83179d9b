"""What each start of the demo does: the stand-ins have forgotten everything, and days may have passed."""

from __future__ import annotations

import re
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

from slothpost.app import Slothpost
from slothpost.demo.days import days_of
from slothpost.demo.local_services import LocalServices
from slothpost.demo.made_products import PRODUCTS, week_plan
from slothpost.demo.past import DEMO_USER
from slothpost.demo.shipped import COMING
from slothpost.demo.shipper import Shipper
from slothpost.demo.time_lapse import work
from slothpost.model import Account, Connection, Post, Product, User, VercelInstallation
from slothpost.standins.local_post import LocalPost
from tickler.table import MISSING

SOON = timedelta(hours=13)  # a draft for a slot within this time is waiting, or one is made

_MADE = PRODUCTS["steepwell"]
_PLACE = re.compile(r"/@?(?P<handle>\w+)/(?:status|post)/[\w-]+$")


class Restart:
    """Gives the stand-ins what slothpost knows of them, and lets time pass since the last start."""

    def __init__(self, slothpost: Slothpost, services: LocalServices, shipper: Shipper) -> None:
        self._slothpost = slothpost
        self._services = services
        self._shipper = shipper

    async def bring_up_to_date(self) -> None:
        for user in await self._slothpost.users.everyone():
            for account in await self._slothpost.accounts.list(user.id):
                await self._connect_again(account)
            async for installation in self._slothpost.db.iterate(VercelInstallation.key(user.id)):
                await self._install_again(installation)
            for product in await self._slothpost.products.list(user.id):
                await self._put_in_store(product)
            await self._put_out(user)
        await work(self._slothpost)
        if not await self._has_draft_soon():
            await self._ship_something()

    async def _connect_again(self, account: Account) -> None:
        """Exchange the tokens, which were of stand-ins that are gone, as their owner does who connects an account again."""
        network = self._services.x if account.network == "x" else self._services.threads
        await self._slothpost.accounts.add(account.user, account.network, network.issue_tokens(account.handle))

    async def _install_again(self, installation: VercelInstallation) -> None:
        team = None if installation.team_id is MISSING else installation.team_id
        owner = "" if installation.vercel_user_id is MISSING else installation.vercel_user_id
        code, local = self._services.vercel.install(owner, team, id=installation.id)
        products = await self._slothpost.products.list(installation.user)
        if products:
            address = await self._slothpost.connections.vercel_install_url(installation.user, products[0].id)
            state = parse_qs(urlsplit(address).query)["state"][0]
            await self._slothpost.connections.vercel_authorized(installation.user, code, local.id, team, state)

    async def _put_in_store(self, product: Product) -> None:
        """Put the latest version that slothpost knows of an app into the store."""
        connection = await self._slothpost.db.get(Connection.key.id(product.id, "appstore"))
        if connection is None or connection.external_id is MISSING:
            return
        known = [release for release in connection.releases if release.version]
        if known and connection.name is not MISSING:
            last = known[-1]
            self._services.appstore.release(int(connection.external_id), last.version, name=connection.name, at=last.at)

    async def _put_out(self, user: User) -> None:
        """Let the networks show again what went out, also the posts of which slothpost was not told that they did."""
        async for post in self._slothpost.db.iterate(Post.by_slot(user.id)):
            store = self._services.x.store if post.channel == "x" else self._services.threads.store
            local = await self._local(post)
            if local is not None and all((other.handle, other.text) != (local.handle, local.text) for other in store.posts):
                store.put_back(local)
        for network in (self._services.x, self._services.threads):
            network.posts.sort(key=lambda post: post.at)

    async def _local(self, post: Post) -> LocalPost | None:
        """Return a post as its network has it; None if it has not gone out."""
        if post.state == "published" and post.url is not MISSING and post.remote_id is not MISSING:
            place = _PLACE.search(post.url)
            return None if place is None else _local(post, place["handle"], post.remote_id, post.url)
        if post.state == "unconfirmed" and post.channel == "x":
            account = (await self._slothpost.review.card(post.user, post.id)).state.account
            if account is not None:
                id = str(int(post.slot_at.timestamp()))
                return _local(post, account.handle, id, f"{self._services.x.url}/{account.handle}/status/{id}")
        return None

    async def _has_draft_soon(self) -> bool:
        now = self._slothpost.now()
        coming = Post.by_slot(DEMO_USER).between(now, now + SOON)
        return any([True async for _ in self._slothpost.db.iterate(coming, where=Post.state == "drafted")])

    async def _ship_something(self) -> None:
        """Merge a pull request, and move the plan so that a draft about it waits for a slot of the next hours."""
        product = await self._product_of(_MADE.repository_id)
        if product is None:
            return
        now = self._slothpost.now()
        change = COMING[now.toordinal() % len(COMING)]
        await self._shipper.merge(product.id, self._services.repository(_MADE.repository), change)
        await work(self._slothpost)
        channel = (await self._slothpost.plans.view(DEMO_USER, product.id, "x")).state.channel
        days = days_of(now, channel.zone)
        plan = week_plan(_MADE.plans["x"], days.first, days.soon)
        await self._slothpost.plans.set_plan(DEMO_USER, product.id, "x", plan)
        await work(self._slothpost)

    async def _product_of(self, repository: int) -> Product | None:
        """Return the product that is connected to a repository, unless the visitor has changed that."""
        for product in await self._slothpost.products.list(DEMO_USER):
            connection = await self._slothpost.db.get(Connection.key.id(product.id, "github"))
            if connection is not None and connection.external_id == str(repository):
                return product
        return None


def _local(post: Post, handle: str, id: str, url: str) -> LocalPost:
    return LocalPost(id=id, handle=handle, text=post.text, at=post.history[-1].at, url=url)
