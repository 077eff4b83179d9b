"""The sources of an installation, with a local GitHub, Vercel and App Store: what happens there, in few words."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

import tickler
from slothpost.activity.event import Event
from slothpost.activity.intake import Activities, Intake
from slothpost.identifiers import ACTIVITY, POLL
from slothpost.model import Activity, Connection, Notice, Product, Source, User, Voice, slothpost
from slothpost.notices import Notices
from slothpost.sources.connections import Connections
from slothpost.sources.polling import Polling
from slothpost.sources.source_settings import SourceSettings
from slothpost.sources.webhooks import Received, Webhooks
from slothpost.standins.appstore import AppStoreStandIn
from slothpost.standins.deliveries import Signed
from slothpost.standins.github import GithubStandIn
from slothpost.standins.github_repository import LocalRepository
from slothpost.standins.vercel import LocalInstallation, LocalProject, VercelStandIn
from tickler import Delivery, ManualClock, Tickler
from tickler.table import OpenTable
from tickler.testing import Played, play

BASE_URL = "https://posts.example.com"
SOON = timedelta(seconds=1)

_numbers = itertools.count(1)


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Users, products and connections are made with `a_…`; `work` lets the engine do what is due."""

    t: Tickler
    db: OpenTable
    clock: ManualClock
    github: GithubStandIn
    vercel: VercelStandIn
    store: AppStoreStandIn
    webhooks: Webhooks
    connections: Connections
    polling: Polling
    intake: Intake
    activities: Activities

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.clock.now_ms() / 1000, UTC)

    async def work(self, time: timedelta = SOON) -> Played:
        """Let time pass, and deliver what comes due."""
        return await play(self.t, self.clock, until=time)

    async def a_user(self, id: str = "ada", *, is_operator: bool = False) -> User:
        found = await self.db.get(User.key.id(id))
        if found is not None:
            return found
        return await self.db.create(User(id=id, name=id.title(), is_operator=is_operator, created_at=self.now()))

    async def a_product(self, user: str = "ada") -> Product:
        await self.a_user(user)
        id = f"p{next(_numbers)}"
        return await self.db.create(Product(id=id, user=user, name="Teapot", voice=Voice(), created_at=self.now()))

    async def a_webhook(self, product: Product, source: Source = "github") -> str:
        """Begin a connection, and return the secret of its webhook."""
        setup = await self.connections.setup(product.user, product.id, source)
        assert setup.secret is not None
        return setup.secret

    async def a_repository(self, product: Product, name: str = "ada/teapot", **options: Any) -> tuple[LocalRepository, str, str]:
        """Connect a repository without a webhook by the API. Returns it, the secret and the token."""
        repository = self.github.add_repository(name, **options)
        token = self.github.issue_token(name.split("/")[0], frozenset({"contents", "pull_requests"}))
        setup = await self.connections.connect_github(product.user, product.id, token, name)
        assert setup.secret is not None
        return repository, setup.secret, token

    async def installed(self, product: Product, account: str) -> LocalInstallation:
        """Install the integration of Vercel for a team or a user, on the way that people take."""
        code, installation = self.vercel.install("someone" if account.startswith("team_") else account, _team(account))
        url = await self.connections.vercel_install_url(product.user, product.id)
        state = url.partition("state=")[2].replace("%3D", "=")
        await self.connections.vercel_authorized(product.user, code, installation.id, installation.team, state)
        return installation

    async def a_project(self, product: Product, account: str = "team_teapots", name: str = "teapot") -> LocalProject:
        """Connect a project of a team, or of a user's own account."""
        project = self.vercel.add_project(name, account)
        await self.installed(product, account)
        await self.connections.claim_vercel(product.user, product.id, project.id)
        return project

    async def to_github(self, product: Product | str, signed: Signed) -> Received:
        id = product if isinstance(product, str) else product.id
        return await self.webhooks.github(id, signed.headers, signed.body)

    async def to_vercel(self, signed: Signed, product: str | None = None) -> Received:
        return await self.webhooks.vercel(signed.headers, signed.body, product)

    async def to_appstore(self, product: Product, signed: Signed) -> Received:
        return await self.webhooks.appstore(product.id, signed.headers, signed.body)

    async def connection(self, product: Product, source: Source = "github") -> Connection:
        found = await self.db.get(Connection.key.id(product.id, source))
        assert found is not None
        return found

    async def activity(self, product: Product) -> Sequence[Activity]:
        """Return what is known of a product, the latest first."""
        return (await self.activities.recent(product.user, product.id)).items

    async def told(self, product: Product) -> list[str]:
        """Return the ids of that."""
        return [activity.id for activity in await self.activity(product)]

    async def poll(self, product: Product, source: Source = "github") -> str:
        return await self.polling.poll(product.user, product.id, source)

    async def notices(self, user: str = "ada") -> list[Notice]:
        return [notice async for notice in self.db.iterate(Notice.key(user))]


@asynccontextmanager
async def open_place(url: str, clock: ManualClock) -> AsyncIterator[Place]:
    """Open the sources on a store, and register their handlers."""

    def now() -> datetime:
        return datetime.fromtimestamp(clock.now_ms() / 1000, UTC)

    async with AsyncExitStack() as stack:
        github = await stack.enter_async_context(GithubStandIn(now=now))
        vercel = await stack.enter_async_context(VercelStandIn(now=now, redirect_uri=f"{BASE_URL}/connections/vercel"))
        store = await stack.enter_async_context(AppStoreStandIn(now=now))
        t = await stack.enter_async_context(tickler.connect(url, clock=clock))
        name = url.removeprefix("dynamodb://").partition("?")[0] + "_posts" if url.startswith("dynamodb") else None
        db = await stack.enter_async_context(slothpost.connect(t, name=name, create=True))
        settings = SourceSettings(
            github_api_url=github.url,
            vercel_api_url=vercel.url,
            vercel_url=vercel.url,
            itunes_url=store.url,
            vercel_client_id=vercel.client_id,
            vercel_client_secret=vercel.client_secret,
            vercel_integration_slug=vercel.slug,
        )
        intake = Intake(t, db)
        place = Place(
            t=t,
            db=db,
            clock=clock,
            github=github,
            vercel=vercel,
            store=store,
            webhooks=Webhooks(t, db, settings),
            connections=Connections(t, db, settings, base_url=BASE_URL),
            polling=Polling(t, db, settings, intake, Notices(t, db)),
            intake=intake,
            activities=Activities(db),
        )
        _register(place)
        yield place
        if name is not None:  # DynamoDB Local gets slower with each table
            await t.database.call("DeleteTable", {"TableName": name})  # type: ignore[attr-defined]  # on DynamoDB it is a client


def _register(place: Place) -> None:
    @place.t.handler(ACTIVITY)
    async def take(delivery: Delivery) -> None:
        await place.intake.take(Event.from_json(delivery.payload))

    @place.t.handler(POLL)
    async def poll(delivery: Delivery) -> None:
        await place.polling.poll(**msgspec.convert(delivery.payload, dict[str, Any]))


def _team(account: str) -> str | None:
    return account if account.startswith("team_") else None
