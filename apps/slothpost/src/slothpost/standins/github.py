"""A local GitHub: tokens, repositories, pull requests, releases and webhooks, with its pages, ETags and limits."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, Self

import msgspec
from aiohttp import web

from slothpost.standins.conditional import conditional_answer
from slothpost.standins.faults import Faults, FaultyAnswers
from slothpost.standins.github_repository import LocalRepository
from slothpost.standins.loopback import Loopback

LIMIT = 5_000  # requests of a token in an hour
PERMISSIONS = frozenset({"contents", "pull_requests", "webhooks"})


class GithubToken(msgspec.Struct, kw_only=True):
    """A fine-grained token. Answers of 304 leave `remaining` as it is."""

    login: str
    permissions: frozenset[str]
    remaining: int = LIMIT


class GithubStandIn:
    """`async with GithubStandIn(now=…) as github` serves its API at `github.url`. `github.faults` is what goes wrong next."""

    def __init__(self, *, now: Callable[[], datetime], port: int = 0) -> None:
        self.url = ""
        self.calls: list[str] = []  # method, path and status of each request
        self.faults = Faults(publishing="/")
        self.repositories: list[LocalRepository] = []
        self.tokens: dict[str, GithubToken] = {}
        self.poll_interval = 60
        self._now = now
        self._server = Loopback(port)

    def add_repository(self, name: str, *, private: bool = False) -> LocalRepository:
        repository = LocalRepository(name, private=private, now=self._now)
        self.repositories.append(repository)
        return repository

    def issue_token(self, login: str, permissions: frozenset[str] = PERMISSIONS) -> str:
        token = f"github_pat_{secrets.token_hex(20)}"
        self.tokens[token] = GithubToken(login=login, permissions=permissions)
        return token

    def revoke(self, token: str) -> None:
        del self.tokens[token]

    async def __aenter__(self) -> Self:
        answers = FaultyAnswers(self.faults, self._server.stopping, text_of=_no_text, limited=self._limited)

        @web.middleware
        async def middleware(request: web.Request, handler: Any) -> web.StreamResponse:
            answer = await answers.answer(request, handler)
            self.calls.append(f"{request.method} {request.path} {answer.status}")
            return answer

        app = web.Application(middlewares=[middleware])
        repository = r"/repos/{owner}/{name}"
        app.add_routes([
            web.get("/user/repos", self._list),
            web.get(r"/repositories/{id:\d+}", self._by_id),
            web.get(repository, self._repository),
            web.get(f"{repository}/pulls", self._pulls),
            web.get(f"{repository}/releases", self._releases),
            web.post(f"{repository}/hooks", self._create_hook),
            web.delete(repository + r"/hooks/{hook:\d+}", self._delete_hook),
        ])  # fmt: skip
        self.url = await self._server.start(app)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._server.stop()

    async def _list(self, request: web.Request) -> web.Response:
        token = self._token(request)
        if token is None:
            return _bad_credentials()
        own = [self._described(each, token) for each in self.repositories if each.owner == token.login]
        return self._page(request, token, own)

    async def _by_id(self, request: web.Request) -> web.Response:
        token = self._token(request)
        if token is None:
            return _bad_credentials()
        found = [each for each in self.repositories if str(each.id) == request.match_info["id"]]
        if not found or not _may_see(found[0], token):
            return _not_found()
        return self._answer(request, token, self._described(found[0], token))

    async def _repository(self, request: web.Request) -> web.Response:
        found = self._found(request)
        if isinstance(found, web.Response):
            return found
        repository, token = found
        return self._answer(request, token, self._described(repository, token))

    async def _pulls(self, request: web.Request) -> web.Response:
        found = self._found(request, "pull_requests")
        if isinstance(found, web.Response):
            return found
        repository, token = found
        if request.query.get("state") != "closed" or request.query.get("sort") != "updated":
            return _error(HTTPStatus.NOT_IMPLEMENTED, "this stand-in lists closed pull requests, the latest updated first")
        listed = sorted(
            repository.pulls, key=lambda pull: str(pull["updated_at"]), reverse=request.query.get("direction") == "desc"
        )
        return self._page(request, token, listed)

    async def _releases(self, request: web.Request) -> web.Response:
        found = self._found(request, "contents")
        if isinstance(found, web.Response):
            return found
        repository, token = found
        return self._page(request, token, repository.releases)

    async def _create_hook(self, request: web.Request) -> web.Response:
        found = self._found(request, "webhooks")
        if isinstance(found, web.Response):
            return found
        repository, _ = found
        body = await request.json()
        url = body["config"]["url"]
        if any(hook["config"]["url"] == url for hook in repository.hooks.values()):
            return _error(HTTPStatus.UNPROCESSABLE_ENTITY, "Validation Failed: Hook already exists on this repository")
        id = 500_000 + len(repository.hooks)
        repository.hooks[id] = body
        return web.json_response({"id": id, "active": True, **body}, status=HTTPStatus.CREATED)

    async def _delete_hook(self, request: web.Request) -> web.Response:
        found = self._found(request, "webhooks")
        if isinstance(found, web.Response):
            return found
        removed = found[0].hooks.pop(int(request.match_info["hook"]), None)
        return _not_found() if removed is None else web.Response(status=HTTPStatus.NO_CONTENT)

    def _found(self, request: web.Request, permission: str | None = None) -> tuple[LocalRepository, GithubToken] | web.Response:
        """Return what a request is about, or the answer to one that may not see it, or uses a former name."""
        token = self._token(request)
        if token is None:
            return _bad_credentials()
        name = f"{request.match_info['owner']}/{request.match_info['name']}"
        found = next((each for each in self.repositories if each.name == name), None)
        former = next((each for each in self.repositories if name in each.names), None)
        if found is None and former is not None:
            rest = request.path.removeprefix(f"/repos/{name}")
            location = f"{self.url}/repositories/{former.id}{rest}"
            return web.json_response(
                {"message": "Moved Permanently", "url": location}, status=301, headers={"Location": location}
            )
        if found is None or not _may_see(found, token):
            return _not_found()
        if permission is not None and permission not in token.permissions and (found.private or permission == "webhooks"):
            return _error(HTTPStatus.FORBIDDEN, "Resource not accessible by personal access token")
        if token.remaining == 0:
            return self._limited(None)
        return found, token

    def _token(self, request: web.Request) -> GithubToken | None:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        return self.tokens.get(token) if kind in ("Bearer", "token") else None

    def _described(self, repository: LocalRepository, token: GithubToken) -> dict[str, Any]:
        is_own = repository.owner == token.login
        return {**repository.as_json(), "permissions": {"admin": is_own, "maintain": is_own, "push": is_own, "pull": True}}

    def _page(self, request: web.Request, token: GithubToken, items: Sequence[object]) -> web.Response:
        size, page = int(request.query.get("per_page", "30")), int(request.query.get("page", "1"))
        following = request.url.update_query(page=str(page + 1))
        link = {"Link": f'<{following}>; rel="next"'} if page * size < len(items) else {}
        return self._answer(request, token, items[(page - 1) * size : page * size], link)

    def _answer(
        self, request: web.Request, token: GithubToken, content: object, headers: Mapping[str, str] | None = None
    ) -> web.Response:
        answer = conditional_answer(request, content, {"X-Poll-Interval": str(self.poll_interval), **(headers or {})})
        if answer.status == HTTPStatus.OK:
            token.remaining -= 1
        answer.headers["X-RateLimit-Remaining"] = str(token.remaining)
        return answer

    def _limited(self, reset_at: datetime | None) -> web.Response:
        reset = reset_at or self._now() + timedelta(hours=1)
        headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(reset.timestamp()))}
        return _error(HTTPStatus.FORBIDDEN, "API rate limit exceeded for user ID 1.", headers)


def _may_see(repository: LocalRepository, token: GithubToken) -> bool:
    return not repository.private or repository.owner == token.login


def _error(status: int, message: str, headers: Mapping[str, str] | None = None) -> web.Response:
    content = {"message": message, "documentation_url": "https://docs.github.com/rest", "status": str(int(status))}
    return web.json_response(content, status=status, headers=headers)


def _bad_credentials() -> web.Response:
    return _error(HTTPStatus.UNAUTHORIZED, "Bad credentials")


def _not_found() -> web.Response:
    return _error(HTTPStatus.NOT_FOUND, "Not Found")


async def _no_text(request: web.Request) -> str:
    return ""
