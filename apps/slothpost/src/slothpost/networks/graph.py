"""Requests to the Threads API, whose answers are typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeVar

import msgspec

from slothpost.networks.graph_errors import GraphError, meaning, read_graph_error
from slothpost.networks.request import OpenSession, Request, Requests

T = TypeVar("T")

VERSION = "v1.0"


class Graph:
    """Asks the API at a URL. Tokens go where it wants them: into queries and forms."""

    def __init__(self, api_url: str, open_session: OpenSession, timeout_s: float, now: Callable[[], datetime]) -> None:
        self._api_url = api_url
        self._requests = Requests("Threads", open_session, timeout_s)
        self._now = now

    def get(self, path: str, query: Mapping[str, str]) -> Request:
        return Request(method="GET", url=f"{self._api_url}/{path}", query=query)

    def post(self, path: str, form: Mapping[str, str], *, acts: bool = False) -> Request:
        return Request(method="POST", url=f"{self._api_url}/{path}", form=form, acts=acts)

    def fields(self, token: str, path: str, *names: str, **query: str) -> Request:
        """Return a request for the fields of what is at a path."""
        return self.get(f"{VERSION}/{path}", {"fields": ",".join(names), "access_token": token, **query})

    async def read(self, request: Request, kind: type[T]) -> T:
        """Return the answer, or raise what its error means."""
        answer = await self.ask(request, kind)
        if isinstance(answer, GraphError):
            raise self.meaning(answer, request)
        return answer

    async def ask(self, request: Request, kind: type[T]) -> T | GraphError:
        """Return the answer, or the error that it is."""
        answer = await self._requests.send(request)
        if not answer.is_success:
            return read_graph_error(answer)
        try:
            return msgspec.json.decode(answer.body, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise request.lost("Threads sent an answer that cannot be read") from None

    def meaning(self, error: GraphError, request: Request) -> Exception:
        return meaning(error, request, self._now())
