"""The weeks before the demo: a made-up developer sets up three products, ships, reviews drafts, and posts.

Everything is done through the services of slothpost, with the clock moved, and over HTTP with the local networks and sources.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import msgspec

from slothpost.app import Slothpost
from slothpost.demo.days import Days
from slothpost.demo.local_services import LocalServices
from slothpost.demo.made_products import (
    GITHUB_TOKEN,
    HANDLE,
    OWNER,
    PRODUCTS,
    WEBSITE,
    MadeProduct,
    ProductKey,
    week_plan,
)
from slothpost.demo.shipped import SHIPPED, Deployed, InReview, InStore, Merged, Pushed, Released, Shipped, Starred
from slothpost.demo.shipper import Shipper
from slothpost.demo.time_lapse import TimeLapse, work
from slothpost.identifiers import poll_key
from slothpost.model import ChannelName, Connection, Post, Product
from slothpost.planning.plans import CHANNELS

DEMO_USER = "demo"
NAME = "Demo"
FIRST_DAY = -20
PLANS_SET = (-18, "20:15")
AT_THE_DESK = ("07:45", "12:15", "21:30")  # when the developer reviews drafts

SALE = "This week only: a year of Steepwell or Plainbill for the price of ten months. No code needed."
REJECTED = "I tell this together with the payment codes"

Act = Callable[[], Awaitable[object]]


class Moment(msgspec.Struct, frozen=True):
    """What happens at an instant."""

    at: datetime
    act: Act


class Past:
    """Plays the weeks until `until`, from the day on which the products are set up."""

    def __init__(self, slothpost: Slothpost, lapse: TimeLapse, services: LocalServices, shipper: Shipper, days: Days) -> None:
        self._slothpost = slothpost
        self._lapse = lapse
        self._services = services
        self._shipper = shipper
        self._days = days
        self._products: dict[ProductKey, Product] = {}

    async def play(self, until: datetime) -> None:
        await self._set_up()
        moments = sorted((moment for moment in self._moments(until) if moment.at < until), key=lambda moment: moment.at)
        for moment in moments:
            await self._lapse.until(moment.at)
            await moment.act()
        await self._lapse.until(until)
        await self._approve_next("plainbill", "x")
        await self._poll(pauses=False)

    @property
    def products(self) -> Mapping[ProductKey, Product]:
        return self._products

    async def _set_up(self) -> None:
        slothpost = self._slothpost
        await slothpost.users.create(NAME, zone=self._days.zone, is_operator=True, id=DEMO_USER)
        accounts = {
            "x": await slothpost.accounts.add(DEMO_USER, "x", self._services.x.issue_tokens(HANDLE)),
            "threads": await slothpost.accounts.add(DEMO_USER, "threads", self._services.threads.issue_tokens(HANDLE)),
        }
        for key, made in PRODUCTS.items():
            self._lapse.sleep_until(slothpost.now() + timedelta(minutes=10))  # the order in which pages show them
            product = self._products[key] = await slothpost.products.create(DEMO_USER, made.changes)
            await slothpost.products.set_topic_tag(DEMO_USER, product.id, made.topic)
            await self._connect(product, made)
            for name in CHANNELS:
                await slothpost.accounts.use(DEMO_USER, product.id, name, accounts[name].id)
        await work(slothpost)
        await self._poll(pauses=True)

    async def _set_plans(self) -> None:
        for key, made in PRODUCTS.items():
            for name in CHANNELS:
                plan = week_plan(made.plans[name], self._days.first, self._days.soon)
                await self._slothpost.plans.set_plan(DEMO_USER, self._products[key].id, name, plan, self._days.zone)
        await work(self._slothpost)

    async def _connect(self, product: Product, made: MadeProduct) -> None:
        """Connect what the product is built with, as a user does in the wizards."""
        connections = self._slothpost.connections
        repository = self._services.repository(made.repository)
        await connections.connect_github(DEMO_USER, product.id, GITHUB_TOKEN, made.repository)
        await self._shipper.test_github(product.id, repository)
        if made.app is not None:
            await connections.connect_appstore(DEMO_USER, product.id, str(made.app))
            await self._shipper.test_appstore(product.id)
        if made.project is not None:
            address = await connections.vercel_install_url(DEMO_USER, product.id)
            code, installation = self._services.vercel.install(OWNER)
            state = parse_qs(urlsplit(address).query)["state"][0]
            await connections.vercel_authorized(DEMO_USER, code, installation.id, None, state)
            await connections.claim_vercel(DEMO_USER, product.id, made.project.id)

    def _moments(self, until: datetime) -> list[Moment]:
        at = self._days.at
        steepwell, plainbill, portpeek = self._products["steepwell"], self._products["plainbill"], self._products["portpeek"]
        shipped = [Moment(at(each.day, each.at), self._shipping(each)) for each in SHIPPED]
        desk = [Moment(at(day, time), lambda: self._review(until)) for day in range(FIRST_DAY, 1) for time in AT_THE_DESK]
        return [
            *shipped,
            *desk,
            Moment(at(*PLANS_SET), self._set_plans),
            Moment(at(-12, "20:00"), lambda: self._slothpost.plans.pause_channel(DEMO_USER, portpeek.id, "threads", paused=True)),
            Moment(at(-8, "20:15"), lambda: self._write(plainbill, "x", SALE, at(-4, "17:00"))),
            Moment(at(-8, "20:20"), lambda: self._write(steepwell, "x", SALE, at(-3, "09:00"))),  # X refuses it: a duplicate
            Moment(at(-2, "17:50"), lambda: self._close_the_lid(at(-2, "21:10"))),  # over the slot of Steepwell on Threads
            Moment(at(-1, "17:20"), self._lose_the_answer),  # to the post of Portpeek on X
        ]

    def _shipping(self, shipped: Shipped) -> Act:
        return lambda: self._ship(shipped)

    async def _ship(self, shipped: Shipped) -> None:
        made, product, ship = PRODUCTS[shipped.product], self._products[shipped.product].id, self._shipper
        repository = self._services.repository(made.repository)
        match shipped.thing:
            case Merged() as change:
                project = None if made.project is None else self._services.project(made.project.id)
                await ship.merge(product, repository, change, project)
            case Pushed(messages):
                await ship.push(product, repository, *messages)
            case Released() as released:
                await ship.release(product, repository, released)
            case Starred(count):
                await ship.star(product, repository, count)
            case InReview() as submitted if made.app is not None:
                await ship.submit(product, made.app, submitted)
            case InStore() as live if made.app is not None:
                await ship.put_in_store(product, made.app, made.app_name, live)
                await work(self._slothpost)
                await self._slothpost.polling.poll(DEMO_USER, product, "appstore")
            case Deployed(message):
                await ship.deploy(self._services.project(WEBSITE.id), message)
        await work(self._slothpost)

    async def _review(self, until: datetime) -> None:
        """Approve what was drafted, but for what the visitor finds in the queue, and one draft that is rejected."""
        review, rejected = self._slothpost.review, (self._products["plainbill"].id, "x", self._days.at(-11, "17:00"))
        for card in (await review.queue(DEMO_USER)).items:
            post = card.post
            if post.state != "drafted" or post.slot_at >= until:
                continue
            if (post.product, post.channel, post.slot_at) == rejected:
                await review.reject(DEMO_USER, post.id, by=NAME, note=REJECTED)
            else:
                await review.approve(DEMO_USER, post.id, by=NAME)

    async def _write(self, product: Product, channel: ChannelName, text: str, slot_at: datetime) -> None:
        drafts, review = self._slothpost.drafts, self._slothpost.review
        post = await drafts.write(DEMO_USER, product.id, channel, text, by=NAME, slot_at=slot_at)
        await review.approve(DEMO_USER, post.id, by=NAME)

    async def _close_the_lid(self, until: datetime) -> None:
        self._lapse.sleep_until(until)

    async def _lose_the_answer(self) -> None:
        """Let X take the next post, and break off the connection before it says so."""
        self._services.x.faults.take_then_drop()

    async def _approve_next(self, key: ProductKey, channel: ChannelName) -> None:
        coming = Post.of_channel(self._products[key].id, channel).since(self._slothpost.now())
        async for post in self._slothpost.db.iterate(coming, where=Post.state == "drafted"):
            await self._slothpost.review.approve(DEMO_USER, post.id, by=NAME)
            return

    async def _poll(self, *, pauses: bool) -> None:
        """Pause the polls, of which there are thousands in these weeks, or resume them."""
        schedules = self._slothpost.t.schedules
        for product in self._products.values():
            async for connection in self._slothpost.db.iterate(Connection.key(product.id)):
                change = schedules.pause if pauses else schedules.resume
                await change(DEMO_USER, poll_key(connection.product, connection.source))
