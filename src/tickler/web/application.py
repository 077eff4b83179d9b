"""`Web`: the parts of this package for one application, with its name, its settings and its users."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, TypeVar

from tickler.access.bearer_tokens import BearerToken, BearerTokens
from tickler.client import Tickler
from tickler.errors import InvalidInput
from tickler.records.kinds import web_kind
from tickler.web.addresses import address_of
from tickler.web.asgi import App
from tickler.web.assets import Assets
from tickler.web.forms import FormFields, Forms
from tickler.web.one_time_links import OneTimeLinks
from tickler.web.problems import Answer, Refused, problem_answer, problem_of
from tickler.web.protection import Protection
from tickler.web.rate_limit import failure_rate_limit
from tickler.web.redirects import requested_path, with_query
from tickler.web.sessions import Sessions
from tickler.web.settings import WebSettings, check_application_name
from tickler.web.visitor import VISITOR, Visitor

U = TypeVar("U")
T = TypeVar("T", bound=BearerToken)

FindUser = Callable[[str], Awaitable[U | None]]
ErrorPage = Callable[[Mapping[str, Any], Refused], str | None]


class Web(Generic[U]):
    """Sessions, forms, links and tokens of one application, and the middleware that uses them.

    `user` returns the user of a subject, the text that `sign_in` was given; None ends the session. `error_page` returns the HTML
    of a refusal for browsers; where it returns None, and for programs, the answer is problem+json. Records and cookies carry the
    `name`, so that applications on one store or one host do not share them.
    """

    def __init__(
        self,
        tickler: Tickler,
        name: str,
        *,
        user: FindUser[U],
        settings: WebSettings | None = None,
        error_page: ErrorPage | None = None,
    ) -> None:
        check_application_name(name)
        self._name = name
        self._records, self._clock = tickler.store.records, tickler.clock
        self._find_user = user
        self._settings = settings or WebSettings()
        self._error_page = error_page
        self._failures = failure_rate_limit()
        self._tokens: dict[str, Callable[[str], Awaitable[tuple[BearerToken, str] | None]]] = {}  # by prefix
        kind = web_kind(name)
        self.sessions = Sessions(self._records, self._clock, self._settings.session(name), record_kind=kind)
        self.forms = Forms(self._records, self._clock, record_kind=kind)
        self.links = OneTimeLinks(self._records, self._clock, record_kind=kind)

    def tokens(self, token_type: type[T], *, prefix: str, subject: Callable[[T], str] | None = None) -> BearerTokens[T]:
        """Return the tokens of a type, which the middleware accepts from now on.

        `subject` says whose token one is. Without it, `user` is asked for the id of the token.
        """
        if prefix in self._tokens:
            raise InvalidInput(f"prefix: {prefix!r} is taken by other tokens of {self._name}: choose another")
        kind = web_kind(self._name, f"token-{prefix}")
        tokens = BearerTokens(self._records, self._clock, token_type, prefix=prefix, record_kind=kind, subject=subject)

        async def check(text: str) -> tuple[BearerToken, str] | None:
            token = await tokens.check(text)
            return None if token is None else (token, token.id if subject is None else subject(token))

        self._tokens[prefix] = check
        return tokens

    def protect(self, app: App, *, assets: Assets | None = None) -> Protection:
        """Return the application with every check around it, as an ASGI app. `assets` are served without looking up a visitor."""
        return Protection(app, self._settings, self._authenticate, self.answer, assets)

    def visitor(self, scope: Mapping[str, Any]) -> Visitor[U]:
        """Return who sends a request."""
        visitor: Visitor[U] | None = scope.get(VISITOR)
        if visitor is None:
            raise InvalidInput("visitor: the request did not pass the middleware: serve the app that `protect` returns")
        return visitor

    async def form_token(self, scope: Mapping[str, Any]) -> str:
        """Return the token for the hidden field `form_token` of the visitor's forms."""
        return await self.forms.token(self.visitor(scope).client_id)

    async def form(self, scope: Mapping[str, Any], body: bytes) -> FormFields:
        """Return the fields of a form that one of our pages sent. Other forms are refused."""
        kinds = [value.decode("latin-1") for name, value in scope["headers"] if name == b"content-type"]
        return await self.forms.read(kinds[0] if kinds else "", body, self.visitor(scope).client_id)

    async def sign_in(self, scope: Mapping[str, Any], subject: str) -> str:
        """Start a session, and end the visitor's present one; return the `set-cookie` value."""
        await self._end_session(scope)
        return await self.sessions.cookie_for(subject)

    async def sign_out(self, scope: Mapping[str, Any]) -> str:
        """End the visitor's session, if there is one; return the `set-cookie` value."""
        await self._end_session(scope)
        return self.sessions.expired_cookie()

    def count_failure(self, scope: Mapping[str, Any]) -> None:
        """Count a failure of an address, and refuse with 429 more than 30 a minute.

        Call it after a wrong code of a link, which nobody guesses, and for every attempt before you compare a password or a short
        code: a limit that is asked only after wrong ones lets the right one pass, however many came before.
        """
        address = address_of(scope, self._settings.trusted_proxies)
        self._failures.check(address, "too many wrong tokens or codes from this address: wait a moment")

    def check_secret(self, scope: Mapping[str, Any], secret: str, name: str) -> None:
        """Refuse a request without `Authorization: Bearer` and a secret of the settings, such as one of an outside cron.

        `name` is what the refusal calls the secret. An empty one lets nobody in. Others must be long: only wrong ones count.
        """
        sent = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        kind, _, given = sent.partition(b" ")
        # Digests have the same length, so that the time of the comparison says nothing about the secret.
        is_right = hmac.compare_digest(_digest(given.strip()), _digest(secret.encode()))
        if not secret or kind.lower() != b"bearer" or not is_right:
            self.count_failure(scope)
            raise Refused(401, f"send `Authorization: Bearer` with {name}", headers={"www-authenticate": "Bearer"})

    def answer(self, scope: Mapping[str, Any], refused: Refused) -> Answer:
        """Return the response to a request that is refused. Frameworks need it in their handler of `Refused`."""
        accepts = b",".join(value for name, value in scope["headers"] if name == b"accept")
        sign_in = self._settings.sign_in
        if b"text/html" in accepts:
            if refused.status == 401 and sign_in is not None and scope["path"] != sign_in:
                location = with_query(sign_in, next=requested_path(scope))
                return Answer(303, {"location": location, "cache-control": "no-store"}, b"")
            page = None if self._error_page is None else self._error_page(scope, refused)
            if page is not None:
                return Answer(refused.status, {"content-type": "text/html; charset=utf-8", **refused.headers}, page.encode())
        return problem_answer(problem_of(refused), refused.headers)

    async def _end_session(self, scope: Mapping[str, Any]) -> None:
        session = self.visitor(scope).session
        if session is not None:
            await self.sessions.end(session)

    async def _authenticate(self, scope: Any, headers: dict[str, str]) -> Visitor[U]:
        if self._settings.is_foreign(scope["path"]) or self._settings.is_probe(scope["path"]):
            return Visitor()
        if self._tokens and "authorization" in headers:
            return await self._of_token(scope, headers["authorization"])
        session = await self.sessions.find(headers["cookie"]) if "cookie" in headers else None
        if session is None:
            return Visitor()
        user = await self._find_user(session.subject)
        if user is None:
            await self.sessions.end(session)
            return Visitor()
        return Visitor(user, session)

    async def _of_token(self, scope: Any, authorization: str) -> Visitor[U]:
        kind, _, text = authorization.partition(" ")
        if kind.lower() == "bearer":
            for check in self._tokens.values():
                found = await check(text.strip())
                user = None if found is None else await self._find_user(found[1])
                if found is not None and user is not None:
                    return Visitor(user, None, found[0])
        self.count_failure(scope)  # only now: a valid token is never refused for wrong ones
        detail = "this token is not valid: send `Authorization: Bearer` with one that was not revoked"
        raise Refused(401, detail, headers={"www-authenticate": 'Bearer error="invalid_token"'})


def _digest(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()
