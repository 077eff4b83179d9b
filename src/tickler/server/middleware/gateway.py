"""The outermost middleware, which every request passes before the router.

It authenticates the caller, rejects cross-site requests and unknown hosts, enforces limits on rate, concurrency and size, and
adds security headers to responses.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import ExitStack
from typing import Any

from litestar.enums import ScopeType
from litestar.exceptions import NotFoundException
from litestar.types import ASGIApp, Receive, Scope, Send

from tickler.access.tokens import Tokens
from tickler.process.file_limit import file_limit
from tickler.server.middleware.caller import ANONYMOUS, CALLER, LOCAL, WRONG_TOKENS, Caller, of_token
from tickler.server.middleware.connection_limit import connection_limits
from tickler.server.problems import answer_of
from tickler.server.settings import ServerSettings
from tickler.web.addresses import address_of
from tickler.web.asgi import SAFE_METHODS, headers_of
from tickler.web.body_limits import BodyLimits, IncomingBody
from tickler.web.concurrency import ConcurrencyLimit, HeldBytes
from tickler.web.cross_site import check_same_origin
from tickler.web.host_check import LOCAL_NAMES, HostCheck
from tickler.web.problems import Refused, send_answer
from tickler.web.rate_limit import RateLimit
from tickler.web.request_checks import check_request, content_length
from tickler.web.security_headers import OutgoingResponse, security_headers
from tickler.web.sessions import Sessions

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
IMPORT = "/v1/schedules:import"  # a stream of any length
EVENT_STREAM = "/v1/live"  # never ends
TICK = "/v1/tick"  # the only GET with side effects: it has no HEAD, and cross-site requests are rejected
SIGN_IN = ("/login", "/logout")  # accept a body without a token
PROBES = "/health/"  # public, under any host name
PUBLIC = (PROBES, "/static/")  # the caller is not looked up, so they work without the store

_KEPT_ESCAPE = re.compile(rb"%(2[fF]|25)")
_ESCAPE = re.compile(rb"%([0-9a-fA-F]{2})")
_HEADERS = security_headers()
_STREAM = BodyLimits(None, None)


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
        self._hosts = HostCheck(_names(settings) or None, remedy="add the name to TICKLER_HOSTS")
        most, body_s, remedy = settings.max_body, settings.body_s, f"send less, or use {IMPORT}"
        self._limits = BodyLimits(most, body_s, remedy)
        self._sign_in_limits = BodyLimits(min(most, MAX_SIGN_IN_BYTES), min(body_s, SIGN_IN_TIMEOUT_S), remedy)
        self._default_caller = ANONYMOUS if settings.needs_token else LOCAL  # the caller while no token exists

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        if scope["path"].startswith(PROBES):
            await self._handle(scope, receive, send)
            return
        if self._running >= min(MAX_REQUESTS, self._max_running):
            await send_answer(_Outgoing(send, scope), answer_of(Refused(503, "too many requests at once: try again in a moment")))
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
            await send_answer(outgoing, answer_of(error))

    async def _admit(self, scope: Any) -> None:
        check_request(scope)
        headers = headers_of(scope)
        if b"%" in scope.get("raw_path", b""):
            scope["path"] = _path(scope["raw_path"])
        path = scope["path"]
        if "//" in path or (path.endswith("/") and path != "/"):
            raise NotFoundException  # one spelling per path, so that the checks by path hold
        if not path.startswith(PROBES):
            self._hosts.check(headers.get("host", ""))
        self._body_limits(scope).check_announced(content_length(scope))
        caller = ANONYMOUS if path.startswith(PUBLIC) else await self._authenticate(headers, scope)
        if scope["method"] not in SAFE_METHODS or path == TICK:
            check_same_origin(headers)
        scope[CALLER] = caller
        if caller.token_id is not None:
            self._rate_limit.check(caller.token_id, "too many requests with this token: slow down")

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
        has_body = scope["method"] not in SAFE_METHODS
        return IncomingBody(receive, self._body_limits(scope), held, announced=content_length(scope), has_body=has_body)

    def _body_limits(self, scope: Any) -> BodyLimits:
        if scope["path"] == IMPORT:
            return _STREAM
        return self._sign_in_limits if _signs_in(scope) else self._limits

    async def _authenticate(self, headers: dict[str, str], scope: Any) -> Caller:
        authorization = headers.get("authorization")
        if authorization is not None:
            kind, _, text = authorization.partition(" ")
            if kind.lower() != "bearer":
                detail = "the Authorization header is not a Bearer token: send `Authorization: Bearer tk_…`"
                raise Refused(401, detail, headers={"www-authenticate": 'Bearer error="invalid_request"'})
            token = await self._tokens.check(text.strip())
            if token is None:
                self._failures.check(address_of(scope), WRONG_TOKENS)  # only now: a valid token is never refused for wrong ones
                detail = "this token is not valid: it may have been revoked"
                raise Refused(401, detail, headers={"www-authenticate": 'Bearer error="invalid_token"'})
            return of_token(token)
        if not await self._tokens.exist():
            return self._default_caller
        if "cookie" in headers and (session := await self._sessions.find(headers["cookie"])) is not None:
            token = await self._tokens.get(session.subject)
            return ANONYMOUS if token is None else of_token(token, session)
        return ANONYMOUS


class _Outgoing(OutgoingResponse):
    """Adds the security headers, and answers a HEAD without a body."""

    def __init__(self, send: Send, scope: Any) -> None:
        super().__init__(send, _HEADERS)
        self._is_head = scope["method"] == "HEAD"
        self._path = scope["path"]

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            headers = [self._with_head(*each) if each[0] == b"allow" else each for each in message.get("headers", ())]
            await super().__call__({**message, "headers": headers})
            if self._is_head:  # at once, so that a stream sees the end and stops
                await super().__call__({"type": "http.response.body", "body": b"", "more_body": False})
        elif not self._is_head:
            await super().__call__(message)

    def _with_head(self, name: bytes, value: bytes) -> tuple[bytes, bytes]:
        """Add HEAD to an `allow` header that has GET."""
        methods = value.split(b", ") if self._path != TICK else ()
        return (name, b", ".join(sorted([*methods, b"HEAD"]))) if b"GET" in methods else (name, value)


def _signs_in(scope: Any) -> bool:
    return scope["path"] in SIGN_IN and scope["method"] == "POST"


def _names(settings: ServerSettings) -> frozenset[str]:
    """Return the host names that the service answers to; none if an operator who listens publicly has named none."""
    names = frozenset(settings.hosts) | (LOCAL_NAMES if settings.is_local else frozenset())
    return names | settings.own_names if names else names


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
