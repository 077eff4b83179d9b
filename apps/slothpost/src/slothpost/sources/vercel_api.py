"""The parts of Vercel's API that slothpost uses, with the token of an installed integration."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from slothpost.errors import InvalidField
from slothpost.sources.api import Answer, Api, Call, OpenSession
from slothpost.sources.untrusted import line
from slothpost.sources.vercel import ListedDeployment

MAX_PAGES = 10

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Access(msgspec.Struct, frozen=True):
    """The token of an installation, and the team that it was installed for, if any."""

    token: str
    team: str | None

    def __repr__(self) -> str:
        return f"<Access to {self.team}>"


class Issued(msgspec.Struct, frozen=True, kw_only=True):
    """What Vercel answers to a code. It says whose installation it is; the address of the return does not count."""

    access_token: str
    installation_id: str
    user_id: str
    team_id: str | None = None

    def __repr__(self) -> str:
        return f"<Issued for {self.installation_id}>"


class Project(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    id: str
    name: str
    account_id: str | None = None  # the team or user that has it


class Pagination(msgspec.Struct, frozen=True):
    next: int | str | None = None


class Projects(msgspec.Struct, frozen=True):
    projects: Sequence[Project]
    pagination: Pagination = Pagination()


class Deployments(msgspec.Struct, frozen=True):
    deployments: Sequence[ListedDeployment]


class VercelApi:
    """403 is Vercel's answer to tokens of integrations that were removed."""

    def __init__(self, url: str, open_session: OpenSession, now: Callable[[], datetime]) -> None:
        self._api = Api("Vercel", url, open_session, now, refuses=frozenset({403}))

    async def exchange(self, code: str, *, client_id: str, client_secret: str, redirect_uri: str) -> Issued:
        """Return the token for a code, which works once."""
        form = {"client_id": client_id, "client_secret": client_secret, "code": code, "redirect_uri": redirect_uri}
        return await self._api.read(Call(path="/v2/oauth/access_token", method="POST", form=form), Issued)

    async def projects(self, access: Access) -> list[Project]:
        """Return the projects that an installation may see."""
        found: list[Project] = []
        after: dict[str, str] = {}
        for _ in range(MAX_PAGES):
            query = {"limit": "100", **_team(access), **after}
            page = await self._api.read(Call(path="/v10/projects", token=access.token, query=query), Projects)
            found += [msgspec.structs.replace(project, name=line(project.name, 100)) for project in page.projects]
            if page.pagination.next is None:
                break
            after = {"from": str(page.pagination.next)}
        return found

    async def project(self, access: Access, id: str) -> Project | None:
        """Return a project by its id; None if Vercel means another one, since it also finds projects by name."""
        call = Call(path=f"/v9/projects/{checked_id(id)}", token=access.token, query=_team(access))
        found = await self._api.read(call, Project)
        return msgspec.structs.replace(found, name=line(found.name, 100)) if found.id == id else None

    async def deployments(self, access: Access, project: str, etag: str | None) -> tuple[Answer, Sequence[ListedDeployment]]:
        """Return the latest deployments of a project to production; none if there are no others than before."""
        query = {"projectId": project, "target": "production", "state": "READY", "limit": "50", **_team(access)}
        answer = await self._api.send(Call(path="/v6/deployments", token=access.token, query=query, etag=etag))
        if answer.is_unchanged:
            return answer, ()
        found = self._api.decode(answer, Deployments).deployments
        return answer, [deployment for deployment in found if deployment.is_promoted_of(project)]


def checked_id(id: str) -> str:
    """Return the id of a project, if it can be a part of an address; otherwise `InvalidField`."""
    if not _ID.fullmatch(id):
        raise InvalidField("project", f"{id[:80]!r} is not a project: choose one of your list")
    return id


def _team(access: Access) -> dict[str, str]:
    return {} if access.team is None else {"teamId": access.team}
