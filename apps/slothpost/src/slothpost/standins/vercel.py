"""A local Vercel: accounts, installations of the integration, projects and deployments."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import urlencode

import msgspec
from aiohttp import web

from slothpost.standins.conditional import conditional_answer
from slothpost.standins.deliveries import Signed, vercel_delivery
from slothpost.standins.faults import Faults, FaultyAnswers
from slothpost.standins.github_repository import LocalRepository, new_sha
from slothpost.standins.loopback import Loopback
from slothpost.standins.pages import Site, choice_page

CLIENT_ID = "oac_slothpost"
CLIENT_SECRET = "local-vercel-client-secret"  # noqa: S105  # it opens nothing but this stand-in
SLUG = "slothpost"
SITE = Site(name="Vercel", sign="▲", home="", profile="")

_numbers = itertools.count(1)


class LocalProject(msgspec.Struct, kw_only=True):
    """`account` is the team or user that has it."""

    id: str
    name: str
    account: str
    deployments: list[dict[str, Any]] = []


class LocalInstallation(msgspec.Struct, frozen=True, kw_only=True):
    """The integration in a team, or in a user's own account."""

    id: str
    user: str
    team: str | None

    @property
    def account(self) -> str:
        return self.team or self.user


class VercelStandIn:
    """`async with VercelStandIn(now=…) as vercel` serves its API and its page of the integration at `vercel.url`."""

    client_id = CLIENT_ID
    client_secret = CLIENT_SECRET
    slug = SLUG

    def __init__(self, *, now: Callable[[], datetime], port: int = 0, redirect_uri: str = "") -> None:
        """`redirect_uri` is that of the integration: where its page sends people back to."""
        self.url = ""
        self.calls: list[str] = []  # method, path and status of each request
        self.faults = Faults(publishing="/")
        self.projects: list[LocalProject] = []
        self.redirect_uri = redirect_uri
        self._codes: dict[str, LocalInstallation] = {}
        self._tokens: dict[str, LocalInstallation] = {}
        self._now = now
        self._server = Loopback(port)

    def add_project(self, name: str, account: str, *, id: str | None = None) -> LocalProject:
        project = LocalProject(id=id or f"prj_{next(_numbers):024d}", name=name, account=account)
        self.projects.append(project)
        return project

    def install(self, user: str, team: str | None = None, *, id: str | None = None) -> tuple[str, LocalInstallation]:
        """Install the integration, or an installation of that id again, and return the code that its owner is sent back with."""
        installation = LocalInstallation(id=id or f"icfg_{secrets.token_hex(12)}", user=user, team=team)
        code = secrets.token_urlsafe(16)
        self._codes[code] = installation
        return code, installation

    def uninstall(self, installation: LocalInstallation) -> None:
        self._tokens = {token: each for token, each in self._tokens.items() if each.id != installation.id}

    def deploy(
        self,
        project: LocalProject,
        message: str | None = None,
        *,
        sha: str | None = None,
        target: str | None = "production",
        repository: LocalRepository | None = None,
        substate: str = "PROMOTED",
    ) -> dict[str, Any]:
        """Deploy a project now, and return the deployment as the API lists it."""
        at, id = int(self._now().timestamp() * 1000), f"dpl_{next(_numbers):024d}"
        meta = (
            {}
            if message is None
            else {"githubCommitMessage": message, "githubCommitSha": sha or new_sha(), "githubCommitRef": "main"}
        )
        if repository is not None:
            meta |= {"githubRepoId": str(repository.id), "githubRepoVisibility": "private" if repository.private else "public"}
        deployment = {
            "uid": id,
            "name": project.name,
            "projectId": project.id,
            "url": f"{project.name}-{id[-6:]}.vercel.app",
            "created": at,
            "createdAt": at,
            "ready": at,
            "state": "READY",
            "readyState": "READY",
            "readySubstate": substate,
            "type": "LAMBDAS",
            "target": target,
            "creator": {"uid": "someone"},
            "meta": meta,
            "inspectorUrl": None,
        }
        project.deployments.insert(0, deployment)
        return deployment

    def delivery(
        self,
        project: LocalProject,
        deployment: Mapping[str, Any],
        type: str = "deployment.promoted",
        *,
        secret: str = CLIENT_SECRET,
        user: str = "someone",
        id: str | None = None,
    ) -> Signed:
        """Return the delivery about a deployment, of the integration unless another secret is given."""
        is_team = project.account.startswith("team_")
        payload = {
            "team": {"id": project.account if is_team else None},
            "user": {"id": user if is_team else project.account},
            "deployment": {
                "id": deployment["uid"],
                "meta": deployment["meta"],
                "url": deployment["url"],
                "name": deployment["name"],
                "inspectorUrl": None,
            },
            "links": {"deployment": "https://vercel.com/d", "project": "https://vercel.com/p"},
            "target": deployment["target"],
            "project": {"id": project.id},
            "plan": "hobby",
            "regions": ["fra1"],
        }
        return vercel_delivery(secret, type, payload, at=self._now(), id=id)

    async def __aenter__(self) -> Self:
        answers = FaultyAnswers(self.faults, self._server.stopping, text_of=_no_text, limited=self._limited)

        @web.middleware
        async def middleware(request: web.Request, handler: Any) -> web.StreamResponse:
            answer = await answers.answer(request, handler)
            self.calls.append(f"{request.method} {request.path} {answer.status}")
            return answer

        app = web.Application(middlewares=[middleware])
        app.add_routes([
            web.post("/v2/oauth/access_token", self._exchange),
            web.get("/v10/projects", self._list),
            web.get("/v9/projects/{project}", self._project),
            web.get("/v6/deployments", self._deployments),
            web.post("/v1/webhooks", self._refuse_webhook),
            web.get(f"/integrations/{SLUG}/new", self._integration_page),
            web.get("/install", self._installed),
        ])  # fmt: skip
        self.url = await self._server.start(app)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._server.stop()

    async def _exchange(self, request: web.Request) -> web.Response:
        form = await request.post()
        if form.get("client_id") != CLIENT_ID or form.get("client_secret") != CLIENT_SECRET:
            return web.json_response({"error": "invalid_client", "error_description": "Invalid client"}, status=401)
        installation = self._codes.pop(str(form.get("code")), None)
        if installation is None or form.get("redirect_uri") != self.redirect_uri:
            return web.json_response({"error": "invalid_grant", "error_description": "Invalid code"}, status=400)
        token = secrets.token_urlsafe(18)
        self._tokens[token] = installation
        content = {
            "token_type": "Bearer",
            "access_token": token,
            "installation_id": installation.id,
            "user_id": installation.user,
            "team_id": installation.team,
        }
        return web.json_response(content)

    async def _list(self, request: web.Request) -> web.Response:
        own = self._own(request)
        if isinstance(own, web.Response):
            return own
        size, start = min(int(request.query.get("limit", "20")), 100), int(request.query.get("from", "0"))
        following = start + size if start + size < len(own) else None
        page = [_described(project) for project in own[start : start + size]]
        return web.json_response({"projects": page, "pagination": {"count": len(page), "next": following, "prev": None}})

    async def _project(self, request: web.Request) -> web.Response:
        own = self._own(request)
        if isinstance(own, web.Response):
            return own
        wanted = request.match_info["project"]
        found = next((each for each in own if wanted in (each.id, each.name)), None)
        return (
            _error(HTTPStatus.NOT_FOUND, "not_found", "Project not found")
            if found is None
            else web.json_response(_described(found))
        )

    async def _deployments(self, request: web.Request) -> web.Response:
        own = self._own(request)
        if isinstance(own, web.Response):
            return own
        query = request.query
        project = next((each for each in own if each.id == query.get("projectId")), None)
        found = [] if project is None else project.deployments
        listed = [
            each
            for each in found
            if query.get("target") in (None, each["target"]) and query.get("state") in (None, each["state"])
        ]
        page = listed[: int(query.get("limit", "20"))]
        return conditional_answer(request, {"deployments": page, "pagination": {"count": len(page), "next": None, "prev": None}})

    async def _refuse_webhook(self, request: web.Request) -> web.Response:
        """Refuse as Vercel refuses integrations: their one webhook is set in the Integration Console."""
        return _error(HTTPStatus.FORBIDDEN, "forbidden", "Not authorized")

    async def _integration_page(self, request: web.Request) -> web.Response:
        """Show who may install the integration: each account that has a project here."""
        state = request.query.get("state", "")
        accounts = sorted({project.account for project in self.projects})
        choices = {f"Install for {each}": f"/install?{urlencode({'account': each, 'state': state})}" for each in accounts}
        return choice_page(SITE, "Install slothpost", choices)

    async def _installed(self, request: web.Request) -> web.Response:
        account = request.query["account"]
        is_team = account.startswith("team_")
        code, installation = self.install("someone" if is_team else account, account if is_team else None)
        back = {"code": code, "configurationId": installation.id, "next": self.url, "source": "external"}
        if installation.team is not None:
            back["teamId"] = installation.team
        if request.query.get("state"):
            back["state"] = request.query["state"]
        raise web.HTTPFound(f"{self.redirect_uri}?{urlencode(back)}")

    def _own(self, request: web.Request) -> list[LocalProject] | web.Response:
        """Return the projects that a token may see, or how Vercel refuses it."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        installation = self._tokens.get(token) if kind == "Bearer" else None
        if installation is None:
            return _error(HTTPStatus.FORBIDDEN, "forbidden", "Not authorized", invalidToken=True)
        if request.query.get("teamId") != installation.team:
            return _error(HTTPStatus.FORBIDDEN, "forbidden", "Not authorized: Trying to access resource under another scope.")
        return [project for project in self.projects if project.account == installation.account]

    def _limited(self, reset_at: datetime | None) -> web.Response:
        reset = int((reset_at or self._now() + timedelta(minutes=5)).timestamp())
        limit = {"remaining": 0, "reset": reset, "resetMs": reset * 1000, "total": 100}
        answer = _error(HTTPStatus.TOO_MANY_REQUESTS, "rate_limited", "The rate limit of 100 exceeded.", limit=limit)
        answer.headers["X-RateLimit-Reset"] = str(reset)
        return answer


def _described(project: LocalProject) -> dict[str, Any]:
    return {"id": project.id, "name": project.name, "accountId": project.account, "framework": None}


def _error(status: int, code: str, message: str, **fields: object) -> web.Response:
    return web.json_response({"error": {"code": code, "message": message, **fields}}, status=status)


async def _no_text(request: web.Request) -> str:
    return ""
