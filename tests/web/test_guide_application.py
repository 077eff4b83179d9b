"""The application of the guide, on uvicorn, driven over HTTP as a browser, a script and another service do."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest
from receivers.programs import served, write_program

from tickler import connect
from tickler.web import Web

SECRET = "what both sides know"

pytestmark = pytest.mark.xdist_group("notes")  # one process serves all of them


class Page(NamedTuple):
    """A response."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def form_token(self) -> str:
        (token,) = re.findall(r'name="form_token" value="([0-9a-f]{64})"', self.text)
        return str(token)


class Browser:
    """Keeps cookies, follows nothing, and says where a form comes from."""

    def __init__(self, address: str, session: aiohttp.ClientSession) -> None:
        self._address = address
        self._session = session

    async def get(self, path: str, **headers: str) -> Page:
        return await self._ask("GET", path, None, {"accept": "text/html", **headers})

    async def post(self, path: str, fields: Mapping[str, str] | bytes, **headers: str) -> Page:
        return await self._ask("POST", path, fields, {"accept": "text/html", "origin": self._address, **headers})

    async def _ask(self, method: str, path: str, data: object, headers: Mapping[str, str]) -> Page:
        given = {name.replace("_", "-"): value for name, value in headers.items() if value}
        async with self._session.request(
            method, f"{self._address}{path}", data=data, headers=given, allow_redirects=False
        ) as response:
            return Page(response.status, response.headers, await response.text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notes")


@pytest.fixture(scope="module")
def store(folder: Path) -> str:
    return f"sqlite:///{folder / 'notes.db'}"


@pytest.fixture(scope="module")
def address(folder: Path, store: str) -> Iterator[str]:
    program = write_program("web.md", "notes.py", folder)
    with served(program, "uvicorn", environ={"NOTES_STORE": store, "HOOK_SECRET": SECRET}) as served_at:
        yield served_at


@pytest.fixture
async def browser(address: str) -> AsyncIterator[Browser]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        yield Browser(address, session)


async def link(store: str) -> str:
    """Create a link as a second process of the application does, such as the one that sends mail."""

    async def nobody(subject: str) -> None:
        return None

    async with connect(store) as t:
        return await Web(t, "notes", user=nobody).links.create("u1")


async def signed_in(browser: Browser, store: str) -> Page:
    path = f"/sign-in/{await link(store)}"
    asked = await browser.get(path)
    return await browser.post(path, {"form_token": asked.form_token})


async def test_from_a_link_to_a_note_a_token_and_out_again(browser: Browser, store: str) -> None:
    sent_away = await browser.get("/?x=1")
    assert (sent_away.status, sent_away.headers["location"]) == (303, "/sign-in?next=%2F%3Fx%3D1")
    assert (await browser.get("/sign-in?next=%2F")).status == 200

    path = f"/sign-in/{await link(store)}"
    scanned, confirm = await browser.get(path), await browser.get(path)  # first by a program that scans mail
    assert [(each.status, "set-cookie" in each.headers) for each in (scanned, confirm)] == [(200, False)] * 2
    entered = await browser.post(path, {"form_token": confirm.form_token, "next": "//evil.example"})
    assert (entered.status, entered.headers["location"]) == (303, "/")
    assert entered.headers["set-cookie"].endswith("; Path=/; Max-Age=43200; HttpOnly; SameSite=Lax")
    assert (await browser.get(path)).status == 404, "a link works once"

    page = await browser.get("/")
    assert (page.status, "Notes of Ada" in page.text) == (200, True)
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert (await browser.post("/", {"note": "<b>", "form_token": page.form_token})).status == 303
    assert "<p>&lt;b&gt;</p>" in (await browser.get("/")).text

    created = await browser.post("/tokens", {"form_token": page.form_token})
    (text,) = re.findall(r"nt_[0-9a-f]{16}_[0-9a-f]{64}", created.text)
    by_token = {"authorization": f"Bearer {text}", "accept": ""}
    assert (await browser.get("/api/notes", **by_token)).text.count("<b>") == 1
    lacking = await browser.post("/", {"note": "x"}, **by_token)
    assert (lacking.status, "lacks the scope 'write'" in lacking.text) == (403, True)
    assert (await browser.post("/tokens", {}, **by_token)).status == 403

    left = await browser.post("/sign-out", {"form_token": page.form_token})
    assert (left.status, left.headers["location"]) == (303, "/sign-in")
    assert (await browser.get("/")).status == 303
    assert (await browser.get("/api/notes", **by_token)).status == 200, "tokens are not sessions"


async def test_forms_of_others_change_nothing(browser: Browser, store: str) -> None:
    await signed_in(browser, store)
    page = await browser.get("/")
    token = page.form_token
    for fields, headers in (
        ({"note": "x"}, {}),
        ({"note": "x", "form_token": "0" * 64}, {}),
        ({"note": "x", "form_token": token}, {"origin": "https://evil.example"}),
        ({"note": "x", "form_token": token}, {"sec_fetch_site": "cross-site"}),
        ({"note": "x", "form_token": token}, {"host": "evil.example"}),
    ):
        assert (await browser.post("/", fields, **headers)).status in (403, 421), (fields, headers)
    assert (await browser.post("/", b'{"note": "x"}', content_type="text/plain")).status == 415
    assert (await browser.get("/", host="evil.example")).status == 421
    assert (await browser.get("/")).text == page.text


async def test_a_webhook_counts_by_its_signature_alone(browser: Browser, store: str) -> None:
    await signed_in(browser, store)
    body = b"shipped"
    right = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    foreign = {"origin": "https://elsewhere.example", "accept": ""}
    assert (await browser.post("/webhooks/note", body, **foreign)).status == 401
    for wrong in ("0" * 64, "é"):
        assert (await browser.post("/webhooks/note", body, x_signature=wrong, **foreign)).status == 401
    assert (await browser.post("/webhooks/note", body, x_signature=right, **foreign)).text == '{"stored":true}'
    assert (await browser.get("/")).text.count("<p>shipped</p>") == 1


async def test_what_is_too_long_is_refused_also_where_the_framework_would_hide_it(browser: Browser, store: str) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b"x" * 65_536

    await signed_in(browser, store)
    refused = await browser.post("/", endless(), accept="", content_type="application/x-www-form-urlencoded")  # type: ignore[arg-type]  # a stream, without an announced length
    assert (refused.status, "the body is longer than 1048576 bytes" in refused.text) == (413, True)
