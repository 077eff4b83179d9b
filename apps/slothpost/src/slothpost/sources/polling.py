"""Finds what webhooks missed: the handler of `poll/{product}/{source}`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

import aiohttp
import msgspec

from slothpost.activity.event import Event
from slothpost.activity.happening import POLL, Happening
from slothpost.activity.intake import NOT_CONNECTED, Intake
from slothpost.model import Connection, Source, Unrouted
from slothpost.notices import News, Notices
from slothpost.sources.api import OpenSession
from slothpost.sources.appstore_poll import AppstorePoll
from slothpost.sources.github_api import GithubApi
from slothpost.sources.github_poll import GithubPoll
from slothpost.sources.itunes_api import ItunesApi
from slothpost.sources.poll_schedule import stop_polling
from slothpost.sources.polls import Found, Look
from slothpost.sources.setup import SOURCE_NAMES
from slothpost.sources.source_errors import Missing, SourceError, Throttled, TokenRejected
from slothpost.sources.source_secrets import SourceSecrets
from slothpost.sources.source_settings import SourceSettings
from slothpost.sources.vercel_api import VercelApi
from slothpost.sources.vercel_claims import give_up_project
from slothpost.sources.vercel_poll import VercelPoll
from slothpost.utc_now import utc_now
from tickler import RetryLater, Tickler
from tickler.errors import ConditionFailed, DecryptionFailed, ItemNotFound
from tickler.table import MISSING, Change, OpenTable, Transaction, evolve


class Polling:
    """Polls one connection at a time. What went wrong is kept on the connection, and shown."""

    def __init__(
        self,
        t: Tickler,
        db: OpenTable,
        settings: SourceSettings,
        intake: Intake,
        notices: Notices,
        open_session: OpenSession = aiohttp.ClientSession,
    ) -> None:
        self._t = t
        self._db = db
        self._intake = intake
        self._notices = notices
        secrets = SourceSecrets(t)
        self._looks: Mapping[Source, Look] = {
            "github": GithubPoll(GithubApi(settings.github_api_url, open_session, self._now), secrets).look,
            "vercel": VercelPoll(db, VercelApi(settings.vercel_api_url, open_session, self._now), secrets).look,
            "appstore": AppstorePoll(ItunesApi(settings.itunes_url, open_session, self._now)).look,
        }

    async def poll(self, user: str, product: str, source: Source) -> str:
        """Take in what is new at a source, and return what was done, for the history of the fire."""
        connection = await self._db.get(Connection.key.id(product, source))
        if connection is None or connection.user != user:
            return "nothing to do: it is not connected any more"
        if connection.broken is not MISSING:
            return "nothing to do: it must be connected again"
        now = self._now()
        if connection.poll_after is not MISSING and now < connection.poll_after:
            return f"nothing asked before {connection.poll_after:%H:%M} UTC, as {SOURCE_NAMES[source]} wishes"
        try:
            found = await self._looks[source](connection, now)
        except TokenRejected as error:
            return await self._break(connection, str(error))
        except DecryptionFailed:
            return await self._break(connection, "slothpost cannot decrypt the token any more")
        except Throttled as error:
            await self._note(connection, Connection.poll_error.set(str(error)), Connection.poll_after.set(error.until))
            raise RetryLater(at=error.until, reason=str(error)) from None
        except SourceError as error:
            return await self._fail(connection, error)
        taken = await self._take(found)
        await self._settle(found, now)
        return taken

    async def _take(self, found: Found) -> str:
        """Take in what was found. The ETags are stored afterwards: a process that dies in between asks again."""
        if found.connection.source == "vercel" and found.connection.polled_at is MISSING:
            await self._take_unrouted(found.connection)
        if not found.happenings:
            return "nothing new"
        return await self._intake.take(_event(found.connection, POLL, found.happenings))

    async def _take_unrouted(self, connection: Connection) -> None:
        """Take in deliveries that came before the project was connected, of the team or user that has it, and no other's."""
        if connection.external_id is MISSING:
            return
        for owner in connection.owners:
            of_project = Unrouted.project == connection.external_id
            async for unrouted in self._db.iterate(Unrouted.of_owner(owner), where=of_project):
                happenings = msgspec.json.decode(unrouted.happenings, type=tuple[Happening, ...])
                taken = await self._intake.take(_event(connection, unrouted.id, happenings))
                if taken != NOT_CONNECTED:
                    await self._db.delete(unrouted.key)

    async def _settle(self, found: Found, now: datetime) -> None:
        connection = found.connection
        changes = [
            Connection.etags.set(connection.etags),
            Connection.polled_at.set(now),
            Connection.is_private.set(connection.is_private),
            Connection.owners.set(connection.owners),
            Connection.poll_after.set(now + found.wait) if found.wait else Connection.poll_after.remove(),
            Connection.poll_error.set(found.problem) if found.problem else Connection.poll_error.remove(),
        ]
        if connection.name is not MISSING:
            changes.append(Connection.name.set(connection.name))
        if connection.stars is not MISSING:
            changes.append(Connection.stars.set(connection.stars))
        await self._note(connection, *changes)

    async def _fail(self, connection: Connection, error: SourceError) -> str:
        """Keep an error. A Vercel project that is missing twice is no longer the user's: others may claim it."""
        is_gone = connection.source == "vercel" and isinstance(error, Missing) and connection.poll_error == str(error)
        if is_gone:
            return await self._break(connection, f"{error}: choose it again if it is yours", gives_up=True)
        await self._note(connection, Connection.poll_error.set(str(error)))
        return f"failed: {error}"

    async def _break(self, connection: Connection, reason: str, *, gives_up: bool = False) -> str:
        """Stop polling and tell the user, once."""

        async def work(tx: Transaction) -> str:
            found = await tx.get(connection.key)
            if found is None or found.broken is not MISSING or _is_other(found, connection):
                return "nothing to do: it was connected again, or no more"
            if gives_up:
                await give_up_project(tx, found)
            tx.put(evolve(found, broken=reason, poll_error=MISSING, external_id=MISSING if gives_up else found.external_id))
            await stop_polling(self._t, tx, found)
            await self._notices.add(tx, self._news(found, reason))
            return f"stopped: {reason}"

        return await self._db.transact(work)

    def _news(self, connection: Connection, reason: str) -> News:
        name = SOURCE_NAMES[connection.source]
        return News(
            user=connection.user,
            kind="source",
            text=f"{name} must be connected again: {reason}",
            id=f"source-{connection.product}-{connection.source}-{self._t.now_ms()}",
            product=connection.product,
        )

    async def _note(self, connection: Connection, *changes: Change[Connection]) -> None:
        """Write on a connection, unless it was disconnected or connected to something else meanwhile."""
        same = Connection.user.exists()
        if connection.external_id is not MISSING:
            same = Connection.external_id == connection.external_id
        with suppress(ConditionFailed, ItemNotFound):
            await self._db.update(connection.key, *changes, when=same)

    def _now(self) -> datetime:
        return utc_now(self._t)


def _event(connection: Connection, delivery: str, happenings: tuple[Happening, ...]) -> Event:
    subject = None if connection.external_id is MISSING else connection.external_id
    return Event(product=connection.product, source=connection.source, delivery=delivery, subject=subject, happenings=happenings)


def _is_other(found: Connection, polled: Connection) -> bool:
    """Tell whether a connection was made again after it was read: then the error was about what it had before."""
    return (found.token, found.installation, found.external_id) != (polled.token, polled.installation, polled.external_id)
