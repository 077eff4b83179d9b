"""One user cannot fill the store, hold up the others, or spend what the operator pays for."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest
from page_client import PageClient, page_client

from installation import Installation
from slothpost.drafting import drafts
from slothpost.errors import NotAllowed
from slothpost.model import Product, User
from slothpost.people import products
from slothpost.people.products import ProductChanges
from slothpost.people.users import UserChanges
from slothpost.quotas import DELIVERIES, REDRAFTS, WRITTEN_POSTS
from slothpost.standins.github_repository import LocalRepository
from slothpost.web.app import create_app
from slothpost.web.large_bodies import MAX_HELD

PATIENCE_S = 0.5  # in which a text of any length is counted


@pytest.fixture
async def ada(here: Installation) -> PageClient:
    return await page_client(here.app, await here.a_user())


async def test_a_text_of_a_megabyte_is_counted_as_fast_as_one_that_is_kept(here: Installation, ada: PageClient) -> None:
    draft = await here.a_draft(await here.a_channel({"tue": "09:00"}))
    text = "x.com " * 150_000
    for path in (f"/posts/{draft.id}/check", "/write/check", "/write"):
        began = time.perf_counter()
        answer = await ada.post(path, {"text": text, "channel": "x", "product": draft.product}, x_fragment="page")
        assert answer.status in (200, 422)
        assert time.perf_counter() - began < PATIENCE_S, path


async def test_a_user_has_so_many_products_and_no_more(here: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "MAX_PRODUCTS", 2)
    for _ in range(2):
        await here.a_product()
    with pytest.raises(NotAllowed, match="you have 2 products"):
        await here.a_product()
    await here.a_product("bob")


async def test_a_user_has_so_many_posts_that_wait_and_no_more(
    here: Installation, ada: PageClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drafts, "MAX_WAITING", 3)
    product = await here.a_channel({"tue": "09:00"})
    written = [await here.a_draft(product) for _ in range(3)]
    with pytest.raises(NotAllowed, match="you have 3 posts that wait"):
        await here.a_draft(product)
    refused = await ada.post("/write", {"product": product.id, "channel": "x", "text": "One more"})
    assert (refused.status, refused.value("text"), "3 posts that wait" in refused.text) == (422, "One more", True)
    await here.until(written[0].slot_at + timedelta(minutes=1))
    with pytest.raises(NotAllowed, match="you have 3 posts that wait"):  # the first is held, and waits for its author
        await here.a_draft(product)
    await here.app.review.reject("ada", written[0].id, by="Ada")
    await here.a_draft(product)


async def test_posts_are_written_no_faster_than_people_do(here: Installation) -> None:
    product = await here.a_product()

    async def write() -> None:
        post = await here.app.drafts.write("ada", product.id, "x", "A", by="Ada", slot_at=here.now() + timedelta(seconds=1))
        await here.app.review.reject("ada", post.id, by="Ada")

    for _ in range(WRITTEN_POSTS.burst):
        await write()
    with pytest.raises(NotAllowed, match="many posts within an hour"):
        await write()
    here.clock.advance(timedelta(seconds=3600 / WRITTEN_POSTS.an_hour + 1))
    await write()


async def test_drafts_are_written_anew_no_oftener_than_somebody_reads_them(here: Installation) -> None:
    product = await here.a_channel({"tue": "09:00"})
    await here.an_activity(product)
    await here.for_(timedelta(hours=14))
    (post,) = await here.posts(product)
    for number in range(REDRAFTS.burst):
        await here.app.drafts.regenerate("ada", post.id, by="Ada", hint=f"take {number}")
    with pytest.raises(NotAllowed, match="many drafts written anew"):
        await here.app.drafts.regenerate("ada", post.id, by="Ada")
    here.clock.advance(timedelta(minutes=2))
    await here.app.drafts.regenerate("ada", post.id, by="Ada")


async def test_a_product_takes_no_flood_of_deliveries_and_others_are_not_held_up(here: Installation) -> None:
    signers, secrets = [], []
    for user in ("eve", "ada"):
        product = await here.a_product(user)
        setup = await here.app.connections.setup(user, product.id, "github")
        signers.append(product.id)
        secrets.append(setup.secret or "")
    repository = LocalRepository("eve/flood", private=False, now=here.now)

    async def deliver(number: int) -> int:
        signed = repository.event(secrets[number], "sponsorship")
        return (await here.app.webhooks.github(signers[number], signed.headers, signed.body)).status

    assert {await deliver(0) for _ in range(DELIVERIES.burst)} == {202}
    assert await deliver(0) == 429
    assert await deliver(1) == 202
    here.clock.advance(timedelta(seconds=1))
    assert await deliver(0) == 202


async def test_a_form_that_is_saved_does_not_resume_what_was_paused_meanwhile(
    here: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    product, db = await here.a_product(), here.app.db
    transact = db.transact

    async def transact_later(work: Any) -> Any:
        """Let the other tab be faster."""
        await db.update(product.key, Product.paused.set(True))
        await db.update(User.key.id("ada"), User.paused.set(True))
        return await transact(work)

    monkeypatch.setattr(type(db), "transact", lambda self, work: transact_later(work))
    changed = await here.app.products.update("ada", product.id, ProductChanges(name="Kettle"))
    assert (changed.name, changed.paused) == ("Kettle", True)
    user, _ = await here.app.users.update("ada", UserChanges(name="Ada L."))
    assert (user.name, user.paused) == ("Ada L.", True)


async def test_strangers_hold_only_a_few_large_bodies_at_once(here: Installation) -> None:
    app, sent, piece = create_app(here.app), asyncio.Event(), b" " * 100_000
    reading: list[asyncio.Task[int]] = []

    async def post(headers: list[tuple[bytes, bytes]], *, waits: bool) -> int:
        statuses: list[int] = []
        scope: Any = {
            "type": "http", "method": "POST", "path": "/webhooks/github/x1", "raw_path": b"/webhooks/github/x1",
            "query_string": b"", "headers": [(b"host", b"localhost"), *headers], "client": ("203.0.113.7", 1),
        }  # fmt: skip

        async def receive() -> Any:
            if waits:
                await sent.wait()
            return {"type": "http.request", "body": piece, "more_body": False}

        async def send(message: Any) -> None:
            statuses.extend([message["status"]] if message["type"] == "http.response.start" else [])

        await app(scope, receive, send)
        return statuses[0]

    large = [(b"content-length", b"20000000")]
    reading += [asyncio.create_task(post(large if number % 2 else [], waits=True)) for number in range(MAX_HELD)]
    await asyncio.sleep(0)
    assert await post(large, waits=False) == 503
    assert await post([], waits=False) == 503, "its length is not announced"
    assert await post([(b"content-length", b"100000")], waits=False) == 401, "what is small is read, and has no signature"
    sent.set()
    assert set(await asyncio.gather(*reading)) == {401}
    assert await post(large, waits=False) == 401
