"""Connects products to repositories, Vercel projects and apps."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TypeVar

import aiohttp
import msgspec

from slothpost.errors import InvalidField, NotAllowed
from slothpost.model import Connection, Source
from slothpost.planning.circumstances import Circumstances
from slothpost.sources.api import OpenSession
from slothpost.sources.github_api import GithubApi, ListedRepository
from slothpost.sources.itunes_api import ItunesApi, checked_app, checked_country
from slothpost.sources.poll_schedule import start_polling, stop_polling
from slothpost.sources.setup import VERCEL_RETURN_PATH, Setup, setup_of, webhook_path
from slothpost.sources.source_errors import Forbidden, Missing, SourceError, TokenRejected
from slothpost.sources.source_secrets import SourceSecrets
from slothpost.sources.source_settings import SourceSettings
from slothpost.sources.untrusted import line
from slothpost.sources.vercel_api import VercelApi
from slothpost.sources.vercel_claims import ProjectChoice, VercelClaims, give_up_project
from slothpost.utc_now import utc_now
from tickler import Tickler
from tickler.errors import ConditionFailed, DecryptionFailed, ItemNotFound
from tickler.table import MISSING, OpenTable, Transaction, evolve

MAX_SECRET = 200

T = TypeVar("T")

_TOKEN = re.compile(r"[\x21-\x7e]{1,255}")


class RepositoryChoice(msgspec.Struct, frozen=True):
    """A repository of the user's own list."""

    name: str
    is_private: bool


