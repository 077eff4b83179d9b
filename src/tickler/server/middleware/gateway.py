"""The outermost middleware, which every request passes before the router.

It authenticates the caller, rejects cross-site requests and unknown hosts, enforces limits on rate, concurrency and size, and
adds security headers to responses.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import ExitStack
from typing import Any

import msgspec
from litestar.enums import ScopeType
from litestar.exceptions import NotFoundException
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from tickler.access.tokens import Tokens
from tickler.file_limit import file_limit
from tickler.server.middleware.addresses import address_of
from tickler.server.middleware.caller import ANONYMOUS, CALLER, LOCAL, Caller, of_token
from tickler.server.middleware.caller_limits import ConcurrencyLimit, HeldBytes
from tickler.server.middleware.connection_limit import connection_limits
from tickler.server.middleware.incoming import BodyLimits, IncomingBody, too_long
from tickler.server.middleware.rate_limit import RateLimit, too_many_failures
from tickler.server.middleware.sessions import Sessions
from tickler.server.problems import MEDIA_TYPE, Refused, headers_of, problem_of
from tickler.server.settings import ServerSettings

MAX_REQUESTS = 1_000  # at once; more get 503
MAX_REQUESTS_OF_CALLER = 100  # of those, per token, and for all without a token
MAX_STREAMS = 10  # of those, event streams per session or token
MAX_REQUESTS_OF_ADDRESS = 50  # of those without a token, per address
MAX_SIGN_INS = 100  # in addition: their bodies are read before the caller is known
MAX_ADDRESS_SIGN_INS = 10
MAX_IMPORTS = 1  # per token
MAX_HELD_BYTES = 8 * 1024 * 1024  # in the bodies of one token's requests
MAX_SIGN_IN_BYTES = 16_384
SIGN_IN_TIMEOUT_S = 5.0
MAX_QUERY_BYTES = 8_192
MAX_PATH_BYTES = 8_192
MAX_HEADER_BYTES = 32_768
IMPORT = "/v1/schedules:import"  # a stream of any length
EVENT_STREAM = "/v1/live"  # never ends
TICK = "/v1/tick"  # the only GET with side effects: it has no HEAD, and cross-site requests are rejected
SIGN_IN = ("/login", "/logout")  # accept a body without a token
PROBES = "/health/"  # public, under any host name
PUBLIC = (PROBES, "/static/")  # the caller is not looked up, so they work without the store

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_SINGLE_HEADERS = frozenset({b"host", b"authorization", b"origin", b"content-type"})  # of two, a proxy might read the other one
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
    """ASGI middleware around the app."""

    def __init__(
        self, app: ASGIApp, settings: ServerSettings, tokens: Tokens, sessions: Sessions, rate: RateLimit, failures: RateLimit
    ) -> None:
        self._app = app
        self._settings = settings
        self._tokens = tokens
        self._sessions = sessions
        self._rate_limit = rate
        self._failures = failures
        self._running = 0
        self._max_running = connection_limits(file_limit(), settings.max_connections).requests
        self._requests = ConcurrencyLimit()
        self._held_bytes: Counter[str] = Counter()  # by token
        self._hosts = {name.lower() for name in settings.hosts}
        if settings.is_local:
            self._hosts |= {"localhost", "127.0.0.1", "[::1]"}
        if self._hosts:
            self._hosts |= settings.own_names
        self._default_caller = ANONYMOUS if settings.needs_token else LOCAL  # the caller while no token exists

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        if scope["path"].startswith(PROBES):
            await self._handle(scope, receive, send)
            return
        if self._running >= min(MAX_REQUESTS, self._max_running):
            await _refuse(_Outgoing(send, scope), Refused(503, "too many requests at once: try again in a moment"))
            return
        self._running += 1
        try:
            await self._handle(scope, receive, send)
        finally:
            self._running -= 1

    async def _handle(self, scope: Any, receive: Receive, send: Send) -> None:
        outgoing = _Outgoing(send, scope)
        try:
            await self._admit(scope)
            with ExitStack() as limits:
                held = self._enter_limits(scope, limits)
                incoming = self._incoming(scope, receive, held)
                if scope["method"] == "HEAD" and scope["path"] != TICK:
                    scope = {**scope, "method": "GET"}  # a copy: the server must still see HEAD
                await self._app(scope, incoming, outgoing)
        except Exception as error:
            if outgoing.started:
                raise
            await _refuse(outgoing, error)

    async def _admit(self, scope: Any) -> None:
        _check_lengths(scope)
        _check_single_headers(scope)
        headers = {name: value.decode("latin-1") for name, value in reversed(scope["headers"])}
        if b"%" in scope.get("raw_path", b""):
            scope["path"] = _path(scope["raw_path"])
        if "//" in scope["path"] or (scope["path"].endswith("/") and scope["path"] != "/"):
            raise NotFoundException  # one spelling per path, so that the checks by path hold
        if not scope["path"].startswith(PROBES):
            self._check_host(headers.get(b"host", ""))
        self._check_body(headers, scope)
        caller = ANONYMOUS if scope["path"].startswith(PUBLIC) else await self._authenticate(headers, scope)
        if not _is_same_origin(headers, scope):
            raise Refused(403, "cross-site request: open the page itself, or send no Origin")
        scope[CALLER] = caller
        wait_s = self._rate_limit.take(caller.token_id) if caller.token_id is not None else 0.0
        if wait_s:
            raise Refused(429, "too many requests with this token: slow down", headers={"retry-after": str(int(wait_s) + 1)})

    def _enter_limits(self, scope: Any, limits: ExitStack) -> HeldBytes | None:
        """Take a slot of each limit that applies. Callers on this machine, while no token exists, have none."""
        caller, path = scope[CALLER], scope["path"]
        if caller is LOCAL or path.startswith(PUBLIC):
            return None
        if caller is ANONYMOUS:
            address = address_of(scope)
            if _signs_in(scope):
                limits.enter_context(self._requests.take(address, MAX_ADDRESS_SIGN_INS, "sign-ins from one address"))
                limits.enter_context(self._requests.take("", MAX_SIGN_INS, "sign-ins"))
            else:
                limits.enter_context(self._requests.take(address, MAX_REQUESTS_OF_ADDRESS, "requests from one address"))
                limits.enter_context(self._requests.take("", MAX_REQUESTS_OF_CALLER, "requests without a token"))
            return None
        limits.enter_context(self._requests.take(caller.token_id, MAX_REQUESTS_OF_CALLER, "requests"))
        if path == EVENT_STREAM:
            limits.enter_context(self._requests.take(caller.client_id, MAX_STREAMS, "streams"))
        if path == IMPORT:
            limits.enter_context(self._requests.take(caller.token_id, MAX_IMPORTS, "import per token"))
        return limits.enter_context(HeldBytes(self._held_bytes, caller.token_id, MAX_HELD_BYTES))

    def _incoming(self, scope: Any, receive: Receive, held: HeldBytes | None) -> IncomingBody:
        limits = BodyLimits(self._settings.max_body, self._settings.body_s)
        if scope["path"] == IMPORT:
            limits = BodyLimits(None, None)
        elif _signs_in(scope):
            limits = BodyLimits(min(self._settings.max_body, MAX_SIGN_IN_BYTES), min(self._settings.body_s, SIGN_IN_TIMEOUT_S))
        return IncomingBody(receive, limits, held, announced=_content_length(scope), has_body=scope["method"] not in _SAFE)

    def _check_host(self, host: str) -> None:
        """Block DNS rebinding: refuse host names that are not ours."""
        name = host.lower().rpartition(":")[0] if re.search(r":\d+$", host) else host.lower()
        if self._hosts and name not in self._hosts:
            raise Refused(421, "unknown host: use the address that the service listens on, or add the name to TICKLER_HOSTS")

    def _check_body(self, headers: dict[bytes, str], scope: Any) -> None:
        length = headers.get(b"content-length", "0")
        if b"content-length" in headers and b"transfer-encoding" in headers:
            raise Refused(400, "content-length excludes transfer-encoding: send one", headers={"connection": "close"})
        if scope["path"] != IMPORT and length.isdecimal() and int(length[:20]) > self._settings.max_body:
            raise too_long(self._settings.max_body)

    async def _authenticate(self, headers: dict[bytes, str], scope: Any) -> Caller:
        authorization = headers.get(b"authorization")
        if authorization is not None:
            kind, _, text = authorization.partition(" ")
            if kind.lower() != "bearer":
                detail = "the Authorization header is not a Bearer token: send `Authorization: Bearer tk_…`"
                raise Refused(401, detail, headers={"www-authenticate": 'Bearer error="invalid_request"'})
            token = await self._tokens.check(text.strip())
            if token is None:
                if wait_s := self._failures.take(address_of(scope)):  # only now: a valid token is never refused for wrong ones
                    raise too_many_failures(wait_s)
                detail = "this token is not valid: it may have been revoked"
                raise Refused(401, detail, headers={"www-authenticate": 'Bearer error="invalid_token"'})
            return of_token(token)
        if not await self._tokens.exist():
            return self._default_caller
        if b"cookie" in headers and (session := await self._sessions.find(headers[b"cookie"])) is not None:
            token = await self._tokens.get(session.token_id)
            return ANONYMOUS if token is None else of_token(token, session)
        return ANONYMOUS


class _Outgoing:
    """Wraps an ASGI `send`: adds the security headers, and answers a HEAD without a body."""

    def __init__(self, send: Send, scope: Any) -> None:
        self._send = send
        self._is_head = scope["method"] == "HEAD"
        self._path = scope["path"]
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            headers = [self._with_head(*each) if each[0] == b"allow" else each for each in message.get("headers", ())]
            message["headers"] = [*headers, *_HEADERS]
            await self._send(message)
            if self._is_head:  # at once, so that a stream sees the end and stops
                await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        elif not self._is_head:
            await self._send(message)

    def _with_head(self, name: bytes, value: bytes) -> tuple[bytes, bytes]:
        """Add HEAD to an `allow` header that has GET."""
        methods = value.split(b", ") if self._path != TICK else ()
        return (name, b", ".join(sorted([*methods, b"HEAD"]))) if b"GET" in methods else (name, value)


def _signs_in(scope: Any) -> bool:
    return scope["path"] in SIGN_IN and scope["method"] == "POST"


def _content_length(scope: Any) -> int:
    """Return the announced length of the body, which `_check_body` has checked."""
    length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return int(length) if length.isdigit() else 0


def _check_single_headers(scope: Any) -> None:
    named = [name for name, _ in scope["headers"] if name in _SINGLE_HEADERS]
    if len(named) > len(set(named)):
        repeated = next(name for name in named if named.count(name) > 1).decode()
        raise Refused(400, f"the header {repeated} is sent twice: send one", repeated, headers={"connection": "close"})


def _check_lengths(scope: Any) -> None:
    if len(scope["query_string"]) > MAX_QUERY_BYTES:
        raise Refused(414, f"the query is longer than {MAX_QUERY_BYTES} bytes: shorten it")
    if len(scope.get("raw_path", b"")) > MAX_PATH_BYTES:
        raise Refused(414, f"the path is longer than {MAX_PATH_BYTES} bytes: no owner or key is that long")
    if sum(len(name) + len(value) + 4 for name, value in scope["headers"]) > MAX_HEADER_BYTES:
        raise Refused(431, f"the headers are longer than {MAX_HEADER_BYTES} bytes: send fewer")


def _path(raw: bytes) -> str:
    """Decode a path, except %2F, a slash within a name, and %25, so that handlers can decode them."""
    plain = raw.split(b"?", 1)[0]
    if b"%" in _ESCAPE.sub(b"", plain):
        raise Refused(400, "the path has a % that starts no escape: write it as %25")
    kept = _KEPT_ESCAPE.sub(lambda found: b"\0" + found[1].upper(), plain)
    try:
        text = _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), kept).decode()
    except UnicodeDecodeError:
        raise Refused(400, "the path is not UTF-8: encode it as UTF-8, then as %XX") from None
    if text.count("\0") != kept.count(b"\0"):
        raise Refused(400, "the path contains a NUL: leave it out")
    return text.replace("\0", "%")


def _is_same_origin(headers: dict[bytes, str], scope: Any) -> bool:
    """False for a write that another site made a browser send. Programs send neither header."""
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
