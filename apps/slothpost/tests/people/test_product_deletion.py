"""A product is deleted with everything that belongs to it."""

from __future__ import annotations

import pytest

from installation import Installation, berlin
from slothpost.errors import NotAllowed, NotFound
from slothpost.model import Post
from slothpost.people.products import ProductChanges

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
    await here.app.product_deletion.delete("ada", product.id)


async def test_products_are_listed_the_oldest_first(here: Installation) -> None:
    names = ["Kettle", "Anvil", "Teapot"]
    for name in names:
        await here.a_user()
        await here.app.products.create("ada", ProductChanges(name=name))
        here.clock.advance(60)
    assert [product.name for product in await here.app.products.list("ada")] == names
