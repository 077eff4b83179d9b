"""How people and applications sign in at the local Threads: a page that asks for consent, and the endpoints of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import urlencode

from aiohttp import web

from slothpost.networks.network import TokenPair
from slothpost.standins.graph_answers import GraphFault, fault_answer, form_of, invalid
from slothpost.standins.local_post import user_id
from slothpost.standins.pages import Consent, Site, consent_page, error_page
from slothpost.standins.threads_tokens import ALL_SCOPES, ThreadsTokens

AUTHORIZE = "/oauth/authorize"
CLIENT_ID = "1234567890"
CLIENT_SECRET = "the secret of slothpost at the local Threads"  # noqa: S105  # known to everybody

SITE = Site(name="Threads", sign="@", profile="/@{handle}")


class ThreadsSignIn:
    """`handle` is the account that the page proposes."""

    def __init__(self, tokens: ThreadsTokens, handle: str) -> None:
        self._tokens = tokens
        self._handle = handle

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get(AUTHORIZE, self._ask),
            web.post(AUTHORIZE, self._decide),
            web.post("/oauth/access_token", self._exchange),
            web.get("/access_token", self._extend),
            web.get("/refresh_access_token", self._refresh),
        ]

    async def _ask(self, request: web.Request) -> web.Response:
        fault = _authorize_fault(request.query)
        if fault is not None:
            return error_page(SITE, HTTPStatus.BAD_REQUEST, fault)
        scopes = request.query["scope"].split(",")
        return consent_page(SITE, Consent(app="slothpost", scopes=scopes, fields=request.query, handle=self._handle))

    async def _decide(self, request: web.Request) -> web.Response:
        form = await form_of(request)
        fault = _authorize_fault(form)
        if fault is not None:
            return error_page(SITE, HTTPStatus.BAD_REQUEST, fault)
        if form.get("decision") != "allow":
            return _back(form, {"error": "access_denied", "error_reason": "user_denied"})
        scopes = frozenset(form["scope"].split(","))
        return _back(form, {"code": self._tokens.authorize(form.get("handle") or self._handle, scopes, form["redirect_uri"])})

    async def _exchange(self, request: web.Request) -> web.Response:
        form = await form_of(request)
        wanted = (CLIENT_ID, CLIENT_SECRET, "authorization_code")
        if (form.get("client_id"), form.get("client_secret"), form.get("grant_type")) != wanted:
            return _oauth_error("Error validating client secret.")
        issued = self._tokens.exchange_code(form.get("code", ""), form.get("redirect_uri", ""))
        if issued is None:
            return _oauth_error("Invalid authorization code")
        token, handle = issued
        return web.json_response({"access_token": token, "user_id": int(user_id(handle))})

    async def _extend(self, request: web.Request) -> web.Response:
        query = request.query
        if (query.get("grant_type"), query.get("client_secret")) != ("th_exchange_token", CLIENT_SECRET):
            return fault_answer(invalid("Error validating client secret."))
        return _token_answer(self._tokens.extend(query.get("access_token", "")))

    async def _refresh(self, request: web.Request) -> web.Response:
        if request.query.get("grant_type") != "th_refresh_token":
            return fault_answer(invalid("The parameter grant_type is required"))
        return _token_answer(self._tokens.refresh(request.query.get("access_token", "")))


def _authorize_fault(given: Mapping[str, str]) -> str | None:
    """Return what is wrong with a request for consent."""
    for name, value in {"response_type": "code", "client_id": CLIENT_ID}.items():
        if given.get(name) != value:
            return f"Something went wrong: {name} must be {value}"
    if not given.get("redirect_uri", "").startswith(("http://", "https://")):
        return "Something went wrong: redirect_uri is not an address"
    if not given.get("scope") or not set(given["scope"].split(",")) <= ALL_SCOPES:
        return f"Something went wrong: scope must be among {','.join(sorted(ALL_SCOPES))}"
    return None


def _back(form: Mapping[str, str], answer: Mapping[str, str]) -> web.Response:
    """Send a person back. Threads ends the address with `#_`, which belongs to no parameter."""
    query = urlencode({**answer, "state": form.get("state", "")})
    uri = form["redirect_uri"]
    return web.Response(status=HTTPStatus.FOUND, headers={"location": f"{uri}{'&' if '?' in uri else '?'}{query}#_"})


def _token_answer(issued: TokenPair | GraphFault) -> web.Response:
    if isinstance(issued, GraphFault):
        return fault_answer(issued)
    assert issued.lifetime is not None
    seconds = int(issued.lifetime.total_seconds())
    return web.json_response({"access_token": issued.access, "token_type": "bearer", "expires_in": seconds})


def _oauth_error(message: str) -> web.Response:
    content = {"error_type": "OAuthException", "code": 400, "error_message": message}
    return web.json_response(content, status=HTTPStatus.BAD_REQUEST)
