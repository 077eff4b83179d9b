"""The composition root: settings become everything that pages, the API and the worker use."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from functools import partial

import aiohttp
import msgspec

import tickler
from slothpost.accounts.access_tokens import AccessTokens
from slothpost.accounts.connections import AccountConnections
from slothpost.activity.event import Event
from slothpost.activity.intake import Activities, Intake
from slothpost.drafting.drafters import Drafters
from slothpost.drafting.drafts import Drafts
from slothpost.errors import NotFound
from slothpost.identifiers import ACTIVITY, DECIDE, DRAFT, POLL, PUBLISH, REFRESH
from slothpost.model import ChannelName, Source, slothpost
from slothpost.networks.network import Network, Networks
from slothpost.networks.threads import ThreadsNetwork
from slothpost.networks.x import XNetwork
from slothpost.notices import Notices
from slothpost.people.product_deletion import ProductDeletion
from slothpost.people.products import Products
from slothpost.people.users import Users
from slothpost.planning.plans import Plans
from slothpost.posts.cards import Cards
from slothpost.posts.post_writer import PostWriter
from slothpost.posts.publisher import AtPoint, Publisher, pass_on
from slothpost.posts.review import Review
from slothpost.posts.undecided import Undecided
from slothpost.settings import Settings
from slothpost.sources.connections import Connections
from slothpost.sources.polling import Polling
from slothpost.sources.webhooks import Webhooks
from slothpost.utc_now import utc_now
from tickler import Clock, Delivery, Tickler
from tickler.table import OpenTable


class Slothpost(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that an installation does, on one store."""

    settings: Settings
    t: Tickler
    db: OpenTable
    users: Users
    products: Products
    product_deletion: ProductDeletion
    plans: Plans
    review: Review
    cards: Cards
    drafts: Drafts
    notices: Notices
    activities: Activities
    intake: Intake
    webhooks: Webhooks
    connections: Connections
    polling: Polling
    accounts: AccountConnections
    tokens: AccessTokens
    publisher: Publisher
    undecided: Undecided
    networks: Networks

    def now(self) -> datetime:
        return utc_now(self.t)


@asynccontextmanager
async def open_slothpost(
    settings: Settings, *, clock: Clock | None = None, at_point: AtPoint = pass_on
) -> AsyncIterator[Slothpost]:
    """Open the store, make what is missing in it, and register the handlers. `at_point` is for tests of crashes."""
    async with AsyncExitStack() as stack:
        t = await stack.enter_async_context(
            tickler.connect(settings.store, clock=clock, allow_networks=settings.allow_networks, create=True)
        )
        db = await stack.enter_async_context(slothpost.connect(t, name=settings.table, create=True))
        networks = _networks(settings, t)
        app = _assembled(settings, t, db, networks, Drafters(settings.drafters, t), at_point)
        _register(app)
        yield app


def _networks(settings: Settings, t: Tickler) -> Networks:
    """Return the clients of the networks that this installation has credentials for."""
    now, networks = partial(utc_now, t), dict[ChannelName, Network]()
    if settings.x is not None:
        networks["x"] = XNetwork(settings.x, aiohttp.ClientSession, now)
    if settings.threads is not None:
        networks["threads"] = ThreadsNetwork(settings.threads, aiohttp.ClientSession, now)
    return networks


def _assembled(
    settings: Settings, t: Tickler, db: OpenTable, networks: Networks, drafters: Drafters, at_point: AtPoint
) -> Slothpost:
    notices = Notices(t, db)
    posts = PostWriter(t, db, notices)
    plans = Plans(t, db, posts)
    cards = Cards(db)
    intake = Intake(t, db)
    tokens = AccessTokens(t, db, networks, notices)
    connections = Connections(t, db, settings.sources, base_url=settings.base_url)
    return Slothpost(
        settings=settings,
        t=t,
        db=db,
        users=Users(t, db),
        products=Products(t, db, plans),
        product_deletion=ProductDeletion(db, plans, posts, connections),
        plans=plans,
        review=Review(db, posts, cards),
        cards=cards,
        drafts=Drafts(db, posts, drafters, notices),
        notices=notices,
        activities=Activities(db),
        intake=intake,
        webhooks=Webhooks(t, db, settings.sources),
        connections=connections,
        polling=Polling(t, db, settings.sources, intake, notices),
        accounts=AccountConnections(t, db, networks, notices, plans.rearrange_all),
        tokens=tokens,
        publisher=Publisher(db, posts, networks, tokens, at_point),
        undecided=Undecided(db, posts),
        networks=networks,
    )


def _register(app: Slothpost) -> None:
    """Register the handlers that schedules name. What they return is in the history of the fire."""

    @app.t.handler(DRAFT)
    async def draft(delivery: Delivery) -> str:
        channel = msgspec.convert(delivery.payload, _ChannelPayload)
        try:
            return await app.drafts.draft(delivery.owner, channel.product, channel.channel)
        except NotFound as error:
            return f"nothing to do: {error}"

    @app.t.handler(PUBLISH)
    async def publish(delivery: Delivery) -> str:
        return await app.publisher.publish(delivery.owner, msgspec.convert(delivery.payload, _PostPayload).post)

    @app.t.handler(DECIDE)
    async def decide(delivery: Delivery) -> str:
        return await app.undecided.decide(delivery.owner, msgspec.convert(delivery.payload, _PostPayload).post)

    @app.t.handler(ACTIVITY)
    async def take(delivery: Delivery) -> str:
        return await app.intake.take(Event.from_json(delivery.payload))

    @app.t.handler(POLL)
    async def poll(delivery: Delivery) -> str:
        connection = msgspec.convert(delivery.payload, _ConnectionPayload)
        return await app.polling.poll(delivery.owner, connection.product, connection.source)

    @app.t.handler(REFRESH)
    async def refresh(delivery: Delivery) -> str:
        return await app.tokens.refresh_due(delivery.owner, msgspec.convert(delivery.payload, _AccountPayload).account)


class _ChannelPayload(msgspec.Struct):
    product: str
    channel: ChannelName


class _PostPayload(msgspec.Struct):
    post: str


class _ConnectionPayload(msgspec.Struct):
    product: str
    source: Source


class _AccountPayload(msgspec.Struct):
    account: str
