"""A local X: sign-in, tokens, posts and their pages, at an address of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, Self

import msgspec
from aiohttp import web

from slothpost.networks.network import TokenPair
from slothpost.standins.faults import Faults, FaultyAnswers
from slothpost.standins.local_post import LocalPost, user_id
from slothpost.standins.loopback import Loopback
from slothpost.standins.pages import error_page, post_page, posts_page
from slothpost.standins.x_posts import Problem, XPosts, rate_limit_problem
from slothpost.standins.x_sign_in import CLIENT_ID, CLIENT_SECRET, SITE, XSignIn
from slothpost.standins.x_tokens import Family, XTokens

PUBLISH = "/2/tweets"
PROBLEMS = "https://api.x.com/2/problems"


class XStandIn:
    """`async with XStandIn(now=…) as x` serves it at `x.url` while the block runs. All that it knows is in memory.

    `x.posts` are those that are out, and `x.faults` what goes wrong next. `x.store.credit` and `x.store.window_size` set limits.
    """

    client_id = CLIENT_ID
    client_secret = CLIENT_SECRET

    def __init__(self, *, now: Callable[[], datetime], port: int = 0, handle: str = "demo") -> None:
        """`handle` is the account that the consent page proposes. Without a port, one that is free is taken."""
        self.url = ""
        self.faults = Faults(publishing=PUBLISH)
        self.store = XPosts(now)
        self.calls: list[str] = []  # method and path of each request
        self._tokens = XTokens(now)
        self._sign_in = XSignIn(self._tokens, now, handle)
        self._server = Loopback(port)

    @property
    def posts(self) -> list[LocalPost]:
        return self.store.posts

    def issue_tokens(self, handle: str) -> TokenPair:
        """Return the tokens of an account, as if its owner had authorized this installation."""
        return self._tokens.issue(handle)

    def revoke_all(self, handle: str | None = None) -> None:
        """End all connections, or those of one account: what its owner may do in the settings of X."""
        self._tokens.revoke_all(handle)

    async def __aenter__(self) -> Self:
        answers = FaultyAnswers(self.faults, self._server.stopping, text_of=_text_of, limited=_limited)

        @web.middleware
        async def middleware(request: web.Request, handler: Any) -> web.StreamResponse:
            self.calls.append(f"{request.method} {request.path}")
            return await answers.answer(request, handler)

        app = web.Application(middlewares=[middleware])
        app.add_routes([
            web.get("/", self._home),
            *self._sign_in.routes(),
            web.get("/2/users/me", self._me),
            web.post(PUBLISH, self._publish),
            web.get(r"/{handle:\w+}", self._profile),
            web.get(r"/{handle:\w+}/status/{id:\d+}", self._post),
        ])  # fmt: skip
        self.url = await self._server.start(app)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._server.stop()

    async def _me(self, request: web.Request) -> web.Response:
        family = self._family(request)
        if family is None:
            return _problem(_unauthorized())
        return web.json_response({"data": {"id": user_id(family.handle), "name": family.handle, "username": family.handle}})

    async def _publish(self, request: web.Request) -> web.Response:
        family = self._family(request)
        if family is None:
            return _problem(_unauthorized())
        if "tweet.write" not in family.scopes:
            return _problem(Problem(status=HTTPStatus.FORBIDDEN, title="Forbidden", detail="Forbidden"))
        try:
            fields = msgspec.json.decode(await request.read(), type=dict[str, object])
        except (msgspec.MsgspecError, UnicodeDecodeError):
            fields = {}
        taken = self.store.create(family.handle, fields, self.url)
        headers = self.store.limit_headers(family.handle)
        if isinstance(taken, Problem):
            return _problem(taken, headers)
        data = {"id": taken.id, "text": taken.text, "edit_history_tweet_ids": [taken.id]}
        return web.json_response({"data": data}, status=HTTPStatus.CREATED, headers=headers)

    def _family(self, request: web.Request) -> Family | None:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        return self._tokens.find(token) if kind == "Bearer" else None

    async def _home(self, request: web.Request) -> web.Response:
        return posts_page(SITE, "Latest posts", reversed(self.posts))

    async def _profile(self, request: web.Request) -> web.Response:
        handle = request.match_info["handle"]
        return posts_page(SITE, f"@{handle}", [post for post in reversed(self.posts) if post.handle == handle])

    async def _post(self, request: web.Request) -> web.Response:
        wanted = (request.match_info["handle"], request.match_info["id"])
        for post in self.posts:
            if (post.handle, post.id) == wanted:
                return post_page(SITE, post)
        return error_page(SITE, HTTPStatus.NOT_FOUND, "This post does not exist")


def _unauthorized() -> Problem:
    return Problem(status=HTTPStatus.UNAUTHORIZED, title="Unauthorized", detail="Unauthorized")


def _problem(problem: Problem, headers: Mapping[str, str] | None = None) -> web.Response:
    kind = "about:blank" if problem.kind is None else f"{PROBLEMS}/{problem.kind}"
    content: dict[str, object] = {"title": problem.title, "detail": problem.detail, "type": kind, "status": int(problem.status)}
    if problem.errors:
        content["errors"] = [{"message": error} for error in problem.errors]
    return web.json_response(content, status=problem.status, headers=headers, content_type="application/problem+json")


async def _text_of(request: web.Request) -> str:
    """Return the text of the post that a request publishes, if it does."""
    if request.path != PUBLISH:
        return ""
    try:
        return str(msgspec.json.decode(await request.read(), type=dict[str, object]).get("text", ""))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""


def _limited(reset_at: datetime | None) -> web.Response:
    reset = {} if reset_at is None else {"x-rate-limit-reset": str(int(reset_at.timestamp()))}
    return _problem(rate_limit_problem(), {"x-rate-limit-limit": "100", "x-rate-limit-remaining": "0", **reset})
