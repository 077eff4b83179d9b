"""The page on which a visitor ships something, and what the pages of slothpost say in a demo."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from urllib.parse import urlsplit

import aiohttp
import pytest
from demo.conftest import THURSDAY, Start, Started
from page_client import PageClient, page_client

from slothpost.demo import DEMO_USER
from slothpost.demo.made_products import GITHUB_TOKEN, SPARE_REPOSITORY, WEBSITE
from slothpost.demo.time_lapse import work
from slothpost.demo_links import DemoLinks
from slothpost.model import Product
from slothpost.serving import serve
from tickler.web import listen

pytestmark = pytest.mark.xdist_group("demo")


def links_of(started: Started) -> DemoLinks:
    links = started.demo.settings.demo
    assert links is not None
    return links


@asynccontextmanager
async def served(started: Started) -> AsyncIterator[str]:
    """Serve slothpost where the local sources deliver to, and return the address of the page."""
    place = urlsplit(started.demo.settings.base_url)
    with closing(listen(str(place.hostname), place.port or 0)) as listening:
        serving = asyncio.create_task(serve(started.app, listening, works=False))
        await asyncio.sleep(0)
        yield links_of(started).sources_url
        signal.raise_signal(signal.SIGTERM)
        await serving


async def post(url: str, action: str, **fields: str) -> tuple[int, str]:
    """Send a form, and return the status and the text of the page that follows."""
    async with aiohttp.ClientSession() as session, session.post(f"{url}/{action}", data=fields) as answer:
        return answer.status, await answer.text()


async def product_named(started: Started, name: str) -> Product:
    return next(product for product in await started.app.products.list(DEMO_USER) if product.name == name)


async def titles(started: Started, product: Product) -> list[str]:
    return [activity.title for activity in (await started.app.activities.recent(DEMO_USER, product.id)).items]


async def browser(started: Started) -> PageClient:
    user = await started.app.users.get(DEMO_USER)
    assert user is not None
    return await page_client(started.app, user)


async def test_what_is_merged_released_and_deployed_there_becomes_activity(start: Start) -> None:
    async with start(THURSDAY) as started, served(started) as url:
        plainbill, steepwell = await product_named(started, "Plainbill"), await product_named(started, "Steepwell")
        status, page = await post(url, "merge", place=f"github-{plainbill.id}", title="Add a <dark> mode")
        assert (status, page.count("202 accepted")) == (200, 3), "a push, a pull request and a deployment"
        assert "Add a &lt;dark&gt; mode" in page
        status, page = await post(url, "put-in-store", place=f"appstore-{steepwell.id}", version="2.5", notes="- Iced tea")
        assert (status, page.count("202 accepted")) == (200, 1)
        await work(started.app)
        assert (await titles(started, plainbill))[0] == "Add a <dark> mode"
        assert "in the App Store" in (await titles(started, steepwell))[0]


async def test_a_deployment_of_no_product_is_unrouted_until_the_project_is_connected(start: Start) -> None:
    async with start(THURSDAY) as started, served(started) as url:
        steepwell = await product_named(started, "Steepwell")
        status, page = await post(url, "deploy", place=f"project-{WEBSITE.id}", title="Add a page about cold brew")
        assert (status, "202 kept: no product has this project" in page) == (200, True)
        assert len(await started.app.activities.unrouted(DEMO_USER)) == 3
        await started.app.connections.claim_vercel(DEMO_USER, steepwell.id, WEBSITE.id)
        await work(started.app)
        assert await started.app.activities.unrouted(DEMO_USER) == []
        assert "Add a page about cold brew" in await titles(started, steepwell)


async def test_a_new_product_is_connected_with_the_token_of_the_hint(start: Start) -> None:
    async with start(THURSDAY) as started, served(started) as url:
        steepwell = await product_named(started, "Steepwell")
        visitor = await browser(started)
        hint = (await visitor.get(f"/products/{steepwell.id}/connect/github")).text
        assert GITHUB_TOKEN in hint
        assert "cannot reach this address" not in hint
        repositories = await started.app.connections.github_repositories(GITHUB_TOKEN)
        assert SPARE_REPOSITORY in [repository.name for repository in repositories]
        new = (await visitor.post("/new-product", {"name": "Pocketlamp", "undecided": "hold"})).location.partition("?")[0]
        product = new.rpartition("/")[2]
        await visitor.post(f"/products/{product}/connect/github", {"token": GITHUB_TOKEN, "repository": SPARE_REPOSITORY})
        waiting = await visitor.get(f"/products/{product}/connect/github/status")
        assert '"is_live":false' in waiting.source
        status, page = await post(url, "test", place=f"github-{product}")
        assert (status, "200 the connection is live" in page) == (200, True)
        assert '"is_live":true' in (await visitor.get(f"/products/{product}/connect/github/status")).source


async def test_an_account_whose_access_has_ended_waits_to_be_connected_again(start: Start) -> None:
    async with start(THURSDAY) as started, served(started) as url:
        await post(url, "revoke", place="x")
        card = next(card for card in (await started.app.review.queue(DEMO_USER)).items if card.post.state == "drafted")
        assert card.post.channel == "x"
        await started.app.review.post_now(DEMO_USER, card.post.id, by="Demo")
        started.clock.advance(2)
        await work(started.app)
        held = (await started.app.review.card(DEMO_USER, card.post.id)).post
        assert (held.state, "must be connected again" in held.held) == ("approved", True)
    async with start(THURSDAY) as again:  # which connects it
        assert not [account.broken for account in await again.app.accounts.list(DEMO_USER) if account.broken]


async def test_the_first_page_leads_through_the_demo(start: Start) -> None:
    async with start(THURSDAY) as started:
        visitor, links = await browser(started), links_of(started)
        page = await visitor.get("/")
        assert "Approve the draft about Steepwell" in page.text
        (post_id,) = re.findall(r'Approve <a href="#post-([^"]+)"', page.source)
        assert f'id="post-{post_id}"' in page.source
        assert links.x_url in page.source
        assert links.sources_url in page.source
        assert "#hang" in (await visitor.get("/write")).text
        assert "two minutes" not in (await visitor.get("/week")).text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"host": "posts.example.com"}, 403),
    ],
)
async def test_other_sites_can_ship_nothing(start: Start, headers: dict[str, str], status: int) -> None:
    async with (
        start(THURSDAY) as started,
        aiohttp.ClientSession() as session,
        session.post(f"{links_of(started).sources_url}/revoke", data={"place": "x"}, headers=headers) as answer,
    ):
        assert answer.status == status


async def test_a_form_that_is_too_old_says_so(start: Start) -> None:
    async with start(THURSDAY) as started:
        assert await post(links_of(started).sources_url, "merge", place="github-gone", title="A") == (
            409, "this is connected otherwise by now: go back, and reload the page",
        )  # fmt: skip
