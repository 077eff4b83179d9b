"""Activity: what happened, what was told, and who sees deliveries that no product has."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from page_client import PageClient, page_client

from installation import Installation
from slothpost.model import Unrouted, VercelInstallation
from slothpost.web.pages.preview import card_domain, pieces_of


@pytest.fixture
async def ada(here: Installation) -> PageClient:
    return await page_client(here.app, await here.a_user())


async def an_unrouted(here: Installation, id: str, owner: str) -> None:
    kept = here.now() + timedelta(days=30)
    item = Unrouted(
        id=id,
        project=f"prj_{id}",
        owner=owner,
        event="deployment.succeeded",
        summary=f"site {id}",
        received_at=here.now(),
        expires_at=kept,
    )
    await here.app.db.create(item)


async def test_activity_of_all_products_says_what_was_told_where(here: Installation, ada: PageClient) -> None:
    teapot, kettle = await here.a_product(), await here.a_product(name="Kettle")
    draft = await here.a_draft(await here.a_channel({"tue": "09:00"}, name="x"))
    await here.an_activity(teapot, "Timers", x_post=draft.id)
    await here.an_activity(kettle, "Whistle", kind="release", is_private=True)
    await here.an_activity(kettle, "Bump whistle", kind="chore", worth=0)
    page = await ada.get("/activity")
    for text in ("feature Timers", "release Whistle private", "chore Bump whistle", "never told", "Kettle"):
        assert text in page.text
    assert f'<a class="use used" href="/posts/{draft.id}">X</a>' in page.source
    assert "Timers" not in (await ada.get(f"/activity?product={kettle.id}")).text
    assert (await ada.get("/activity?product=nothing")).status == 404


async def test_older_activity_of_a_product_is_on_the_next_page(here: Installation, ada: PageClient) -> None:
    product = await here.a_product()
    for number in range(31):
        await here.an_activity(product, f"Timer {number:02}")
        here.clock.advance(60)
    page = await ada.get("/activity")
    assert "Timer 30" in page.text
    assert "Timer 00" not in page.text
    older = page.source.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
    assert "Timer 00" in (await ada.get(older)).text
    assert "create a product" in (await (await page_client(here.app, await here.a_user("bob"))).get("/activity")).text


async def test_unrouted_deliveries_are_seen_by_their_team_and_by_the_operator(
    here: Installation, ada: PageClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for id, owner in (("1", "team_ada"), ("2", "team_bob")):
        await an_unrouted(here, id, owner)
    installed = VercelInstallation(user="ada", id="icfg_1", token="x", team_id="team_ada", installed_at=here.now())
    await here.app.db.create(installed)
    assert "site 1" not in (await ada.get("/activity")).text, "Vercel does not say that the team is theirs"
    monkeypatch.setattr(type(here.app.connections), "vercel_projects", lambda *_: asyncio.sleep(0, []))
    page = await ada.get("/activity")
    assert "site 1" in page.text
    assert "site 2" not in page.text
    assert "team_" not in page.text
    operator = await here.app.users.create("Olga", is_operator=True, id="olga")
    everything = (await (await page_client(here.app, operator)).get("/activity")).text
    assert "site 1" in everything
    assert "team_bob" in everything


def test_a_preview_shows_links_as_the_network_does() -> None:
    text = "Read README.md, then https://www.teapot.example.com/a/very/long/path/indeed"
    links = ["README.md", "https://www.teapot.example.com/a/very/long/path/indeed"]
    on_x = pieces_of("x", text, links)
    assert [(piece.text, piece.is_link) for piece in on_x] == [
        ("Read ", False), ("README.md", True), (", then ", False), ("teapot.example.com/a/very/long…", True)
    ]  # fmt: skip
    assert pieces_of("threads", text, links)[-1].text == "www.teapot.example.com/a/very/…"
    assert (card_domain(links), card_domain(links[1:]), card_domain([])) == ("teapot.example.com", "teapot.example.com", None)
    assert card_domain(links[:1]) is None
    assert "".join(piece.text for piece in pieces_of("x", "no links", [])) == "no links"
    assert pieces_of("x", "", ["gone.com"]) == []
