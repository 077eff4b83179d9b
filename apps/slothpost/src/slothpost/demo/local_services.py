"""The networks and the sources of the demo, on ports next to the one of slothpost, and the settings that lead there."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from datetime import datetime, timedelta
from urllib.parse import urlsplit

import msgspec

from slothpost.demo.made_products import GITHUB_TOKEN, HANDLE, OWNER, PRODUCTS, SPARE_REPOSITORY, SPARE_REPOSITORY_ID, WEBSITE
from slothpost.demo_links import DemoLinks
from slothpost.networks.threads import ThreadsSettings
from slothpost.networks.x import XSettings
from slothpost.settings import DEFAULT_PORT, Settings
from slothpost.sources.setup import VERCEL_RETURN_PATH
from slothpost.sources.source_settings import SourceSettings
from slothpost.standins.appstore import AppStoreStandIn
from slothpost.standins.faults import Fault
from slothpost.standins.github import PERMISSIONS, GithubStandIn, GithubToken
from slothpost.standins.github_repository import LocalRepository
from slothpost.standins.loopback import HOST
from slothpost.standins.threads import ThreadsStandIn
from slothpost.standins.vercel import LocalProject, VercelStandIn
from slothpost.standins.x import XStandIn

NETWORK_TIMEOUT_S = 6.0  # nobody wants to wait longer for a network that hangs on purpose
LOOPBACK = "127.0.0.0/8"
PLACES = ("x", "threads", "sources", "github", "vercel", "appstore")  # in the order of their ports

# What a post must contain to meet a fault, once. The pages say so.
GOES_OUT_AND_HANGS = "#hang"
ASKS_TO_WAIT = "#limit"

_MAX_PORT = 65_535


class LocalServices(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What is served beside slothpost. `sources_port` is for the page on which the visitor ships something."""

    x: XStandIn
    threads: ThreadsStandIn
    github: GithubStandIn
    vercel: VercelStandIn
    appstore: AppStoreStandIn
    now: Callable[[], datetime]
    sources_port: int

    def repository(self, name: str) -> LocalRepository:
        return next(each for each in self.github.repositories if each.name == name)

    def project(self, id: str) -> LocalProject:
        return next(each for each in self.vercel.projects if each.id == id)

    def settings(self, settings: Settings, sources_url: str) -> Settings:
        """Return the settings with local networks and sources in place of those of the internet."""
        links = DemoLinks(
            x_url=f"{self.x.url}/{HANDLE}",
            threads_url=f"{self.threads.url}/@{HANDLE}",
            sources_url=sources_url,
            github_token=GITHUB_TOKEN,
            app_id=str(next(made.app for made in PRODUCTS.values() if made.app is not None)),
        )
        return msgspec.structs.replace(
            settings,
            x=_x_settings(self.x),
            threads=_threads_settings(self.threads),
            sources=self._source_settings(),
            allow_networks=(*settings.allow_networks, LOOPBACK),
            demo=links,
        )

    def _source_settings(self) -> SourceSettings:
        return SourceSettings(
            github_api_url=self.github.url,
            vercel_api_url=self.vercel.url,
            vercel_url=self.vercel.url,
            itunes_url=self.appstore.url,
            vercel_client_id=self.vercel.client_id,
            vercel_client_secret=self.vercel.client_secret,
            vercel_integration_slug=self.vercel.slug,
        )


@asynccontextmanager
async def open_local_services(settings: Settings, now: Callable[[], datetime]) -> AsyncIterator[LocalServices]:
    """Serve them while the block runs. Each has the same port at every start, unless another program has it then."""
    ports = _ports(urlsplit(settings.base_url).port or DEFAULT_PORT)
    async with AsyncExitStack() as stack:
        x = await stack.enter_async_context(XStandIn(now=now, port=ports["x"], handle=HANDLE))
        threads = await stack.enter_async_context(ThreadsStandIn(now=now, port=ports["threads"], handle=HANDLE))
        github = await stack.enter_async_context(GithubStandIn(now=now, port=ports["github"]))
        redirect_uri = settings.url(VERCEL_RETURN_PATH)
        vercel = await stack.enter_async_context(VercelStandIn(now=now, port=ports["vercel"], redirect_uri=redirect_uri))
        appstore = await stack.enter_async_context(AppStoreStandIn(now=now, port=ports["appstore"]))
        services = LocalServices(
            x=x, threads=threads, github=github, vercel=vercel, appstore=appstore, now=now, sources_port=ports["sources"]
        )  # fmt: skip
        _set_up(services)
        yield services


def _set_up(services: LocalServices) -> None:
    """Put in what is there at every start. Ids are fixed, since slothpost keeps them."""
    for made in PRODUCTS.values():
        repository = services.github.add_repository(made.repository, private=made.is_private)
        repository.id, repository.stars = made.repository_id, made.stars
        if made.project is not None:
            services.vercel.add_project(made.project.name, OWNER, id=made.project.id)
        if made.app is not None:
            services.appstore.release(made.app, made.app_version, name=made.app_name, at=services.now() - timedelta(days=60))
    services.github.add_repository(SPARE_REPOSITORY).id = SPARE_REPOSITORY_ID
    services.vercel.add_project(WEBSITE.name, OWNER, id=WEBSITE.id)
    services.github.tokens[GITHUB_TOKEN] = GithubToken(login=OWNER, permissions=PERMISSIONS)
    for faults in (services.x.faults, services.threads.faults):
        faults.mark(GOES_OUT_AND_HANGS, Fault(kind="hang", taken=True))
        faults.mark(ASKS_TO_WAIT, Fault(kind="limit"))


def _ports(base: int) -> dict[str, int]:
    return {place: _free(base + number) for number, place in enumerate(PLACES, start=1)}


def _free(port: int) -> int:
    """Return the port, or 0 for any other if it is taken."""
    if port > _MAX_PORT:
        return 0
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return 0
    return port


def _x_settings(x: XStandIn) -> XSettings:
    return XSettings(
        client_id=x.client_id,
        client_secret=x.client_secret,
        api_url=x.url,
        authorize_url=f"{x.url}/i/oauth2/authorize",
        site_url=x.url,
        timeout_s=NETWORK_TIMEOUT_S,
    )


def _threads_settings(threads: ThreadsStandIn) -> ThreadsSettings:
    return ThreadsSettings(
        client_id=threads.client_id,
        client_secret=threads.client_secret,
        api_url=threads.url,
        authorize_url=f"{threads.url}/oauth/authorize",
        site_url=threads.url,
        timeout_s=NETWORK_TIMEOUT_S,
        status_pause_s=0.2,
    )
