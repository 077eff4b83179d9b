"""What decides whether a channel may draft and publish: its product, its user, its account."""

from __future__ import annotations

from typing import Any

import msgspec

from slothpost.errors import NotFound
from slothpost.model import Account, Channel, ChannelName, Post, Product, User
from tickler.table import MISSING, ItemId, OpenTable, Transaction


class ChannelState(msgspec.Struct, frozen=True):
    """A channel with everything that holds it up or lets it go."""

    user: User
    product: Product
    channel: Channel
    account: Account | None

    @property
    def pause_reason(self) -> str | None:
        """Say what is paused, the widest first; None if nothing is."""
        for paused, what in (
            (self.user.paused, "your account"),
            (self.product.paused, "this product"),
            (self.channel.paused, "this channel"),
        ):
            if paused:
                return f"{what} is paused"
        return None

    @property
    def hold_reason(self) -> str | None:
        """Say why nothing can be published now: a pause, or an account that is missing or has to be connected again."""
        if self.pause_reason is not None:
            return self.pause_reason
        if self.account is None:
            return "no account is connected to this channel"
        if self.account.broken is not MISSING:
            return f"@{self.account.handle} must be connected again: {self.account.broken}"
        return None


class Circumstances:
    """Reads the state of channels. Products and channels of other users are not found."""

    def __init__(self, db: OpenTable) -> None:
        self._db = db

    async def of_post(self, post: Post, tx: Transaction | None = None) -> ChannelState:
        return await self.of_channel(post.user, post.product, post.channel, tx)

    async def of_channel(self, user_id: str, product_id: str, name: ChannelName, tx: Transaction | None = None) -> ChannelState:
        """Read the state. In a transaction, it must still be the same when that commits."""
        ids: list[ItemId[Any]] = [User.key.id(user_id), Product.key.id(product_id), Channel.key.id(product_id, name)]
        user, product, channel = await self._db.get_many(ids) if tx is None else [await tx.get(id) for id in ids]
        if user is None or product is None or channel is None or product.user != user_id:
            raise NotFound("channel")
        account = None
        if channel.account is not MISSING:
            account = await (self._db if tx is None else tx).get(Account.key.id(user_id, channel.account))
        return ChannelState(user, product, channel, account)

    async def product(self, user_id: str, product_id: str) -> Product:
        """Return a product of a user; `NotFound` also if it is somebody else's."""
        product = await self._db.get(Product.key.id(product_id))
        if product is None or product.user != user_id:
            raise NotFound("product")
        return product
