"""Ships things at the local GitHub, Vercel and App Store, which deliver them to slothpost as the real ones do: signed."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from slothpost.activity.app_releases import LIVE
from slothpost.demo.local_services import LocalServices
from slothpost.demo.shipped import InReview, InStore, Merged, Released
from slothpost.model import Source
from slothpost.sources.webhooks import Received
from slothpost.standins.deliveries import Signed, app_version_state, appstore_delivery
from slothpost.standins.github_repository import LocalRepository
from slothpost.standins.vercel import LocalProject


class Address(msgspec.Struct, frozen=True):
    """Whom a delivery is for. Those of Vercel's integration name no product."""

    source: Source
    product: str


Deliver = Callable[[Address, Signed], Awaitable[Received]]
SecretOf = Callable[[Address], Awaitable[str]]


class Shipper:
    """`deliver` brings a delivery to slothpost, and `secret_of` knows what it is signed with. Each method returns the answers."""

    def __init__(self, services: LocalServices, secret_of: SecretOf, deliver: Deliver) -> None:
        self._services = services
        self._secret_of = secret_of
        self._deliver = deliver

    async def test_github(self, product: str, repository: LocalRepository) -> list[Received]:
        """Send what GitHub sends when somebody adds a webhook."""
        address = Address("github", product)
        return [await self._deliver(address, repository.ping(await self._secret_of(address)))]

    async def merge(
        self, product: str, repository: LocalRepository, change: Merged, project: LocalProject | None = None
    ) -> list[Received]:
        """Merge a pull request: a push, its closing, and a deployment if there is a project. All three name one commit."""
        address = Address("github", product)
        secret, sha = await self._secret_of(address), self._sha(repository, change.title)
        pull = repository.merge(change.title, change.body, labels=change.labels, sha=sha)
        message = f"Merge pull request #{pull['number']} from {repository.owner}/change\n\n{change.title}"
        answers = [
            await self._deliver(address, repository.pushed(secret, message, shas=[sha])),
            await self._deliver(address, repository.merged(secret, pull)),
        ]
        if project is not None:
            answers += await self._deploy(project, message, sha=sha, repository=repository)
        return answers

    async def push(self, product: str, repository: LocalRepository, *messages: str) -> list[Received]:
        address = Address("github", product)
        shas = [self._sha(repository, message) for message in messages]
        return [await self._deliver(address, repository.pushed(await self._secret_of(address), *messages, shas=shas))]

    async def release(self, product: str, repository: LocalRepository, released: Released) -> list[Received]:
        address = Address("github", product)
        published = repository.publish(released.tag, released.name, released.notes)
        published["id"] = int(self._sha(repository, released.tag)[:8], 16)
        return [await self._deliver(address, repository.released(await self._secret_of(address), published))]

    async def star(self, product: str, repository: LocalRepository, count: int) -> list[Received]:
        """Give a repository the star with which it has so many."""
        address = Address("github", product)
        repository.stars = count - 1
        return [await self._deliver(address, repository.starred(await self._secret_of(address)))]

    async def deploy(self, project: LocalProject, message: str) -> list[Received]:
        """Deploy a project by hand, from a commit that no repository of the demo has."""
        return await self._deploy(project, message, sha=self._digest(project.id, message))

    async def test_appstore(self, product: str) -> list[Received]:
        address = Address("appstore", product)
        data = {"type": "webhookPings", "id": str(uuid.uuid4()), "version": 1, "attributes": {"ping": True}}
        return [await self._deliver(address, appstore_delivery(await self._secret_of(address), data))]

    async def submit(self, product: str, app: int, submitted: InReview) -> list[Received]:
        """Send a version of an app to Apple's review."""
        return [await self._version_state(product, app, submitted.version, "IN_REVIEW")]

    async def put_in_store(self, product: str, app: int, name: str, live: InStore) -> list[Received]:
        """Let a version go live. What is in it, slothpost learns from the public lookup."""
        self._services.appstore.release(app, live.version, name=name, notes=live.notes, at=self._services.now())
        return [await self._version_state(product, app, live.version, LIVE)]

    async def _deploy(
        self, project: LocalProject, message: str, *, sha: str, repository: LocalRepository | None = None
    ) -> list[Received]:
        vercel = self._services.vercel
        deployment = vercel.deploy(project, message, sha=sha, repository=repository)
        deployment["uid"] = f"dpl_{sha[:24]}"
        signed = vercel.delivery(project, deployment, id=f"hook_{sha[:24]}", user=project.account)
        return [await self._deliver(Address("vercel", ""), signed)]

    async def _version_state(self, product: str, app: int, version: str, state: str) -> Received:
        address = Address("appstore", product)
        instance = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{app}/{version}"))
        data: dict[str, Any] = app_version_state(instance, state, at=self._services.now())
        return await self._deliver(address, appstore_delivery(await self._secret_of(address), data))

    def _sha(self, repository: LocalRepository, what: str) -> str:
        return self._digest(repository.name, what)

    def _digest(self, *parts: str) -> str:
        """Return what is another one at each start: slothpost would take a commit that it knows for the same."""
        named = "\n".join((*parts, self._services.now().isoformat()))
        return hashlib.sha1(named.encode(), usedforsecurity=False).hexdigest()
