"""Deletes a product with everything that belongs to it."""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import Any, get_args

from slothpost.errors import NotAllowed
from slothpost.model import Activity, Channel, Post, Product, Slot, Source
from slothpost.planning.circumstances import Circumstances
from slothpost.planning.plans import CHANNELS, Plans
from slothpost.posts.post_writer import PostWriter
from slothpost.sources.connections import Connections
from tickler.table import ItemId, OpenTable

BATCH = 200


class ProductDeletion:
    """What is out on a network stays there. Deleting may be repeated after an interruption: the product goes last."""

    def __init__(self, db: OpenTable, plans: Plans, posts: PostWriter, connections: Connections) -> None:
        self._db = db
        self._plans = plans
        self._posts = posts
        self._connections = connections
        self._circumstances = Circumstances(db)

    async def delete(self, user: str, id: str) -> None:
        """Delete a product; `NotAllowed` while one of its posts is being published."""
        product = await self._circumstances.product(user, id)
        await self._plans.pause_product(user, id, paused=True)  # so that nothing begins from now on
        publishing = await self._publishing(id)
        if publishing is not None:
            await self._plans.pause_product(user, id, paused=product.paused)
            raise NotAllowed(f"a post is being published since {publishing.due_at:%H:%M} UTC: try again in a minute")
        for source in get_args(Source):
            await self._connections.disconnect(user, id, source)
        for name in CHANNELS:
            await self._plans.set_plan(user, id, name, {})
        await self._delete_posts(user, id)
        await self._delete_all(activity.key async for activity in self._db.iterate(Activity.key(id)))
        await self._delete_all(slot.key async for slot in self._db.iterate(Slot.key(id)))
        async with self._db.transaction() as tx:
            for name in CHANNELS:
                tx.delete(Channel.key.id(id, name))
            tx.delete(Product.key.id(id), when=Product.user == user)
        await self._delete_posts(user, id)  # drafts that began before it was paused; without its channels there are no more

    async def _publishing(self, product: str) -> Post | None:
        for name in CHANNELS:
            async for post in self._db.iterate(Post.of_channel(product, name), where=Post.state == "publishing"):
                return post
        return None

    async def _delete_posts(self, user: str, product: str) -> None:
        for name in CHANNELS:
            async for post in self._db.iterate(Post.of_channel(product, name)):
                await self._posts.delete(user, post.id)

    async def _delete_all(self, ids: AsyncIterable[ItemId[Any]]) -> None:
        batch: list[ItemId[Any]] = []
        async for id in ids:
            batch.append(id)
            if len(batch) == BATCH:
                await self._db.delete_many(batch)
                batch = []
        await self._db.delete_many(batch)
