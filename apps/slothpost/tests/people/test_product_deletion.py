"""A product is deleted with everything that belongs to it."""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import Any

import pytest

from installation import Installation, berlin
from slothpost.drafting.drafter import Draft, DraftRequest
from slothpost.drafting.drafters import Drafters
from slothpost.errors import NotAllowed, NotFound
from slothpost.model import Post
from slothpost.people.product_deletion import ProductDeletion
from slothpost.people.products import ProductChanges
from tickler.table import ItemId

PLAN = {"tue": "09:00", "thu": "09:00"}


async def test_nothing_of_a_deleted_product_is_left_and_nothing_of_another_is_gone(anywhere: Installation) -> None:
    app = anywhere.app
    product, other = await anywhere.a_channel(PLAN), await anywhere.a_channel(PLAN, name="threads")
    await anywhere.an_activity(product)
    await app.connections.setup("ada", product.id, "github")
    await anywhere.until(berlin("2027-03-01 21:01"))
    (drafted,) = await anywhere.posts(product)
    await app.review.approve("ada", drafted.id, by="Ada")
    await anywhere.a_draft(product, "Written by hand.")
    kept = await anywhere.a_draft(other, "Of the other one.", "threads")
    await app.product_deletion.delete("ada", product.id)
    with pytest.raises(NotFound):
        await app.products.get("ada", product.id)
    assert [each.id for each in await app.products.list("ada")] == [other.id]
    assert [post.id async for post in app.db.iterate(Post.by_slot("ada"))] == [kept.id]
    assert (await anywhere.slots(product), await anywhere.posts(product)) == ([], [])
    owned = [schedule.key for schedule in (await app.t.schedules.list(owner="ada")).items]
    assert not [key for key in owned if product.id in key or drafted.id in key]
    await anywhere.until(berlin("2027-03-05 12:00"))
    assert anywhere.x.posts == []
    with pytest.raises(NotFound):
        await app.product_deletion.delete("ada", product.id)


async def test_a_product_of_somebody_else_is_not_deleted(here: Installation) -> None:
    product = await here.a_channel(PLAN)
    await here.a_user("eve")
    with pytest.raises(NotFound):
        await here.app.product_deletion.delete("eve", product.id)
    assert (await here.app.plans.view("ada", product.id, "x")).next_slot == berlin("2027-03-02 09:00")


async def test_a_product_is_not_deleted_while_it_publishes(here: Installation) -> None:
    product = await here.a_channel(PLAN)
    post = await here.app.review.approve("ada", (await here.a_draft(product)).id, by="Ada")
    refused: list[str] = []

    async def delete() -> None:
        with pytest.raises(NotAllowed) as error:
            await here.app.product_deletion.delete("ada", product.id)
        refused.append(str(error.value))

    here.x.faults.call_while_taking(delete)
    await here.until(berlin("2027-03-02 09:01"))
    assert refused == ["a post is being published since 08:00 UTC: try again in a minute"]
    assert (await here.post(post)).state == "published"
    assert not (await here.app.products.get("ada", product.id)).paused
    await here.app.product_deletion.delete("ada", product.id)


async def test_a_draft_that_is_written_while_its_product_is_deleted_is_not_left(
    anywhere: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A language model may take a minute."""
    product = await anywhere.a_channel(PLAN)
    await anywhere.an_activity(product)
    write = Drafters.draft

    async def delete_meanwhile(self: Drafters, request: DraftRequest) -> Draft:
        await anywhere.app.product_deletion.delete("ada", product.id)
        return await write(self, request)

    monkeypatch.setattr(Drafters, "draft", delete_meanwhile)
    await anywhere.until(berlin("2027-03-02 12:00"))
    assert await anywhere.posts(product) == []
    assert (await anywhere.app.review.queue("ada")).items == []


async def test_a_draft_that_is_stored_while_its_product_is_deleted_is_deleted_too(
    here: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    product = await here.a_channel(PLAN)
    await here.an_activity(product)
    delete_all = ProductDeletion._delete_all

    async def draft_before(self: ProductDeletion, ids: AsyncIterable[ItemId[Any]]) -> None:
        monkeypatch.undo()
        at = berlin("2027-03-04 12:00")
        await here.app.drafts.write("ada", product.id, "x", "Written by hand meanwhile.", by="Ada", slot_at=at)
        assert len((await here.app.review.queue("ada")).items) == 1
        await delete_all(self, ids)

    monkeypatch.setattr(ProductDeletion, "_delete_all", draft_before)
    await here.app.product_deletion.delete("ada", product.id)
    assert await here.posts(product) == []
    assert (await here.app.t.schedules.list(owner="ada", key_prefix="decide/")).items == []


async def test_products_are_listed_the_oldest_first(here: Installation) -> None:
    names = ["Kettle", "Anvil", "Teapot"]
    for name in names:
        await here.a_user()
        await here.app.products.create("ada", ProductChanges(name=name))
        here.clock.advance(60)
    assert [product.name for product in await here.app.products.list("ada")] == names
