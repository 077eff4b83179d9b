"""What the handlers of the API and of the pages share."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote

import msgspec
from litestar import Request, Response

from tickler.clock import to_ms
from tickler.errors import InvalidInput, ScheduleNotFound
from tickler.observe.metrics import Metrics
from tickler.server.live import Live
from tickler.server.problems import Refused
from tickler.server.sessions import Sessions
from tickler.server.settings import ServerSettings
from tickler.server.who import Who, who_of
from tickler.strict_json import read_json
from tickler.target import HttpTarget, Target
from tickler.tickler import Tickler
from tickler.when import read_instant

JSON = "application/json"
MOST_LISTED = 1_000
MOST_RETRIED = 1_000  # fires that one request sends again
SERVICE = "tickler.service"  # in an ASGI scope

Asked = Request[Any, Any, Any]
T = TypeVar("T")

_encode = msgspec.json.Encoder().encode


class Service:
    """A Tickler, and what the service has beside it."""

    def __init__(
        self, tickler: Tickler, settings: ServerSettings, sessions: Sessions, live: Live, metrics: Metrics, *, runs_here: bool
    ) -> None:
        self.tickler = tickler
        self.settings = settings
        self.sessions = sessions
        self.live = live
        self.metrics = metrics
        self.runs_here = runs_here  # a runner works in this process
        self.is_examined = False  # the doctor looks at everything right now


def service_of(request: Asked) -> Service:
    service: Service = request.scope[SERVICE]  # type: ignore[literal-required]
    return service


def caller(request: Asked) -> Who:
    return who_of(request.scope)


def answered(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response[bytes]:
    return Response(_encode(value), status_code=status, media_type=JSON, headers=dict(headers or {}))


def place(request: Asked) -> tuple[str, str]:
    """Owner and key from the path. Those of others do not exist."""
    owner, key = unquote(request.path_params["owner"]), unquote(request.path_params["key"])
    if not caller(request).may_see(owner):
        raise ScheduleNotFound(owner, key)
    return owner, key


def visible_owner(request: Asked, asked_for: str | None) -> str | None:
    """Whose data a list may show: one owner's, or everybody's. A bound token sees no list but its own."""
    bound = caller(request).owner
    if bound is not None and asked_for not in (None, bound):
        raise _Nothing
    return bound or asked_for


class _Nothing(Exception):
    """It is not theirs: the same as if there were nothing."""


NOTHING = _Nothing


class Query:
    """The parameters of a request, each once, and none that nobody reads."""

    def __init__(self, request: Asked, *known: str) -> None:
        self._values: dict[str, str] = {}
        try:
            pairs = parse_qsl(request.scope["query_string"].decode(), keep_blank_values=True, errors="strict")
        except UnicodeDecodeError:
            raise Refused(400, "the query is no UTF-8: encode it as UTF-8, then as %XX") from None
        for name, value in pairs:
            if name not in known:
                raise Refused(400, f"nobody reads the parameter {name[:40]!r}: use {', '.join(known) or 'none'}", name[:40])
            if name in self._values:
                raise Refused(400, f"{name} comes twice: leave one of them out", name)
            self._values[name] = value

    def text(self, name: str) -> str | None:
        return self._values.get(name)

    def number(self, name: str, default: int, most: int) -> int:
        text = self._values.get(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdecimal() and len(text) < 10 and 1 <= int(text) <= most):
            raise Refused(400, f"{name} is not a whole number from 1 to {most}", name)
        return int(text)

    def one_of(self, name: str, allowed: tuple[T, ...]) -> T | None:
        text = self._values.get(name)
        if text is not None and text not in allowed:
            raise Refused(400, f"{name} is not one of {', '.join(map(str, allowed))}", name)
        found: T | None = text
        return found

    def instant(self, name: str) -> int | None:
        """Milliseconds, or ISO 8601 with an offset."""
        text = self._values.get(name)
        if text is None:
            return None
        try:
            whole = text.isascii() and text.isdecimal() and len(text) < 16
            return to_ms(int(text) if whole else read_instant(text, name), name)
        except InvalidInput as error:
            raise Refused(422, str(error), name) from None


def check_bodiless(request: Asked) -> None:
    """What only reads has no body."""
    if request.method == "GET" and (request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers):
        raise Refused(400, "nobody reads the body of a GET: leave it out")


async def body_of(request: Asked) -> Any:
    """The JSON that was sent."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON and not kind.endswith("+json"):
        raise Refused(415, "send JSON, with `content-type: application/json`", "content-type")
    try:
        return read_json(await request.body())
    except InvalidInput as error:
        raise Refused(400, f"the body {error}") from None


async def empty_body(request: Asked) -> None:
    """Of what needs to be told nothing: it may send an empty object."""
    sent = await request.body()
    if sent.strip() not in (b"", b"{}"):
        raise Refused(400, "nobody reads a body here: leave it out")


def check_target(who: Who, target: Target | None) -> None:
    """Whoever is bound to an owner must not reach into the worker."""
    if who.owner is not None and target is not None and not isinstance(target, HttpTarget):
        raise Refused(422, "this token may write HTTP targets only: give a URL", "target")


def to_iso(instant: datetime) -> str:
    return instant.isoformat(timespec="seconds" if not instant.microsecond else "milliseconds")
