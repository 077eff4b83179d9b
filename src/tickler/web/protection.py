"""The middleware around an application: every check in the order that matters.

1. limits on requests at once, on lengths, and on repeated headers      2. the host name
3. requests of other sites      4. the announced length of the body     5. who sends it      6. the rate and number of the client
Then the application runs; its body is limited as it arrives, and security headers are added to every response.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Any

from tickler.errors import StoreUnavailable
from tickler.web.addresses import UNIX, address_of, forwarded_for
from tickler.web.asgi import SAFE_METHODS, App, Receive, Send, headers_of
from tickler.web.assets import Assets
from tickler.web.body_limits import IncomingBody
from tickler.web.concurrency import ConcurrencyLimit
from tickler.web.cross_site import check_same_origin
from tickler.web.host_check import HostCheck
from tickler.web.problems import Answer, Refused, send_answer
from tickler.web.rate_limit import RateLimit
from tickler.web.request_checks import check_request, content_length
from tickler.web.security_headers import Headers, OutgoingResponse, security_headers
from tickler.web.settings import ANY_HOST, WebSettings
from tickler.web.visitor import VISITOR, Visitor

log = logging.getLogger("tickler.web")

Authenticate = Callable[[Any, dict[str, str]], Awaitable[Visitor[Any]]]
Render = Callable[[Any, Refused], Answer]

POLICY_VIOLATION = 1008  # the code that closes a WebSocket
MAX_REASON_BYTES = 123  # with the code, what fits into the frame that closes one


class Protection:
    """ASGI middleware. `authenticate` finds the visitor, and `render` answers what is refused."""

    def __init__(
        self, app: App, settings: WebSettings, authenticate: Authenticate, render: Render, assets: Assets | None = None
    ) -> None:
        self._app = app
        self._settings = settings
        self._authenticate = authenticate
        self._render = render
        self._assets = assets
        self._headers = security_headers(settings.policy, hsts_s=settings.hsts_s)
        self._hosts = HostCheck(None if ANY_HOST in settings.hosts else settings.hosts, remedy=settings.hosts_remedy)
        self._schemes = ("https",) if settings.https else ("http", "https")
        self._rate_limit = RateLimit(settings.rate)
        self._requests = ConcurrencyLimit()
        self._running = 0
        self._proxies = settings.trusted_proxies
        self._has_warned = False

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        outgoing = _Response(send, self._headers)
        self._running += 1
        try:
            await self._handle(scope, receive, outgoing)
        except Exception as error:
            refused = outgoing.refused or _refusal(error)
            if refused is None or outgoing.started:
                raise
            await self._refuse(scope, outgoing, refused)
        finally:
            self._running -= 1

    async def _handle(self, scope: Any, receive: Receive, outgoing: _Response) -> None:
        if self._running > self._settings.max_requests:
            raise Refused(503, "too many requests at once: try again in a moment", headers={"retry-after": "1"})
        headers = self._check(scope)
        if self._assets is not None and self._assets.serves(scope):
            await self._assets(scope, receive, outgoing)
            return
        visitor = await self._authenticate(scope, headers)
        client = visitor.rate_key or self._address(scope)
        self._rate_limit.check(client, "too many requests: slow down")
        with ExitStack() as limits:
            limits.enter_context(self._requests.take(client, self._settings.max_requests_of_client, "requests"))
            scope = {**scope, VISITOR: visitor}
            if visitor.rate_key is not None:
                outgoing.add(b"cache-control", b"no-store")  # what one user sees must reach no other by a cache
            if scope["type"] == "http":
                receive = self._incoming(scope, receive, outgoing)
            await self._app(scope, receive, outgoing)
        if outgoing.refused is not None and not outgoing.started:
            raise outgoing.refused

    def _check(self, scope: Any) -> dict[str, str]:
        """Refuse what needs no knowledge of the visitor; return the headers."""
        check_request(scope)
        headers = headers_of(scope)
        if not self._settings.is_probe(scope["path"]):
            self._hosts.check(headers.get("host", ""))
        if scope.get("method") not in SAFE_METHODS and not self._settings.is_foreign(scope["path"]):
            check_same_origin(headers, self._schemes)
        self._settings.body_limits(scope["path"]).check_announced(content_length(scope))
        return headers

    def _address(self, scope: Any) -> str:
        address = address_of(scope, self._proxies)
        if address == UNIX and not (self._has_warned or self._proxies.unix) and forwarded_for(scope):
            self._has_warned = True
            remedy = "add 'unix' to proxies, if only your proxy can connect to the socket"
            log.warning("X-Forwarded-For of a Unix socket is ignored, so all visitors share one rate limit: %s", remedy)
        return address

    def _incoming(self, scope: Any, receive: Receive, outgoing: _Response) -> Receive:
        """Limit the body. Once it is refused, the application sees a disconnect, and `outgoing` holds its answer back."""
        limits, has_body = self._settings.body_limits(scope["path"]), scope["method"] not in SAFE_METHODS
        body = IncomingBody(receive, limits, None, announced=content_length(scope), has_body=has_body)

        async def limited() -> Any:
            try:
                return await body() if outgoing.refused is None else {"type": "http.disconnect"}
            except Refused as refused:
                outgoing.refused = refused
                return {"type": "http.disconnect"}

        return limited

    async def _refuse(self, scope: Any, outgoing: _Response, refused: Refused) -> None:
        outgoing.refused = None
        if scope["type"] == "websocket":
            reason = str(refused).encode()[:MAX_REASON_BYTES].decode(errors="ignore")
            await outgoing({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": reason})
            return
        await send_answer(outgoing, self._render(scope, refused), is_head=scope["method"] == "HEAD")


def _refusal(error: Exception) -> Refused | None:
    if isinstance(error, StoreUnavailable):
        return Refused(503, "the store does not answer: try again in a moment", headers={"retry-after": "5"})
    return error if isinstance(error, Refused) else None


class _Response(OutgoingResponse):
    """A response that is held back once the request was refused."""

    def __init__(self, send: Send, headers: Headers) -> None:
        super().__init__(send, headers)
        self.refused: Refused | None = None

    async def __call__(self, message: Any) -> None:
        if self.refused is None or self.started:
            await super().__call__(message)
