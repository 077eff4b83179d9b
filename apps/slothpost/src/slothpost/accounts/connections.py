"""Connects users' accounts on networks by OAuth, and says which channel posts with which of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime

from slothpost.accounts.account_changes import AccountChanges
from slothpost.accounts.pending_connections import PendingConnections
from slothpost.accounts.refresh_schedule import refresh_key, refresh_schedule
from slothpost.accounts.stored_tokens import StoredTokens
from slothpost.errors import InvalidField, NotAllowed, NotFound
from slothpost.model import NETWORK_NAMES, Account, Channel, ChannelName, Product
from slothpost.networks.network import Network, NetworkError, Networks, TokenPair
from slothpost.notices import Notices
from tickler import Tickler
from tickler.errors import ConditionFailed, ItemNotFound
from tickler.table import OpenTable, Transaction

Rearrange = Callable[[str], Awaitable[None]]


class AccountConnections:
    """The accounts of users. Each belongs to one user: if two connect the same one, each has tokens of their own.

    `rearrange` is called with the user after every change, and writes the schedules of their posts anew.
    """

    def __init__(self, t: Tickler, db: OpenTable, networks: Networks, notices: Notices, rearrange: Rearrange) -> None:
        self._t = t
        self._db = db
        self._networks = networks
        self._rearrange = rearrange
        self._pending = PendingConnections(t)
        self._changes = AccountChanges(t, db, notices)
        self._stored = StoredTokens(t)

    async def authorize_url(self, user: str, network: ChannelName, *, redirect_uri: str, product: str | None = None) -> str:
        """Return where to send the user, who comes back to `redirect_uri` with a state and a code.

        The account will be used for the channel of `product`, if there is one.
        """
        client = self._network(network)
        if product is not None:
            await self._check_product(user, product)
        state, pending = await self._pending.begin(user, network, product)
        return client.authorize_url(state=state, redirect_uri=redirect_uri, code_verifier=pending.verifier)

    async def finish(self, user: str, *, state: str, code: str, redirect_uri: str) -> Account:
        """Exchange a code for tokens, and store them with whom they are of.

        `InvalidField` unless this user has begun a connection with this state within ten minutes, and not finished it.
        `NotAllowed` with the network's words if it gives no tokens.
        """
        pending = await self._pending.take(user, state)
        network = self._network(pending.network)
        asked_at = self._changes.now()
        with _connecting():
            pair = await network.exchange(code, redirect_uri=redirect_uri, code_verifier=pending.verifier)
        account = await self._add(user, network, pair, asked_at)
        with suppress(NotFound):  # the product was deleted meanwhile
            if pending.product is not None:
                await self._set_account(user, pending.product, pending.network, account.id)
        await self._rearrange(user)
        return account

    async def add(self, user: str, network: ChannelName, pair: TokenPair) -> Account:
        """Connect an account with tokens that its network has just issued. `NotAllowed` if it does not accept them."""
        account = await self._add(user, self._network(network), pair, self._changes.now())
        await self._rearrange(user)
        return account

    async def list(self, user: str) -> list[Account]:
        return [account async for account in self._db.iterate(Account.key(user))]

    async def disconnect(self, user: str, account_id: str) -> None:
        """Delete an account with its tokens. Channels that post with it have none then."""
        account = await self._account(user, account_id)
        async for product in self._db.iterate(Product.of_user(user)):
            with suppress(ConditionFailed, ItemNotFound):  # it has another account
                channel = Channel.key.id(product.id, account.network)
                await self._db.update(channel, Channel.account.remove(), when=Channel.account == account_id)

        async def work(tx: Transaction) -> None:
            await self._t.schedules.delete(user, refresh_key(account_id), using=tx)
            tx.delete(account.key)

        await self._db.transact(work)
        await self._rearrange(user)

    async def use(self, user: str, product: str, channel: ChannelName, account_id: str | None) -> None:
        """Say which account a channel posts with; None for no account."""
        await self._set_account(user, product, channel, account_id)
        await self._rearrange(user)

    async def _set_account(self, user: str, product: str, channel: ChannelName, account_id: str | None) -> None:
        await self._check_product(user, product)
        id = Channel.key.id(product, channel)
        if account_id is None:
            await self._db.update(id, Channel.account.remove())
            return
        account = await self._account(user, account_id)
        if account.network != channel:
            raise InvalidField("account", f"@{account.handle} is on {NETWORK_NAMES[account.network]}: choose another account")
        await self._db.update(id, Channel.account.set(account_id))

    async def _add(self, user: str, network: Network, pair: TokenPair, asked_at: datetime) -> Account:
        """Store a new account, or new tokens of one that the user has already. What was broken is mended."""
        with _connecting():
            person = await network.whoami(pair.access)
        id = f"{network.name}:{person.remote_id}"
        attributes = self._stored.attributes(user, id, pair, asked_at)

        async def work(tx: Transaction) -> Account:
            stored = await tx.get(Account.key.id(user, id))
            account = Account(
                user=user,
                id=id,
                network=network.name,
                remote_id=person.remote_id,
                handle=person.handle,
                **attributes,
                connected_at=self._changes.now(),
                version=0 if stored is None else stored.version,
            )
            tx.put(account)
            if not network.refreshes_single_use:
                await self._t.schedules.put(refresh_schedule(account), using=tx)
            return account

        return await self._db.transact(work)

    async def _account(self, user: str, account_id: str) -> Account:
        account = await self._changes.read(user, account_id)
        if account is None:
            raise NotFound("account")
        return account

    async def _check_product(self, user: str, product_id: str) -> None:
        product = await self._db.get(Product.key.id(product_id))
        if product is None or product.user != user:
            raise NotFound("product")

    def _network(self, name: ChannelName) -> Network:
        network = self._networks.get(name)
        if network is None:
            detail = f"{NETWORK_NAMES[name]} is not set up in this installation: its operator adds an app's id and secret"
            raise InvalidField("network", detail)
        return network


@contextmanager
def _connecting() -> Iterator[None]:
    """Say in the network's words why an account was not connected."""
    try:
        yield
    except NetworkError as error:
        reason = str(error).rstrip(".")
        raise NotAllowed(f"the account was not connected: {reason}: connect it again") from None
