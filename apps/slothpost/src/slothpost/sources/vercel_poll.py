"""Looks at a Vercel project: deployments to production that no webhook reported, and whether it is still the user's."""

from __future__ import annotations

from datetime import datetime

from slothpost.activity.intake import vercel_owner
from slothpost.model import Connection, VercelInstallation
from slothpost.sources.polls import Found, polled_since, with_etags
from slothpost.sources.source_errors import Missing, TokenRejected
from slothpost.sources.source_secrets import SourceSecrets
from slothpost.sources.vercel import listed
from slothpost.sources.vercel_api import Access, Project, VercelApi
from tickler.table import MISSING, OpenTable, evolve


class VercelPoll:
    def __init__(self, db: OpenTable, api: VercelApi, secrets: SourceSecrets) -> None:
        self._db = db
        self._api = api
        self._secrets = secrets

    async def look(self, connection: Connection, now: datetime) -> Found:
        """Ask for the project, then for its deployments. `Missing` if the project is no longer the user's."""
        if connection.external_id is MISSING:
            raise Missing("no project was chosen for this product: choose one")
        installation = await self._installation(connection)
        access = access_of(installation, self._secrets)
        project = await self._api.project(access, connection.external_id)
        if project is None:
            raise Missing("Vercel does not have the project any more")
        since, etag = polled_since(connection, now), connection.etags.get("deployments")
        answer, deployments = await self._api.deployments(access, project.id, etag)
        told = [listed(deployment) for deployment in deployments if deployment.at is None or deployment.at >= since]
        changed = evolve(
            connection,
            name=project.name,
            owners=project_owners(installation, project),
            etags=with_etags(connection.etags, deployments=answer),
        )
        return Found(connection=changed, happenings=tuple(told))

    async def _installation(self, connection: Connection) -> VercelInstallation:
        found = None
        if connection.installation is not MISSING:
            found = await self._db.get(VercelInstallation.key.id(connection.user, connection.installation))
        if found is None:
            raise TokenRejected("the Vercel integration is not installed any more: install it again")
        return found


def access_of(installation: VercelInstallation, secrets: SourceSecrets) -> Access:
    token = secrets.installation_token(installation.user, installation.token)
    return Access(token, None if installation.team_id is MISSING else installation.team_id)


def project_owners(installation: VercelInstallation, project: Project) -> list[str]:
    """Return whose the deployments of a project are, as deliveries may say: its team's, or its user's."""
    return sorted({owner for owner in (vercel_owner(installation), project.account_id) if owner is not None})
