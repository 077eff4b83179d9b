"""A pricebook that answers over HTTP, without a socket."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

from web.asking import Got, ask

from book import Book
from pricebook.access.caller import Role
from pricebook.app import Pricebook, Settings, open_pricebook
from pricebook.web.app import BODIES, WebApp, create_app
from tickler import ManualClock
from tickler.web import WebSettings


class GraphqlServer:
    """The application on an open store, and a token for it."""

    def __init__(self, app: WebApp, book: Book, opened: Pricebook) -> None:
        self.app = app
        self.book = book
        self.opened = opened
        self.token = ""

    async def sign_in(self, *roles: Role, stores: Sequence[str] = ("",)) -> str:
        """Send the following requests with a token of these roles. Returns its id."""
        id, self.token = await self.app.tokens.issue("a till", roles, stores)
        return id

    async def post(self, query: str, variables: Mapping[str, Any] | None = None, **headers: str) -> Got:
        return await self.send(json.dumps({"query": query, "variables": variables}).encode(), **headers)

    async def send(self, body: bytes, **headers: str) -> Got:
        return await self._ask("POST", "/graphql", body, {"content-type": "application/json"} | headers)

    async def get(self, query: str, variables: Mapping[str, Any] | None = None, **headers: str) -> Got:
        parameters = {"query": query} | ({} if variables is None else {"variables": json.dumps(variables)})
        return await self.get_raw(urlencode(parameters), **headers)

    async def get_raw(self, parameters: str, **headers: str) -> Got:
        return await self._ask("GET", f"/graphql?{parameters}", b"", headers)

    async def _ask(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Got:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token:
            sent.setdefault("authorization", f"Bearer {self.token}")
        return await ask(self.app.asgi, method, path, sent, [body])


@asynccontextmanager
async def serving(url: str, clock: ManualClock, *, rate: float = 10_000) -> AsyncIterator[GraphqlServer]:
    async with open_pricebook(Settings(store=url), clock=clock) as opened:
        settings = WebSettings(rate=rate, bodies=BODIES)
        yield GraphqlServer(create_app(opened, settings=settings), Book(opened.db, clock), opened)
