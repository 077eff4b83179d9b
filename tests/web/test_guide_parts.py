"""The second application of the guide: static files, error pages, a limit of its own, and signing out everywhere."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Literal

import aiohttp
import pytest
from receivers.programs import served, write_program

from tickler import Tickler, connect
from tickler.web import BearerToken, Web

from .conftest import make_web
from .test_guide_application import Browser

STYLE = "h1 { letter-spacing: 0.02em }\n"

pytestmark = pytest.mark.xdist_group("team")  # one process serves all of them


class TeamToken(BearerToken, frozen=True, kw_only=True):
    """As the guide's."""

    scopes: tuple[Literal["read"], ...]
    user: str


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("team")
    (folder / "team" / "static").mkdir(parents=True)
    (folder / "team" / "__init__.py").touch()
    (folder / "team" / "static" / "team.css").write_text(STYLE)
    return folder


@pytest.fixture(scope="module")
def store(folder: Path) -> str:
    return f"sqlite:///{folder / 'team.db'}"


@pytest.fixture(scope="module")
def address(folder: Path, store: str) -> Iterator[str]:
    program = write_program("web.md", "team_app.py", folder)
    with served(program, "uvicorn", environ={"TEAM_STORE": store}) as served_at:
        yield served_at


@pytest.fixture
async def browser(address: str) -> AsyncIterator[Browser]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield Browser(address, session)


@pytest.fixture
async def elsewhere(store: str, address: str) -> AsyncIterator[Tickler]:
    """Another process of the application."""
    async with connect(store) as t:
        yield t


async def cookie_of(web: Web[str], subject: str) -> str:
    return (await web.sessions.cookie_for(subject)).partition(";")[0]


async def test_pages_link_files_that_are_cached_for_ever(browser: Browser) -> None:
    page = await browser.get("/sign-in")
    theme, own = re.findall(r'href="([^"]+)"', page.text)
    assert theme.startswith("/static/tickler/theme.css?v=")
    style = await browser.get(own)
    assert (style.status, style.text, style.headers["cache-control"]) == (200, STYLE, "public, max-age=31536000, immutable")
    assert (await browser.get(theme)).status == 200


async def test_errors_have_a_page_for_browsers_and_json_for_programs(browser: Browser) -> None:
    page = await browser.post("/leave", b"")
    assert (page.status, "<h1>Error 415</h1>" in page.text, "/static/team.css" in page.text) == (415, True, True)
    program = await browser.post("/leave", b"", accept="application/json")
    assert (program.status, program.headers["content-type"]) == (415, "application/problem+json")


async def test_only_so_many_links_are_mailed_to_one_user(browser: Browser) -> None:
    token = (await browser.get("/sign-in")).form_token
    for user in ("u1", "nobody"):
        statuses = [(await browser.post("/sign-in", {"user": user, "form_token": token})).status for _ in range(4)]
        assert statuses == [200, 200, 200, 429], "the limit says nothing about who is known"


async def test_who_leaves_is_out_in_every_browser_and_so_are_the_tokens(
    browser: Browser, elsewhere: Tickler, users: dict[str, str]
) -> None:
    web = make_web(elsewhere, "team", users)
    tokens = web.tokens(TeamToken, prefix="tm", subject=lambda token: token.user)
    here, there = await cookie_of(web, "u1"), await cookie_of(web, "u1")
    _, text = await tokens.create(TeamToken(scopes=("read",), user="u1"))
    _, of_another = await tokens.create(TeamToken(scopes=("read",), user="u2"))
    home = await browser.get("/", cookie=here)
    assert (home.status, "1 tokens" in home.text) == (200, True)
    left = await browser.post("/leave", {"form_token": home.form_token}, cookie=here)
    assert (left.status, left.headers["location"]) == (303, "/sign-in")
    assert [(await browser.get("/", cookie=each)).status for each in (here, there)] == [303, 303]
    assert await tokens.check(text) is None
    assert await tokens.check(of_another) is not None
    assert (await browser.get("/", authorization=f"Bearer {text}")).status == 303, "to the page on which people sign in"
