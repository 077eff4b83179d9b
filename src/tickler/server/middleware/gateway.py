"""The door of the service: what every request has to pass before anybody looks at what it wants.

It knows who asks, refuses what other sites make browsers send, how much and how fast may come in, and says what a browser may do
with what goes out.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import Any

import msgspec
from litestar.enums import ScopeType
from litestar.exceptions import NotFoundException
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from tickler.access.tokens import Tokens
from tickler.file_limit import file_limit
from tickler.server.middleware.addresses import address_of
from tickler.server.middleware.byte_limit import ByteLimit, HeldBytes
from tickler.server.middleware.caller import KEY, LOCAL, NOBODY, Caller, of_token
from tickler.server.middleware.concurrency_limit import ConcurrencyLimit
from tickler.server.middleware.connection_limit import connection_limits
from tickler.server.middleware.incoming import BodyLimits, IncomingBody, too_long
from tickler.server.middleware.rate_limit import RateLimit, too_many_failures
from tickler.server.middleware.sessions import Sessions
from tickler.server.problems import MEDIA_TYPE, Refused, headers_of, problem_of
from tickler.server.settings import ServerSettings

MAX_REQUESTS = 1_000  # at once; more are told to come back
MAX_REQUESTS_OF_CALLER = 100  # of those, with one token, or without any
MAX_STREAMS = 10  # of those, that never end, of one browser or program
MAX_OF_ADDRESS = 50  # of those without a token, from one address
MAX_SIGN_INS = 100  # beside those: their bodies are read before anybody knows who sends them
MAX_ADDRESS_SIGN_INS = 10
MAX_IMPORTS = 1  # with one token
MAX_HELD_BYTES = 8 * 1024 * 1024  # of the bodies of requests with one token
MAX_SIGN_IN_BYTES = 16_384
SIGN_IN_TIMEOUT_S = 5.0
MAX_QUERY_BYTES = 8_192
MAX_PATH_BYTES = 8_192
MAX_HEADER_BYTES = 32_768
STREAMED = "/v1/schedules:import"  # as long as it likes, as long as something comes
LIVE = "/v1/live"  # which never ends
TICK = "/v1/tick"  # the one GET that does something: no HEAD, and none that another site makes a browser send
SIGN_IN = ("/login", "/logout")  # what reads a body from whoever sends one
PROBES = "/health/"  # asked by whatever name, by whoever watches over the process
OPEN = (PROBES, "/static/")  # the same for everybody: nobody looks who asks, so they answer without the store

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_ONCE = frozenset({b"host", b"authorization", b"origin", b"content-type"})  # a second one could be read by another than the first
_KEPT_ESCAPE = re.compile(rb"%(2[fF]|25)")
_ESCAPE = re.compile(rb"%([0-9a-fA-F]{2})")
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; "
        b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
]


class Gateway:
    """An ASGI app around another."""

    def __init__(
        self, app: ASGIApp, settings: ServerSettings, tokens: Tokens, sessions: Sessions, rates: RateLimit, failures: RateLimit
    ) -> None:
        self._app = app
        self._settings = settings
        self._tokens = tokens
        self._sessions = sessions
        self._rates = rates
        self._failures = failures
        self._inside = 0
        self._most_requests = connection_limits(file_limit(), settings.max_connections).requests
        self._room = ConcurrencyLimit()
        self._streams = ConcurrencyLimit()
        self._imports = ConcurrencyLimit()
        self._sign_ins = ConcurrencyLimit()
        self._bytes = ByteLimit()
        self._names = {name.lower() for name in settings.hosts}
        if settings.is_local:
            self._names |= {"localhost", "127.0.0.1", "[::1]"}
        if self._names:
            self._names |= settings.own_names
        self._stranger = NOBODY if settings.needs_token else LOCAL  # who comes without a token while there is none

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        if scope["path"].startswith(PROBES):
            await self._pass(scope, receive, send)
            return
        if self._inside >= min(MAX_REQUESTS, self._most_requests):
            await _refuse(_Outgoing(send, scope), Refused(503, "too much is asked at once: come back in a moment"))
            return
        self._inside += 1
        try:
            await self._pass(scope, receive, send)
        finally:
            self._inside -= 1

    async def _pass(self, scope: Any, receive: Receive, send: Send) -> None:
        going = _Outgoing(send, scope)
        try:
            await self._admit(scope)
            with ExitStack() as limits:
                held = self._take_room(scope, limits)
                coming = self._incoming(scope, receive, held)
                if scope["method"] == "HEAD" and scope["path"] != TICK:
                    scope = {**scope, "method": "GET"}  # a copy: whoever writes the answer has to know what was asked
                await self._app(scope, coming, going)
        except Exception as error:
            if going.begun:
                raise
            await _refuse(going, error)

    async def _admit(self, scope: Any) -> None:
        _check_lengths(scope)
        _check_once(scope)
        headers = {name: value.decode("latin-1") for name, value in reversed(scope["headers"])}
        if b"%" in scope.get("raw_path", b""):
            scope["path"] = _path(scope["raw_path"])
        if "//" in scope["path"] or (scope["path"].endswith("/") and scope["path"] != "/"):
            raise NotFoundException  # one way to write a path, so that what is said of one holds
        if not scope["path"].startswith(PROBES):
            self._check_host(headers.get(b"host", ""))
        self._check_body(headers, scope)
        who = NOBODY if scope["path"].startswith(OPEN) else await self._who(headers, scope)
        if not _is_same_site(headers, scope):
            raise Refused(403, "another site made a browser send this: open the page itself, or send no Origin")
        scope[KEY] = who
        wait_s = self._rates.take(who.token_id or "") if who.token_id is not None else 0.0
        if wait_s:
            raise Refused(429, "this token asks too often: slow down", headers={"retry-after": str(int(wait_s) + 1)})

    def _take_room(self, scope: Any, limits: ExitStack) -> HeldBytes | None:
        """One caller does not take the room of all; this machine, where no token is needed, is not one of many."""
        who, path = scope[KEY], scope["path"]
        if who is LOCAL or path.startswith(OPEN):
            return None
        if who is NOBODY:
            address = address_of(scope)
            if _signs_in(scope):
                limits.enter_context(self._sign_ins.take(address, MAX_ADDRESS_SIGN_INS, "sign-ins from one address"))
                limits.enter_context(self._room.take("signing in", MAX_SIGN_INS, "sign-ins"))
            else:
                limits.enter_context(self._room.take(f"from {address}", MAX_OF_ADDRESS, "requests from one address"))
                limits.enter_context(self._room.take("", MAX_REQUESTS_OF_CALLER, "requests without a token"))
            return None
        limits.enter_context(self._room.take(who.token_id, MAX_REQUESTS_OF_CALLER, "requests"))
        if path == LIVE:
            limits.enter_context(self._streams.take(who.asking, MAX_STREAMS, "streams"))
        if path == STREAMED:
            limits.enter_context(self._imports.take(who.token_id, MAX_IMPORTS, "import with one token"))
        return limits.enter_context(self._bytes.hold(who.token_id, MAX_HELD_BYTES))

    def _incoming(self, scope: Any, receive: Receive, held: HeldBytes | None) -> IncomingBody:
        limits = BodyLimits(self._settings.max_body, self._settings.body_s)
        if scope["path"] == STREAMED:
            limits = BodyLimits(None, None)
        elif _signs_in(scope):
            limits = BodyLimits(min(self._settings.max_body, MAX_SIGN_IN_BYTES), min(self._settings.body_s, SIGN_IN_TIMEOUT_S))
        return IncomingBody(receive, limits, held, announced=_announced(scope), has_body=scope["method"] not in _SAFE)

    def _check_host(self, host: str) -> None:
        """Where only this machine may ask, a name that somebody else's DNS points here is no way in."""
        name = host.lower().rpartition(":")[0] if re.search(r":\d+$", host) else host.lower()
        if self._names and name not in self._names:
            raise Refused(421, "nobody is called that here: use the address it listens on, or name it in TICKLER_HOSTS")

    def _check_body(self, headers: dict[bytes, str], scope: Any) -> None:
        length = headers.get(b"content-length", "0")
        if b"content-length" in headers and b"transfer-encoding" in headers:
            raise Refused(400, "the request has two lengths: leave one of them out", headers={"connection": "close"})
        if scope["path"] != STREAMED and length.isdecimal() and int(length[:20]) > self._settings.max_body:
            raise too_long(self._settings.max_body)

    async def _who(self, headers: dict[bytes, str], scope: Any) -> Caller:
        authorization = headers.get(b"authorization")
        if authorization is not None:
            kind, _, text = authorization.partition(" ")
            if kind.lower() != "bearer":
                raise Refused(
                    401,
                    "the Authorization header has no Bearer in it: send `Authorization: Bearer tk_…`",
                    headers={"www-authenticate": 'Bearer error="invalid_request"'},
                )
            token = await self._tokens.check(text.strip())
            if token is None:
                if wait_s := self._failures.take(address_of(scope)):  # only now: a right token is never refused for wrong ones
                    raise too_many_failures(wait_s)
                raise Refused(
                    401,
                    "this token is not valid: it may have been revoked",
                    headers={"www-authenticate": 'Bearer error="invalid_token"'},
                )
            return of_token(token)
        if not await self._tokens.exist():
            return self._stranger
        if b"cookie" in headers and (session := await self._sessions.find(headers[b"cookie"])) is not None:
            token = await self._tokens.get(session.token_id)
            return NOBODY if token is None else of_token(token, session)
        return NOBODY


