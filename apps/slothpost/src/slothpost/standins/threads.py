"""A local Threads: sign-in, tokens, containers, posts and their pages, at an address of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, Self

from aiohttp import web

from slothpost.networks.network import TokenPair
from slothpost.standins.faults import Faults, FaultyAnswers
from slothpost.standins.graph_answers import INVALID_TOKEN, NO_PERMISSION, NO_SUCH_ID, GraphFault, fault_answer, form_of, limited
from slothpost.standins.local_post import LocalPost, user_id
from slothpost.standins.loopback import Loopback
from slothpost.standins.pages import error_page, post_page, posts_page
from slothpost.standins.threads_posts import ThreadsPosts
from slothpost.standins.threads_sign_in import CLIENT_ID, CLIENT_SECRET, SITE, ThreadsSignIn
from slothpost.standins.threads_tokens import IssuedToken, ThreadsTokens

PUBLISH = "/threads_publish"

ApiHandler = Callable[[web.Request, str], Awaitable[web.Response]]


class ThreadsStandIn:
    """`async with ThreadsStandIn(now=…) as threads` serves it at `threads.url` while the block runs, from memory.

    `threads.posts` are those that are out, and `threads.faults` what goes wrong next. `threads.store` has the containers and
    settings for what goes wrong with them.
    """

    client_id = CLIENT_ID
    client_secret = CLIENT_SECRET

    def __init__(self, *, now: Callable[[], datetime], port: int = 0, handle: str = "demo") -> None:
        """`handle` is the account that the consent page proposes. Without a port, one that is free is taken."""
        self.url = ""
        self.faults = Faults(publishing=PUBLISH)
        self.store = ThreadsPosts(now)
        self.calls: list[str] = []  # method and path of each request
        self._tokens = ThreadsTokens(now)
        self._sign_in = ThreadsSignIn(self._tokens, handle)
        self._server = Loopback(port)

    @property
    def posts(self) -> list[LocalPost]:
        return self.store.posts

    def issue_tokens(self, handle: str) -> TokenPair:
        """Return the tokens of an account, as if its owner had authorized this installation."""
        return self._tokens.issue(handle)

    def revoke_all(self, handle: str | None = None) -> None:
        """End all connections, or those of one account: what its owner may do in the settings of Threads."""
        self._tokens.revoke_all(handle)

    async def __aenter__(self) -> Self:
        answers = FaultyAnswers(self.faults, self._server.stopping, text_of=self._text_of, limited=limited)

        @web.middleware
        async def middleware(request: web.Request, handler: Any) -> web.StreamResponse:
            self.calls.append(f"{request.method} {request.path}")
            return await answers.answer(request, handler)

        app = web.Application(middlewares=[middleware])
        app.add_routes([
            web.get("/", self._home),
            *self._sign_in.routes(),
            web.get("/v1.0/me", self._for_owner(self._me)),
            web.get(r"/v1.0/{user:\w+}/threads_publishing_limit", self._for_owner(self._quota)),
            web.post(r"/v1.0/{user:\w+}/threads", self._for_owner(self._prepare)),
            web.get(r"/v1.0/{user:\w+}/threads", self._for_owner(self._list)),
            web.post(r"/v1.0/{user:\w+}/threads_publish", self._for_owner(self._publish)),
            web.get(r"/v1.0/{id:\w+}", self._for_owner(self._read)),
            web.get(r"/@{handle:\w+}", self._profile),
            web.get(r"/@{handle:\w+}/post/{code:[\w-]+}", self._post),
        ])  # fmt: skip
        self.url = await self._server.start(app)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._server.stop()

    def _for_owner(self, handler: ApiHandler) -> Callable[[web.Request], Awaitable[web.Response]]:
        """Let a handler be called with the account of a token that is valid, and whose id is that of the path, if it has one."""

        async def checked(request: web.Request) -> web.Response:
            given = request.query.get("access_token") or (await form_of(request)).get("access_token")
            found = INVALID_TOKEN if given is None else self._tokens.find(given)
            if isinstance(found, GraphFault):
                return fault_answer(found)
            if request.match_info.get("user", "me") not in ("me", user_id(found.handle)):
                return fault_answer(NO_SUCH_ID)
            return await handler(request, found.handle) if _may(found, request) else fault_answer(NO_PERMISSION)

        return checked

    async def _me(self, request: web.Request, handle: str) -> web.Response:
        return _selected(request, {"id": user_id(handle), "username": handle})

    async def _quota(self, request: web.Request, handle: str) -> web.Response:
        config = {"quota_total": self.store.quota_size, "quota_duration": 86_400}
        return web.json_response({"data": [{"quota_usage": self.store.quota_usage(handle), "config": config}]})

    async def _prepare(self, request: web.Request, handle: str) -> web.Response:
        container = self.store.prepare(handle, await form_of(request))
        return fault_answer(container) if isinstance(container, GraphFault) else web.json_response({"id": container.id})

    async def _publish(self, request: web.Request, handle: str) -> web.Response:
        post = self.store.publish((await form_of(request)).get("creation_id", ""), handle, self.url)
        return fault_answer(post) if isinstance(post, GraphFault) else web.json_response({"id": post.id})

    async def _list(self, request: web.Request, handle: str) -> web.Response:
        limit = int(request.query.get("limit", "25"))
        own = [_fields(post) for post in reversed(self.posts) if post.handle == handle]
        return web.json_response({"data": own[:limit]})

    async def _read(self, request: web.Request, handle: str) -> web.Response:
        """Return fields of a container or a post. Only a container has a status."""
        id = request.match_info["id"]
        if "status" not in request.query.get("fields", "").split(","):
            post = self.store.find(id, handle)
            return fault_answer(NO_SUCH_ID) if post is None else _selected(request, _fields(post))
        found = self.store.status(id, handle)
        if isinstance(found, GraphFault):
            return fault_answer(found)
        status, error = found
        return web.json_response({"status": status, "id": id, **({} if error is None else {"error_message": error})})

    async def _home(self, request: web.Request) -> web.Response:
        return posts_page(SITE, "Latest posts", reversed(self.posts))

    async def _profile(self, request: web.Request) -> web.Response:
        handle = request.match_info["handle"]
        return posts_page(SITE, f"@{handle}", [post for post in reversed(self.posts) if post.handle == handle])

    async def _post(self, request: web.Request) -> web.Response:
        for post in self.posts:
            if post.url.endswith(request.path):
                return post_page(SITE, post)
        return error_page(SITE, HTTPStatus.NOT_FOUND, "This post does not exist")

    async def _text_of(self, request: web.Request) -> str:
        """Return the text of the post that a request publishes, if it does."""
        if not request.path.endswith(PUBLISH):
            return ""
        container = self.store.containers.get((await form_of(request)).get("creation_id", ""))
        return "" if container is None else container.text


def _may(token: IssuedToken, request: web.Request) -> bool:
    needed = "threads_basic" if request.method == "GET" else "threads_content_publish"
    return needed in token.scopes


def _fields(post: LocalPost) -> dict[str, str]:
    return {"id": post.id, "text": post.text, "permalink": post.url, "timestamp": f"{post.at:%Y-%m-%dT%H:%M:%S%z}"}


def _selected(request: web.Request, fields: Mapping[str, str]) -> web.Response:
    wanted = request.query.get("fields", "id").split(",")
    return web.json_response({name: value for name, value in fields.items() if name in wanted or name == "id"})