class Connections:
    """What belongs to other users is not found. A secret is returned once, when it is made."""

    def __init__(
        self,
        t: Tickler,
        db: OpenTable,
        settings: SourceSettings,
        *,
        base_url: str,
        open_session: OpenSession = aiohttp.ClientSession,
    ) -> None:
        self._t = t
        self._db = db
        self._base_url = base_url.rstrip("/")
        self._secrets = SourceSecrets(t)
        self._circumstances = Circumstances(db)
        self._github = GithubApi(settings.github_api_url, open_session, self._now)
        self._itunes = ItunesApi(settings.itunes_url, open_session, self._now)
        self._claims = VercelClaims(t, db, settings, VercelApi(settings.vercel_api_url, open_session, self._now))

    async def setup(self, user: str, product: str, source: Source) -> Setup:
        """Return a connection of a product, which is begun if there is none: then with the secret of its webhook."""
        await self._circumstances.product(user, product)
        found = await self._db.get(Connection.key.id(product, source))
        if found is not None:
            return setup_of(found)
        if source == "vercel":
            return setup_of(Connection(product=product, source=source, user=user))
        return await self._write(user, product, source, lambda connection: connection)

    async def new_secret(self, user: str, product: str, source: Source) -> Setup:
        """Replace the secret of a webhook, for somebody who has lost it. From then on the old one is refused."""
        await self._circumstances.product(user, product)
        if source == "vercel":
            raise NotAllowed("Vercel makes the secrets of its webhooks: enter the one that it showed")
        secret = self._secrets.new_secret()
        encrypted = self._secrets.encrypt_secret(product, source, secret)

        def renewed(connection: Connection) -> Connection:
            return evolve(connection, secret=encrypted, live_at=MISSING, hook=MISSING)

        setup = await self._write(user, product, source, renewed)
        return msgspec.structs.replace(setup, secret=secret)

    async def list(self, user: str, product: str) -> list[Setup]:
        """Return the connections of a product, without secrets."""
        await self._circumstances.product(user, product)
        return [setup_of(found) async for found in self._db.iterate(Connection.key(product))]

    async def github_repositories(self, token: str) -> Sequence[RepositoryChoice]:
        """Return the repositories that the owner of a fine-grained token may choose from."""
        found = await _asked(self._github.repositories(_checked_token(token)), "token")
        return [RepositoryChoice(each.full_name, each.private) for each in found if each.is_writable]

    async def connect_github(self, user: str, product: str, token: str, repository: str) -> Setup:
        """Connect a repository of the token's owner. The webhook is created, too, if the token may do that."""
        await self._circumstances.product(user, product)
        token = _checked_token(token)
        found = (await _asked(self._github.repository(token, repository), "repository")).found
        assert found is not None  # it was asked for without an ETag
        if not found.is_writable:
            raise InvalidField("repository", f"you may not push to {found.full_name}: choose one of your own")
        encrypted = self._secrets.encrypt_token(product, "github", token)

        def connected(connection: Connection) -> Connection:
            same = _of(connection, str(found.id))
            return evolve(same, token=encrypted, name=found.full_name, is_private=found.private)

        before = await self._db.get(Connection.key.id(product, "github"))
        setup = await self._write(user, product, "github", connected, polls=True)
        if before is not None and before.external_id != str(found.id):
            await self._delete_hook(before, token)
        return await self._with_hook(product, token, found, setup)

    async def vercel_install_url(self, user: str, product: str) -> str:
        """Return where a user installs the Vercel integration, to come back to `VERCEL_RETURN_PATH`."""
        return await self._claims.install_url(user, product)

    async def vercel_authorized(self, user: str, code: str, configuration_id: str, team_id: str | None, state: str) -> str:
        """Take what Vercel sent a user back with: `code`, `configurationId`, `teamId`, `state`. Returns the product it is for."""
        redirect_uri = f"{self._base_url}{VERCEL_RETURN_PATH}"
        return await self._claims.authorized(user, code, configuration_id, team_id, state=state, redirect_uri=redirect_uri)

    async def vercel_projects(self, user: str) -> Sequence[ProjectChoice]:
        """Return the projects of the user's own team or account."""
        return await self._claims.projects(user)

    async def claim_vercel(self, user: str, product: str, project_id: str) -> Setup:
        """Connect a project of that list. `NotAllowed` if it belongs to another product, and `NotFound` if not to the user."""
        return setup_of(await self._claims.claim(user, product, project_id))

    async def use_vercel_secret(self, user: str, product: str, secret: str) -> Setup:
        """Keep the secret of a webhook of the user's own account, whose address has the product; empty to forget it."""
        stripped = secret.strip()
        if len(stripped) > MAX_SECRET:
            raise InvalidField("secret", f"it has more than {MAX_SECRET} characters: copy what Vercel shows")
        encrypted = self._secrets.encrypt_secret(product, "vercel", stripped) if stripped else MISSING
        return await self._write(user, product, "vercel", lambda connection: evolve(connection, secret=encrypted))

    async def connect_appstore(self, user: str, product: str, app_id: str | None = None, country: str = "us") -> Setup:
        """Connect an app by its webhook, and with its id, by the public lookup, too. It may not be out yet."""
        if app_id is None:
            return await self.setup(user, product, "appstore")
        await self._circumstances.product(user, product)
        app, store = checked_app(app_id.strip().removeprefix("id")), checked_country(country.strip().lower())
        name = None
        with suppress(SourceError):
            _, found = await self._itunes.look_up(app, store)
            name = None if found is None else line(found.track_name, 100)

        def connected(connection: Connection) -> Connection:
            return evolve(_of(connection, app), country=store, name=MISSING if name is None else name)

        return await self._write(user, product, "appstore", connected, polls=True)

    async def disconnect(self, user: str, product: str, source: Source) -> None:
        """Forget a connection with its secret and token. What it brought stays. Others may then claim a Vercel project."""
        await self._circumstances.product(user, product)

        async def work(tx: Transaction) -> Connection | None:
            found = await tx.get(Connection.key.id(product, source))
            if found is None:
                return None
            if source == "vercel":
                await give_up_project(tx, found)
            await stop_polling(self._t, tx, found)
            tx.delete(found.key)
            return found

        removed = await self._db.transact(work)
        with suppress(DecryptionFailed):
            token = None if removed is None else self._secrets.token(removed)
            if removed is not None and token is not None:
                await self._delete_hook(removed, token)

    async def _delete_hook(self, connection: Connection, token: str) -> None:
        """Delete the webhook that slothpost created. If that fails, its deliveries are refused or ignored."""
        if connection.hook is not MISSING and connection.name is not MISSING:
            with suppress(SourceError):
                await self._github.delete_hook(token, connection.name, connection.hook)

    async def _write(
        self, user: str, product: str, source: Source, change: Callable[[Connection], Connection], *, polls: bool = False
    ) -> Setup:
        """Change a connection, which is made with a new secret if there is none, and start to poll it."""

        async def work(tx: Transaction) -> Setup:
            await self._circumstances.product(user, product)
            found = await tx.get(Connection.key.id(product, source))
            secret = None
            connection = Connection(product=product, source=source, user=user) if found is None else found
            if source != "vercel" and connection.secret is MISSING:
                secret = self._secrets.new_secret()
                connection = evolve(connection, secret=self._secrets.encrypt_secret(product, source, secret))
            changed = change(connection)
            if polls:
                changed = evolve(changed, broken=MISSING, poll_error=MISSING, poll_after=MISSING)
                await start_polling(self._t, tx, changed)
            tx.put(changed)
            return setup_of(changed, secret)

        return await self._db.transact(work)

    async def _with_hook(self, product: str, token: str, repository: ListedRepository, setup: Setup) -> Setup:
        """Create the webhook if the token may, and GitHub can reach it. Otherwise the user does it, with the secret.

        GitHub refuses a second one with the same address, so one that is there already stays.
        """
        key = Connection.key.id(product, "github")
        connection = await self._db.get(key)
        if connection is None or not self._base_url.startswith("https://"):
            return setup
        url = f"{self._base_url}{webhook_path('github', product)}"
        try:
            secret = self._secrets.signing_secret(connection)
            hook = await self._github.create_hook(token, repository.full_name, url=url, secret=secret)
        except SourceError:
            return setup
        try:
            updated = await self._db.update(key, Connection.hook.set(hook), when=Connection.external_id == str(repository.id))
        except (ConditionFailed, ItemNotFound):  # it was disconnected, or connected to another one, meanwhile
            return setup
        return setup_of(updated)

    def _now(self) -> datetime:
        return utc_now(self._t)


def _of(connection: Connection, external_id: str) -> Connection:
    """Return the connection for what is chosen now. If that is something else, what was learned of the other is forgotten."""
    if connection.external_id == external_id:
        return connection
    fresh = Connection(product=connection.product, source=connection.source, user=connection.user, secret=connection.secret)
    keeps_webhook = connection.external_id is MISSING  # it was set up before the choice
    return evolve(fresh, external_id=external_id, live_at=connection.live_at if keeps_webhook else MISSING)


def _checked_token(token: str) -> str:
    """Return a token as people paste it, without spaces around it."""
    stripped = token.strip()
    if not _TOKEN.fullmatch(stripped):
        raise InvalidField("token", "this is no token: paste the fine-grained token that GitHub showed")
    return stripped


async def _asked(asking: Awaitable[T], field: str) -> T:
    """Await what a source answers; its refusals become errors of a field."""
    try:
        return await asking
    except TokenRejected as error:
        raise InvalidField("token", f"{error}: create a new fine-grained token") from None
    except (Forbidden, Missing) as error:
        raise InvalidField(field, f"{error}: choose a repository that the token has access to") from None
    except SourceError as error:
        raise NotAllowed(f"{error}: try again in a moment") from None
