"""The client of X. There is no key by which X would recognise a repeated post, so each is sent once."""

from __future__ import annotations

import hashlib
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from datetime import datetime
from typing import Annotated
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Meta

from slothpost.model import ChannelName
from slothpost.networks.network import KeepContainer, NetworkError, NotSent, Person, Publication, Published, TokenPair
from slothpost.networks.request import Answer, OpenSession, Request, Requests
from slothpost.networks.token_answer import read_tokens
from slothpost.networks.x_errors import post_error, token_error

SCOPES = "tweet.read tweet.write users.read offline.access"


class XSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The app of this installation at X, and where X is. A public client has no secret."""

    client_id: str
    client_secret: str | None = None
    api_url: str = "https://api.x.com"
    authorize_url: str = "https://x.com/i/oauth2/authorize"
    site_url: str = "https://x.com"
    timeout_s: float = 30.0

    def __repr__(self) -> str:
        return f"<XSettings of {self.client_id} at {self.api_url}>"


_Id = Annotated[str, Meta(pattern=r"^[0-9]{1,40}\Z")]


class _Post(msgspec.Struct):
    id: _Id


class _User(msgspec.Struct):
    id: _Id
    username: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_]{1,60}\Z")]


class _PostAnswer(msgspec.Struct):
    data: _Post


class _UserAnswer(msgspec.Struct):
    data: _User


class XNetwork:
    """Publishes on X, and connects accounts by OAuth 2.0 with PKCE."""

    name: ChannelName = "x"
    can_resume: bool = False
    refreshes_single_use: bool = True

    def __init__(self, settings: XSettings, open_session: OpenSession, now: Callable[[], datetime]) -> None:
        self._settings = settings
        self._now = now
        self._requests = Requests("X", open_session, settings.timeout_s)

    async def publish(self, token: str, publication: Publication, keep: KeepContainer) -> Published:
        """Send the post, once. There is nothing to keep: if the answer is lost, only a person can tell."""
        url = f"{self._settings.api_url}/2/tweets"
        request = Request(method="POST", url=url, headers=_bearer(token), json={"text": publication.text}, acts=True)
        answer = await self._send(request, post_error)
        try:
            post = msgspec.json.decode(answer.body, type=_PostAnswer).data
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise request.lost("X answered that it took the post, but not which one it is") from None
        return Published(post.id, f"{self._settings.site_url}/{quote(publication.handle)}/status/{quote(post.id)}")

    def authorize_url(self, *, state: str, redirect_uri: str, code_verifier: str) -> str:
        challenge = urlsafe_b64encode(hashlib.sha256(code_verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": redirect_uri,
            "scope": SCOPES,
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return f"{self._settings.authorize_url}?{urlencode(query, quote_via=quote)}"

    async def exchange(self, code: str, *, redirect_uri: str, code_verifier: str) -> TokenPair:
        """Return the tokens for a code, which lives 30 seconds."""
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri, "code_verifier": code_verifier}
        return await self._tokens(form, acts=False)

    async def refresh(self, tokens: TokenPair) -> TokenPair:
        """Return the next pair; from then on X refuses this one, and ends the connection if it sees it again.

        `Unclear` if the answer was lost: X may have issued a pair that nobody has. An answer of 5xx is `NotSent`, as X says that
        it failed. If it did rotate the tokens, the next call is told so and raises `TokenRejected`.
        """
        if tokens.refresh is None:
            raise ValueError("this pair has no refresh token: ask for the scope offline.access")
        return await self._tokens({"grant_type": "refresh_token", "refresh_token": tokens.refresh}, acts=True)

    async def whoami(self, token: str) -> Person:
        request = Request(method="GET", url=f"{self._settings.api_url}/2/users/me", headers=_bearer(token))
        answer = await self._send(request, post_error)
        try:
            user = msgspec.json.decode(answer.body, type=_UserAnswer).data
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise NotSent("X did not say whose account this is") from None
        return Person(user.id, user.username)

    async def _tokens(self, form: dict[str, str], *, acts: bool) -> TokenPair:
        settings = self._settings
        if settings.client_secret is None:
            headers, form = {}, {**form, "client_id": settings.client_id}
        else:
            # RFC 6749 encodes both as in a form, so that a colon cannot be taken for the one between them.
            credentials = f"{quote(settings.client_id, safe='')}:{quote(settings.client_secret, safe='')}"
            headers = {"authorization": f"Basic {b64encode(credentials.encode()).decode()}"}
        url = f"{settings.api_url}/2/oauth2/token"
        request = Request(method="POST", url=url, headers=headers, form=form, acts=acts, fails_safely=True)
        tokens = read_tokens(await self._send(request, token_error))
        if tokens is None:
            raise request.lost("X sent tokens that cannot be read")
        return tokens

    async def _send(self, request: Request, error: Callable[[Answer, datetime], NetworkError]) -> Answer:
        answer = await self._requests.send(request)
        if not answer.is_success:
            raise error(answer, self._now())
        return answer


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}