class _Outgoing:
    """What goes out, with what a browser needs to know of it; of what a HEAD asks for, the head."""

    def __init__(self, send: Send, scope: Any) -> None:
        self._send = send
        self._is_head = scope["method"] == "HEAD"
        self._path = scope["path"]
        self.begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            headers = [self._with_head(*each) if each[0] == b"allow" else each for each in message.get("headers", ())]
            message["headers"] = [*headers, *_HEADERS]
            await self._send(message)
            if self._is_head:  # at once: a stream hears that nobody reads on, and ends
                await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        elif not self._is_head:
            await self._send(message)

    def _with_head(self, name: bytes, value: bytes) -> tuple[bytes, bytes]:
        """Of `allow`: where a path takes GET, it takes HEAD too."""
        methods = value.split(b", ") if self._path != TICK else ()
        return (name, b", ".join(sorted([*methods, b"HEAD"]))) if b"GET" in methods else (name, value)


def _signs_in(scope: Any) -> bool:
    return scope["path"] in SIGN_IN and scope["method"] == "POST"


def _announced(scope: Any) -> int:
    """How long the body says it is; checked before to be a length that is allowed."""
    length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return int(length) if length.isdigit() else 0


def _check_once(scope: Any) -> None:
    named = [name for name, _ in scope["headers"] if name in _ONCE]
    if len(named) > len(set(named)):
        twice = next(name for name in named if named.count(name) > 1).decode()
        raise Refused(400, f"the header {twice} comes twice: send one", twice, headers={"connection": "close"})


