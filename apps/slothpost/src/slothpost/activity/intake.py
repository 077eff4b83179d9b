"""Takes in what sources reported: one activity for one thing that happened, however many report it, and however often."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Literal

from slothpost.activity.app_releases import LIVE, placed
from slothpost.activity.classify import Classified, classify, classify_stars
from slothpost.activity.event import Event
from slothpost.activity.happening import AppVersion, Happening, Stars
from slothpost.activity.merge import is_private, merged
from slothpost.errors import NotFound
from slothpost.model import Activity, Connection, Product, Sighting, Unrouted, User, VercelInstallation
from slothpost.model.connection import AppRelease
from slothpost.utc_now import utc_now
from tickler import Tickler
from tickler.errors import ConditionFailed
from tickler.table import MISSING, Condition, OpenTable, Page, Transaction, evolve

NOT_CONNECTED = "nothing was taken in: this is no longer connected to the product"
MAX_UNROUTED = 100  # of one team, for its user's page

Taken = Literal["new", "improved", "known", "left out"]


class Disconnected(Exception):
    """The product is not connected to what an event is about."""


class Intake:
    """The handler of `slothpost.activity`. Taking an event twice is the same as taking it once."""

    def __init__(self, t: Tickler, db: OpenTable) -> None:
        self._t = t
        self._db = db

    async def take(self, event: Event) -> str:
        """Write the activities of an event, and return what was done, for the history of the fire.

        Nothing is written once the product is no longer connected to what the event is about.
        """
        taken = Counter[Taken]()
        for happening in event.happenings:
            try:
                taken[await self._take(event, happening)] += 1
            except (ConditionFailed, Disconnected):
                return NOT_CONNECTED
        return ", ".join(f"{count} {what}" for what, count in taken.items()) or "nothing to take in"

    async def _take(self, event: Event, happening: Happening) -> Taken:
        classified = _classified(happening)
        if classified is None:
            return "left out"
        now = utc_now(self._t)
        seen = _seen(event, happening, classified, now)
        if happening.is_private is None:
            seen = _with_privacy(seen, await self._privacy_of(event.product, happening.repository))

        async def work(tx: Transaction) -> Taken:
            placed_there = await self._placed(tx, event, happening, seen)
            found = await tx.get(placed_there.key)
            written = placed_there if found is None else merged(found, placed_there)
            if written is found:
                return "known"
            if not _is_live_version(happening):
                tx.check(Connection.key.id(event.product, event.source), _is_connected(event))
            tx.put(written)
            return "new" if found is None else "improved"

        return await self._db.transact(work)

    async def _placed(self, tx: Transaction, event: Event, happening: Happening, seen: Activity) -> Activity:
        """Return the activity under the id that it has: a version of an app may be there already, as its other half.

        The transaction writes what it has read of the connection, so that both halves cannot be created at once.
        """
        if not _is_live_version(happening):
            return seen
        assert isinstance(happening.news, AppVersion)
        connection = await tx.get(Connection.key.id(event.product, event.source))
        if connection is None:
            raise Disconnected
        version = happening.news.version
        instance = "" if version else happening.id
        id, releases = placed(connection.releases, AppRelease(activity=seen.id, at=seen.at, instance=instance, version=version))
        if releases != connection.releases:
            tx.put(evolve(connection, releases=releases))
        return evolve(seen, id=id)

    async def _privacy_of(self, product: str, repository: str | None) -> bool | None:
        """Return whether a repository is private, as the product's connection to it knows; None if it is not connected."""
        connection = await self._db.get(Connection.key.id(product, "github"))
        is_of_it = connection is not None and repository is not None and connection.external_id == repository
        return connection.is_private if connection is not None and is_of_it else None


class Activities:
    """What a user may see of what happened."""

    def __init__(self, db: OpenTable) -> None:
        self._db = db

    async def recent(self, user: str, product: str, first: int = 50, after: str | None = None) -> Page[Activity]:
        """Return a page of the activity of a product, the latest first."""
        found = await self._db.get(Product.key.id(product))
        if found is None or found.user != user:
            raise NotFound("product")
        return await self._db.query(Activity.by_time(product).newest_first(), first=first, after=after)

    async def unrouted(self, user: str) -> list[Unrouted]:
        """Return deliveries that no product claims and that are of a Vercel team or account which this user has installed."""
        installations = [installation async for installation in self._db.iterate(VercelInstallation.key(user))]
        owners = {owner for installation in installations if (owner := vercel_owner(installation)) is not None}
        pages = [await self._db.query(Unrouted.of_owner(owner).newest_first(), first=MAX_UNROUTED) for owner in sorted(owners)]
        return sorted((unrouted for page in pages for unrouted in page.items), key=lambda each: each.received_at, reverse=True)

    async def unrouted_everywhere(self, operator: str, first: int = 50, after: str | None = None) -> Page[Unrouted]:
        """Return a page of all deliveries that no product claims, the latest first. Only an operator sees them."""
        user = await self._db.get(User.key.id(operator))
        if user is None or not user.is_operator:
            raise NotFound("page")
        return await self._db.query(Unrouted.every().newest_first(), first=first, after=after)


def vercel_owner(installation: VercelInstallation) -> str | None:
    """Return whose deployments an installation may see: the team's that it is in, or else the user's."""
    owner = installation.vercel_user_id if installation.team_id is MISSING else installation.team_id
    return None if owner is MISSING else owner


def _classified(happening: Happening) -> Classified | None:
    return classify_stars(happening.news.count) if isinstance(happening.news, Stars) else classify(happening.news)


def _seen(event: Event, happening: Happening, classified: Classified, now: datetime) -> Activity:
    """Return the activity as one source tells it."""
    sighting = Sighting(source=event.source, event=happening.event, delivery=event.delivery, is_private=happening.is_private)
    return Activity(
        product=event.product,
        id=happening.id,
        at=now if happening.at is None else min(happening.at, now),
        kind=classified.kind,
        title=classified.title,
        body=classified.body,
        worth=classified.worth,
        url=MISSING if happening.url is None else happening.url,
        is_private=is_private([sighting]),
        repository=happening.repository_name,
        sightings=[sighting],
    )


def _with_privacy(activity: Activity, said: bool | None) -> Activity:
    sightings = [evolve(sighting, is_private=said) for sighting in activity.sightings]
    return evolve(activity, sightings=sightings, is_private=is_private(sightings))


def _is_live_version(happening: Happening) -> bool:
    return isinstance(happening.news, AppVersion) and happening.news.state == LIVE


def _is_connected(event: Event) -> Condition[Connection]:
    """Return the condition that a product still has what an event is about, for the transaction that writes its activity."""
    exists = Connection.user.exists()
    if event.source == "appstore" or event.subject is None:
        return exists
    chosen = Connection.external_id == event.subject
    return exists & ((chosen | Connection.external_id.missing()) if event.source == "github" else chosen)
