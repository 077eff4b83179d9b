"""Who has which Vercel project. Only the list of a user's own installation proves that a project is theirs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TypeVar
from urllib.parse import quote, urlencode

import msgspec

from slothpost.errors import InvalidField, NotAllowed, NotFound
from slothpost.model import Connection, Product, VercelClaim, VercelInstallation
from slothpost.planning.circumstances import Circumstances
from slothpost.sources.poll_schedule import start_polling, stop_polling
from slothpost.sources.source_errors import Missing, SourceError, TokenRejected
from slothpost.sources.source_secrets import SourceSecrets
from slothpost.sources.source_settings import SourceSettings
from slothpost.sources.vercel_api import Issued, Project, VercelApi, checked_id
from slothpost.sources.vercel_poll import access_of, project_owners
from slothpost.utc_now import utc_now
from tickler import Tickler
from tickler.errors import ConditionFailed, DecryptionFailed
from tickler.table import MISSING, OpenTable, Transaction, evolve

STATE_LIFETIME = timedelta(hours=1)

T = TypeVar("T")


class ProjectChoice(msgspec.Struct, frozen=True):
    """A project of the user's own list."""

    id: str
    name: str


class _State(msgspec.Struct, frozen=True):
    product: str
    until: int  # milliseconds


class VercelClaims:
    """Installations of the integration, and the projects that users connect through them."""

    def __init__(self, t: Tickler, db: OpenTable, settings: SourceSettings, api: VercelApi) -> None:
        self._t = t
        self._db = db
        self._settings = settings
        self._api = api
        self._secrets = SourceSecrets(t)
        self._circumstances = Circumstances(db)

    async def install_url(self, user: str, product: str) -> str:
        """Return where a user installs the integration. They come back with a state that only counts for them."""
        await self._circumstances.product(user, product)
        slug = self._settings.vercel_integration_slug
        if slug is None or self._settings.vercel_client_id is None or self._settings.vercel_client_secret is None:
            raise NotAllowed("this installation has no Vercel integration: ask its operator to set one up")
        until = self._t.now_ms() + STATE_LIFETIME // timedelta(milliseconds=1)
        state = msgspec.json.encode(_State(product, until)).decode()
        encrypted = self._t.encryption.encrypt(state, purpose=_state_purpose(user))
        return f"{self._settings.vercel_url}/integrations/{quote(slug, safe='')}/new?{urlencode({'state': encrypted})}"

    async def authorized(
        self, user: str, code: str, configuration_id: str, team_id: str | None, *, state: str, redirect_uri: str
    ) -> str:
        """Exchange the code that a user came back with, and keep the installation. Returns the product that it was for.

        Whose installation it is, Vercel says in its answer. An address that says otherwise was made up, and is refused.
        """
        product = self._product_of(user, state)
        await self._circumstances.product(user, product)
        issued = await self._exchanged(code, redirect_uri)
        if issued.installation_id != configuration_id or issued.team_id != (team_id or None):
            raise NotAllowed("Vercel issued this code for another installation: install the integration again")
        installation = VercelInstallation(
            user=user,
            id=issued.installation_id,
            token=self._secrets.encrypt_installation(user, issued.access_token),
            team_id=issued.team_id or MISSING,
            vercel_user_id=issued.user_id,
            installed_at=self._now(),
        )
        await self._db.put(installation)
        return product

    async def projects(self, user: str) -> list[ProjectChoice]:
        """Return the projects of a user's installations, by name."""
        lists = await self._ask_each(user, self._listed)
        found = {project.id: ProjectChoice(project.id, project.name) for _, listed in lists for project in listed}
        return sorted(found.values(), key=lambda project: project.name)

    async def claim(self, user: str, product: str, project_id: str) -> Connection:
        """Connect a project to a product, in place of one that it had. `NotAllowed` if it belongs to another product.

        It does as long as that product's user can prove it, too; otherwise nobody could ever have what somebody left behind.
        """
        await self._circumstances.product(user, product)
        installation, project = await self._own_project(user, checked_id(project_id))

        async def work(tx: Transaction) -> Connection:
            claim = await tx.get(VercelClaim.key.id(project.id))
            if claim is not None and claim.product != product:
                await self._take_over(tx, claim, project)
            stored = await tx.get(Product.key.id(product))
            if stored is None or stored.user != user:
                raise NotFound("product")
            found = await tx.get(Connection.key.id(product, "vercel"))
            if found is not None and found.external_id not in (MISSING, project.id):
                await _give_up_claim(tx, found)
            connection = _connected(found, stored, installation, project)
            tx.put(VercelClaim(project=project.id, product=product, user=user))
            tx.update(stored.key, Product.vercel_project.set(project.id))
            tx.put(connection)
            await start_polling(self._t, tx, connection)
            return connection

        return await self._db.transact(work)

    async def _take_over(self, tx: Transaction, claim: VercelClaim, project: Project) -> None:
        """Take a project from a product that has lost it: its connection is broken, or Vercel names another owner now."""
        holder = await tx.get(Connection.key.id(claim.product, "vercel"))
        if holder is None or holder.external_id != project.id:
            return  # a claim of nothing
        is_known_owner = not holder.owners or project.account_id in (None, *holder.owners)
        if holder.broken is MISSING and is_known_owner:
            raise NotAllowed(f"the project {project.name} belongs to another product: disconnect it there first")
        await _unroute(tx, holder)
        await stop_polling(self._t, tx, holder)
        tx.put(evolve(holder, external_id=MISSING, broken="the project was connected to another product, as it is others' now"))

    async def _own_project(self, user: str, id: str) -> tuple[VercelInstallation, Project]:
        """Return a project that one of the user's installations may see, with that installation."""

        async def ask(installation: VercelInstallation) -> Project | None:
            access = access_of(installation, self._secrets)
            with suppress(Missing):
                project = await self._api.project(access, id)
                if project is not None and project.account_id in (None, access.team or project.account_id):
                    return project
            return None

        for installation, project in await self._ask_each(user, ask):
            if project is not None:
                return installation, project
        raise NotFound("project")

    async def _listed(self, installation: VercelInstallation) -> list[Project]:
        """Return what an installation may see. One that Vercel refuses even that to was removed, and proves nothing any more."""
        try:
            return await self._api.projects(access_of(installation, self._secrets))
        except TokenRejected:
            with suppress(ConditionFailed):  # it was installed again meanwhile
                await self._db.delete(installation.key, when=VercelInstallation.token == installation.token)
            raise

    async def _ask_each(self, user: str, ask: Callable[[VercelInstallation], Awaitable[T]]) -> list[tuple[VercelInstallation, T]]:
        """Ask Vercel with each installation of a user, the latest first. Some may have been removed there, but not all."""
        found = [installation async for installation in self._db.iterate(VercelInstallation.key(user))]
        answers: list[tuple[VercelInstallation, T]] = []
        reason = "install the Vercel integration first"
        for installation in sorted(found, key=lambda each: each.installed_at, reverse=True):
            try:
                answers.append((installation, await ask(installation)))
            except TokenRejected as error:
                reason = f"{error}: install the integration again"
            except SourceError as error:
                raise NotAllowed(f"{error}: try again in a moment") from None
        if not answers:
            raise NotAllowed(reason)
        return answers

    async def _exchanged(self, code: str, redirect_uri: str) -> Issued:
        client_id, client_secret = self._settings.vercel_client_id, self._settings.vercel_client_secret
        if client_id is None or client_secret is None:
            raise NotAllowed("this installation has no Vercel integration: ask its operator to set one up")
        try:
            return await self._api.exchange(code, client_id=client_id, client_secret=client_secret, redirect_uri=redirect_uri)
        except SourceError as error:
            raise NotAllowed(f"{error}: install the integration again") from None

    def _product_of(self, user: str, state: str) -> str:
        """Return the product that a user began to connect; somebody else's state decrypts for nobody."""
        try:
            decrypted = self._t.encryption.decrypt(state, purpose=_state_purpose(user))
            found = msgspec.json.decode(decrypted, type=_State)
        except (DecryptionFailed, msgspec.MsgspecError):
            raise InvalidField("state", "you did not begin this here: begin on the page of your product") from None
        if found.until < self._t.now_ms():
            raise InvalidField("state", "it took too long: begin again on the page of your product")
        return found.product

    def _now(self) -> datetime:
        return utc_now(self._t)