def _check_lengths(scope: Any) -> None:
    if len(scope["query_string"]) > MAX_QUERY_BYTES:
        raise Refused(414, f"the query is longer than {MAX_QUERY_BYTES} bytes: send less in it")
    if len(scope.get("raw_path", b"")) > MAX_PATH_BYTES:
        raise Refused(414, f"the path is longer than {MAX_PATH_BYTES} bytes: nothing has such a name")
    if sum(len(name) + len(value) + 4 for name, value in scope["headers"]) > MAX_HEADER_BYTES:
        raise Refused(431, f"the headers are longer than {MAX_HEADER_BYTES} bytes: send less in them")


def _path(raw: bytes) -> str:
    """Decoded, but for what stands for a slash within a name: that, and the percent sign, stay as they came."""
    plain = raw.split(b"?", 1)[0]
    if b"%" in _ESCAPE.sub(b"", plain):
        raise Refused(400, "the path has a % that is none of an escape: write it as %25")
    kept = _KEPT_ESCAPE.sub(lambda found: b"\0" + found[1].upper(), plain)
    try:
        text = _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), kept).decode()
    except UnicodeDecodeError:
        raise Refused(400, "the path is no UTF-8: encode it as UTF-8, then as %XX") from None
    if text.count("\0") != kept.count(b"\0"):
        raise Refused(400, "the path has a NUL in it: leave it out")
    return text.replace("\0", "%")


def _is_same_site(headers: dict[bytes, str], scope: Any) -> bool:
    """Browsers say where a request comes from; other programs have no reason to."""
    reads = scope["method"] in _SAFE and scope["path"] != TICK
    if reads:
        return True
    if headers.get(b"sec-fetch-site", "none") not in ("none", "same-origin"):
        return False
    origin, host = headers.get(b"origin"), headers.get(b"host", "").lower()
    return origin is None or origin.lower() in (f"http://{host}", f"https://{host}")


async def _refuse(send: Send, error: Exception) -> None:
    problem = problem_of(error)
    body = msgspec.json.encode(problem)
    headers = [
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
        *((name.encode(), value.encode()) for name, value in headers_of(error).items()),
    ]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
