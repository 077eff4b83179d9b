"""Receives webhook deliveries: the raw body is verified first, then the few fields that are used are sent to the engine."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import TypeVar

import msgspec

from slothpost.activity.event import Event
from slothpost.activity.happening import Deployment
from slothpost.identifiers import ACTIVITY
from slothpost.model import Connection, Source, Unrouted
from slothpost.quotas import DELIVERIES
from slothpost.sources import appstore, github, signatures, vercel
from slothpost.sources.reading import Reading
from slothpost.sources.source_secrets import SourceSecrets
from slothpost.sources.source_settings import SourceSettings
from slothpost.sources.untrusted import Unreadable, line
from slothpost.sources.vercel_routing import VercelRouting
from slothpost.utc_now import utc_now
from tickler import Policy, PythonTarget, Tickler
from tickler.errors import ConditionFailed, ItemNotFound, SendConflict
from tickler.table import MISSING, Change, OpenTable

T = TypeVar("T")

MAX_BODY_BYTES = 25 * 1024 * 1024  # GitHub sends no more
UNROUTED_KEPT = timedelta(days=30)

_LARGE_BYTES = 1024 * 1024  # hashed and read on a thread
_SEEN_AGAIN = timedelta(minutes=1)  # `seen_at` is not written more often
_POLICY = Policy(attempts=20, backoff=[5, 60, 600], timeout=120)
_PRODUCT = re.compile(r"[\w-]{1,64}", re.ASCII)

_IS_SIGNED: Mapping[Source, Callable[[str, bytes, str | None], bool]] = {
    "github": signatures.is_from_github,
    "vercel": lambda secret, body, given: signatures.is_from_vercel([secret], body, given),
    "appstore": signatures.is_from_appstore,
}


class Received(msgspec.Struct, frozen=True):
    """The answer to a delivery: a status of HTTP, and why."""

    status: int
    reason: str


REFUSED = Received(HTTPStatus.UNAUTHORIZED, "the signature is wrong or missing")
TOO_MANY = Received(HTTPStatus.TOO_MANY_REQUESTS, "too many deliveries for this product: what they tell is found by polling")
TOO_LARGE = Received(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {MAX_BODY_BYTES // 1024 // 1024} MB")


class Webhooks:
    """Accepts deliveries in milliseconds; the work is done by the handler `slothpost.activity`.

    The key of a send is the delivery's id, so that a delivery which comes again sends nothing.
    """

    def __init__(self, t: Tickler, db: OpenTable, settings: SourceSettings) -> None:
        self._t = t
        self._db = db
        self._settings = settings
        self._secrets = SourceSecrets(t)
        self._routing = VercelRouting(db)
        self._deliveries = DELIVERIES.limit(self._now)

    async def github(self, product: str, headers: Mapping[str, str], body: bytes) -> Received:
        """Take a delivery for a product. Names of headers are lower-case."""
        connection = await self._signer(product, "github", body, headers.get("x-hub-signature-256"))
        if isinstance(connection, Received):
            return connection
        event, delivery = headers.get("x-github-event"), headers.get("x-github-delivery")
        if not event or not delivery:
            return Received(HTTPStatus.BAD_REQUEST, "the header X-GitHub-Event or X-GitHub-Delivery is missing")
        return await self._accept(connection, body, lambda: github.read(event, delivery, headers.get("content-type", ""), body))

    async def appstore(self, product: str, headers: Mapping[str, str], body: bytes) -> Received:
        """Take a delivery for a product. It does not say of which app it is."""
        connection = await self._signer(product, "appstore", body, headers.get("x-apple-signature"))
        if isinstance(connection, Received):
            return connection
        return await self._accept(connection, body, lambda: appstore.read(body))

    async def vercel(self, headers: Mapping[str, str], body: bytes, product: str | None = None) -> Received:
        """Take a delivery of the integration's one webhook; with `product`, of a webhook of that user's own account.

        Who knows the secret of an account's webhook may only speak for the project of that product: the address has the product,
        only its own secret is compared, and a delivery about anything else is ignored.
        """
        given = headers.get("x-vercel-signature")
        if product is not None:
            connection = await self._signer(product, "vercel", body, given)
            if isinstance(connection, Received):
                return connection
            return await self._accept(connection, body, lambda: vercel.read(body))
        if len(body) > MAX_BODY_BYTES:
            return TOO_LARGE
        if not await _worked(body, lambda: signatures.is_from_vercel(self._settings.vercel_secrets, body, given)):
            return REFUSED
        try:
            return await self._route(await _worked(body, lambda: vercel.read(body)))
        except Unreadable as error:
            return Received(HTTPStatus.BAD_REQUEST, str(error))

    async def _signer(self, product: str, source: Source, body: bytes, given: str | None) -> Connection | Received:
        """Return the connection whose secret signed a body. Nothing tells a product that is not there from a wrong signature."""
        if len(body) > MAX_BODY_BYTES:
            return TOO_LARGE
        name = product if _PRODUCT.fullmatch(product) else "-"
        connection = await self._db.get(Connection.key.id(name, source))
        secret = self._secrets.signing_secret(connection)
        if not await _worked(body, lambda: _IS_SIGNED[source](secret, body, given)) or connection is None:
            return REFUSED
        return connection

    async def _accept(self, connection: Connection, body: bytes, read: Callable[[], Reading]) -> Received:
        if self._deliveries.take(connection.product):
            return TOO_MANY
        try:
            return await self._take(connection, await _worked(body, read))
        except Unreadable as error:
            return Received(HTTPStatus.BAD_REQUEST, str(error))

    async def _route(self, reading: Reading) -> Received:
        if reading.is_ping:
            return Received(HTTPStatus.OK, "the test has arrived")
        if reading.subject is None:
            return Received(HTTPStatus.ACCEPTED, "ignored: it names no project")
        connection = await self._routing.find(reading.subject, reading.owner)
        if connection is not None:
            return TOO_MANY if self._deliveries.take(connection.product) else await self._take(connection, reading)
        return await self._keep_unrouted(reading, reading.subject)

    async def _take(self, connection: Connection, reading: Reading) -> Received:
        why = _foreign(connection, reading) or reading.ignored
        if why:
            await self._note(connection, ignored=why)
            return Received(HTTPStatus.ACCEPTED, f"ignored: {why}")
        if reading.is_ping:
            await self._note(connection)
            return Received(HTTPStatus.OK, "the connection is live")
        event = Event(
            product=connection.product,
            source=connection.source,
            delivery=reading.delivery,
            subject=reading.subject,
            happenings=reading.happenings,
        )
        key = f"activity/{event.product}/{event.source}/{event.delivery}"
        try:
            sent = await self._t.send(connection.user, key, PythonTarget(ACTIVITY), event.to_json(), policy=_POLICY)
        except SendConflict:
            await self._note(connection, ignored="a delivery of this id came before, with other content")
            return Received(HTTPStatus.CONFLICT, "a delivery of this id came before, with other content")
        await self._note(connection)
        return Received(HTTPStatus.ACCEPTED, "accepted") if sent.is_new else Received(HTTPStatus.OK, "it came before")

    async def _note(self, connection: Connection, *, ignored: str = "") -> None:
        """Write on the connection that a verified delivery came, and why nothing was made of it."""
        now = self._now()
        changes: list[Change[Connection]] = []
        if ignored:
            changes += [Connection.ignored.add(1), Connection.last_ignored.set(ignored)]
        if connection.live_at is MISSING:
            changes.append(Connection.live_at.set(now))
        if changes or connection.seen_at is MISSING or now - connection.seen_at >= _SEEN_AGAIN:
            try:
                await self._db.update(connection.key, Connection.seen_at.set(now), *changes)
            except ItemNotFound:
                return  # it was disconnected just now

    async def _keep_unrouted(self, reading: Reading, project: str) -> Received:
        now = self._now()
        unrouted = Unrouted(
            id=reading.delivery,
            project=project,
            owner=MISSING if reading.owner is None else reading.owner,
            event=reading.event,
            summary=_summary(reading),
            name=reading.name,
            happenings=msgspec.json.encode(reading.happenings).decode(),
            received_at=now,
            expires_at=now + UNROUTED_KEPT,
        )
        try:
            await self._db.create(unrouted)
        except ConditionFailed:
            return Received(HTTPStatus.OK, "it came before")
        return Received(HTTPStatus.ACCEPTED, "kept: no product has this project")

    def _now(self) -> datetime:
        return utc_now(self._t)


def _summary(reading: Reading) -> str:
    """Say in a line what a deployment is about, or why nothing would be made of it."""
    for happening in reading.happenings:
        if isinstance(happening.news, Deployment) and happening.news.message:
            return line(happening.news.message.partition("\n")[0])
    return reading.ignored or "a deployment to production"


async def _worked(body: bytes, work: Callable[[], T]) -> T:
    """Work on a large body on a thread, so that others are answered meanwhile: a form of 25 MB takes seconds to read."""
    return await asyncio.to_thread(work) if len(body) > _LARGE_BYTES else work()


def _foreign(connection: Connection, reading: Reading) -> str:
    """Say why a delivery is not about what is connected; empty if it is.

    Apple's deliveries name no app. A repository may be connected by its webhook alone, without having been chosen.
    """
    if connection.source == "appstore" or (reading.is_ping and reading.subject is None):
        return ""
    if connection.external_id is MISSING:
        return "" if connection.source == "github" else "no project was chosen for this product"
    if reading.subject == connection.external_id:
        return ""
    return f"it is about another {'repository' if connection.source == 'github' else 'project'} than the one that is connected"
