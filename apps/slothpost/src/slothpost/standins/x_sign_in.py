"""How people and applications sign in at the local X: a page that asks for consent, and the endpoint of tokens."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import datetime
from http import HTTPStatus
from urllib.parse import unquote, urlencode

from aiohttp import web

from slothpost.networks.network import TokenPair
from slothpost.standins.pages import Consent, Site, consent_page, error_page
from slothpost.standins.x_tokens import ALL_SCOPES, CODE_LIFETIME, Grant, XTokens

AUTHORIZE = "/i/oauth2/authorize"
TOKEN = "/2/oauth2/token"  # noqa: S105  # a path
CLIENT_ID = "slothpost"
CLIENT_SECRET = "the secret of slothpost at the local X"  # noqa: S105  # known to everybody
MAX_STATE = 500

SITE = Site(name="X", sign="X", profile="/{handle}")


class XSignIn:
    """`handle` is the account that the page proposes."""

    def __init__(self, tokens: XTokens, now: Callable[[], datetime], handle: str) -> None:
        self._tokens = tokens
        self._now = now
        self._handle = handle

    def routes(self) -> list[web.RouteDef]:
        return [web.get(AUTHORIZE, self._ask), web.post(AUTHORIZE, self._decide), web.post(TOKEN, self._token)]

    async def _ask(self, request: web.Request) -> web.Response:
        fault = _authorize_fault(request.query)
        if fault is not None:
            return error_page(SITE, HTTPStatus.BAD_REQUEST, fault)
        scopes = request.query["scope"].split()
        return consent_page(SITE, Consent(app="slothpost", scopes=scopes, fields=request.query, handle=self._handle))

    async def _decide(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        fault = _authorize_fault(form)
        if fault is not None:
            return error_page(SITE, HTTPStatus.BAD_REQUEST, fault)
        if form.get("decision") != "allow":
            return _back(form, {"error": "access_denied"})
        grant = Grant(
            handle=form.get("handle") or self._handle,
            scopes=frozenset(form["scope"].split()),
            client_id=form["client_id"],
            redirect_uri=form["redirect_uri"],
            challenge=form["code_challenge"],
            until=self._now() + CODE_LIFETIME,
        )
        return _back(form, {"code": self._tokens.authorize(grant)})

    async def _token(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        if not self._is_client(request, form):
            return _oauth_error(HTTPStatus.UNAUTHORIZED, "unauthorized_client", "Missing valid authorization header")
        match form.get("grant_type"):
            case "authorization_code":
                pair = self._tokens.exchange(
                    form.get("code", ""), CLIENT_ID, form.get("redirect_uri", ""), form.get("code_verifier", "")
                )
                what = "authorization code"
            case "refresh_token":
                pair, what = self._tokens.refresh(form.get("refresh_token", "")), "token"
            case _:
                return _oauth_error(HTTPStatus.BAD_REQUEST, "unsupported_grant_type", "The grant type is not supported.")
        if pair is None:
            return _oauth_error(HTTPStatus.BAD_REQUEST, "invalid_request", f"Value passed for the {what} was invalid.")
        return web.json_response(_token_answer(pair))

    def _is_client(self, request: web.Request, form: Mapping[str, str]) -> bool:
        """Check the credentials of a confidential client, or the id of a public one."""
        kind, _, encoded = request.headers.get("authorization", "").partition(" ")
        if not kind:
            return form.get("client_id") == CLIENT_ID
        try:
            id, _, secret = b64decode(encoded).decode().partition(":")
        except ValueError:
            return False
        return kind == "Basic" and (unquote(id), unquote(secret)) == (CLIENT_ID, CLIENT_SECRET)


def _authorize_fault(given: Mapping[str, str]) -> str | None:
    """Return what is wrong with a request for consent."""
    wanted = {"response_type": "code", "client_id": CLIENT_ID, "code_challenge_method": "S256"}
    for name, value in wanted.items():
        if given.get(name) != value:
            return f"Something went wrong: {name} must be {value}"
    if not given.get("code_challenge"):
        return "Something went wrong: there is no code_challenge"
    if not 0 < len(given.get("state", "")) <= MAX_STATE:
        return f"Something went wrong: state must have 1 to {MAX_STATE} characters"
    if not given.get("redirect_uri", "").startswith(("http://", "https://")):
        return "Something went wrong: redirect_uri is not an address"
    if not given.get("scope") or not set(given["scope"].split()) <= ALL_SCOPES:
        return f"Something went wrong: scope must be among {' '.join(sorted(ALL_SCOPES))}"
    return None


def _back(form: Mapping[str, str], answer: Mapping[str, str]) -> web.Response:
    query = urlencode({"state": form["state"], **answer})
    uri = form["redirect_uri"]
    return web.Response(status=HTTPStatus.FOUND, headers={"location": f"{uri}{'&' if '?' in uri else '?'}{query}"})


def _token_answer(pair: TokenPair) -> dict[str, object]:
    assert pair.lifetime is not None
    answer: dict[str, object] = {
        "token_type": "bearer",
        "expires_in": int(pair.lifetime.total_seconds()),
        "access_token": pair.access,
    }
    return answer if pair.refresh is None else {**answer, "refresh_token": pair.refresh}


def _oauth_error(status: int, error: str, description: str) -> web.Response:
    return web.json_response({"error": error, "error_description": description}, status=status)