async def give_up_project(tx: Transaction, connection: Connection) -> None:
    """Let a project go in a transaction: another product may claim it, and nothing is routed to this one any more."""
    await _give_up_claim(tx, connection)
    await _unroute(tx, connection)


async def _unroute(tx: Transaction, connection: Connection) -> None:
    product = await tx.get(Product.key.id(connection.product))
    if product is not None and product.vercel_project == connection.external_id:
        tx.update(product.key, Product.vercel_project.remove())


async def _give_up_claim(tx: Transaction, connection: Connection) -> None:
    if connection.external_id is MISSING:
        return
    claim = await tx.get(VercelClaim.key.id(connection.external_id))
    if claim is not None and claim.product == connection.product:
        tx.delete(claim.key)


def _connected(found: Connection | None, product: Product, installation: VercelInstallation, project: Project) -> Connection:
    """Return the connection of a product with a project. What was learned of another project is forgotten."""
    fresh = Connection(product=product.id, source="vercel", user=product.user)
    if found is not None:
        fresh = found if found.external_id == project.id else evolve(fresh, secret=found.secret)
    return evolve(
        fresh,
        external_id=project.id,
        name=project.name,
        installation=installation.id,
        owners=project_owners(installation, project),
        broken=MISSING,
        poll_error=MISSING,
    )


def _state_purpose(user: str) -> str:
    return f"slothpost: vercel installation by {user}"
