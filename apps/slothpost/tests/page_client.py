"""A browser without JavaScript: it gets pages, and sends their forms with the token that they carry."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from web.asking import ask

from slothpost.app import Slothpost
from slothpost.model import User
from slothpost.web.app import create_app, web_settings
from tickler.web import Web

ORIGIN = "http://localhost"

_TOKEN = re.compile(r'name="form_token" value="([^"]+)"')
_TAGS = re.compile(r"<[^>]+>")
_ERROR = re.compile(r'<p class="error"[^>]*>(.*?)</p>', re.DOTALL)


class PageAnswer(NamedTuple):
    """A response."""

    status: int
    headers: Mapping[str, str]
    source: str

    @property
    def text(self) -> str:
        """What people read."""
        return " ".join(html.unescape(_TAGS.sub(" ", self.source)).split())

    @property
    def errors(self) -> list[str]:
        """What the page says is wrong."""
        return [" ".join(html.unescape(_TAGS.sub("", found)).split()) for found in _ERROR.findall(self.source)]

    @property
    def location(self) -> str:
        assert self.status == 303, (self.status, self.text)
        return self.headers["location"]

    def value(self, name: str) -> str:
        """Return what stands in a field."""
        field = re.search(rf'<(input|textarea)[^>]*name="{re.escape(name)}"[^>]*>(?:\n?([^<]*)</textarea>)?', self.source)
        assert field is not None, name
        given = re.search(r' value="([^"]*)"', field[0])
        return html.unescape(field[2] if field[1] == "textarea" else given[1] if given else "")


class PageClient:
    """One browser, signed in or not."""

    def __init__(self, app: Any, cookie: str = "") -> None:
        self.app = app
        self.cookie = cookie

    async def get(self, path: str, **headers: str) -> PageAnswer:
        return await self._ask("GET", path, headers)

    async def post(
        self, path: str, fields: Mapping[str, str] | None = None, *, token: str | None = None, **headers: str
    ) -> PageAnswer:
        """Send a form, by default with the token of the pages of this browser."""
        form_token = await self.form_token() if token is None else token
        body = urlencode({"form_token": form_token, **(fields or {})}).encode()
        kind = {"content-type": "application/x-www-form-urlencoded", "origin": ORIGIN}
        return await self._ask("POST", path, {**kind, **headers}, body)

    async def form_token(self) -> str:
        found = _TOKEN.search((await self.get("/settings" if self.cookie else "/sign-in")).source)
        return "" if found is None else found[1]

    async def sign_in(self, code: str) -> PageAnswer:
        """Open a sign-in link, and press its button."""
        token = _TOKEN.search((await self.get(f"/sign-in/{code}")).source)
        assert token is not None
        answer = await self.post(f"/sign-in/{code}", token=token[1])
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        return answer

    async def _ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> PageAnswer:
        sent = {"accept": "text/html", **{name.replace("_", "-"): value for name, value in headers.items()}}
        if self.cookie:
            sent["cookie"] = self.cookie
        got = await ask(self.app, method, path, sent, [body])
        return PageAnswer(got.status, got.headers, got.body.decode())


def web_of(slothpost: Slothpost) -> Web[User]:
    """Return links and sessions as another process of the installation has them."""
    return Web(slothpost.t, "slothpost", user=slothpost.users.get, settings=web_settings(slothpost.settings))


async def page_client(slothpost: Slothpost, user: User) -> PageClient:
    """Return a browser in which a user is signed in."""
    cookie = (await web_of(slothpost).sessions.cookie_for(user.id)).partition(";")[0]
    return PageClient(create_app(slothpost), cookie)
