"""Connecting accounts by OAuth, and choosing which channel posts with which."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import get_args
from urllib.parse import parse_qs, urlsplit

import pytest

import tickler
from slothpost.accounts.connections import AccountConnections
from slothpost.errors import InvalidField, NotAllowed, NotFound
from slothpost.model import Account, ChannelName
from slothpost.networks.network import NetworkError
from tickler import InvalidInput, ManualClock
from tickler.table import MISSING

from .desk import BACK, Desk

NETWORKS = get_args(ChannelName)


@pytest.mark.parametrize("network", NETWORKS)
async def test_who_consents_has_an_account(desk: Desk, network: ChannelName) -> None:
    account = await desk.connect(network)
    assert (account.user, account.network, account.handle) == ("ada", network, "ada")
    assert account.id == f"{network}:{account.remote_id}"
    assert [each.id for each in await desk.connections.list("ada")] == [account.id]
    token = await desk.tokens.get(account)
    assert (await desk.networks[network].whoami(token)).remote_id == account.remote_id
    assert desk.rearranged == ["ada"]


@pytest.mark.parametrize("network", NETWORKS)
async def test_tokens_are_encrypted_at_rest(desk: Desk, network: ChannelName) -> None:
    account = await desk.stored(await desk.connect(network))
    token = await desk.tokens.get(account)
    assert token not in repr(account)
    assert (account.refresh_token is MISSING) == (network == "threads")


async def test_a_consent_url_has_a_challenge_and_not_the_verifier(desk: Desk) -> None:
    urls = [await desk.connections.authorize_url("ada", "x", redirect_uri=BACK) for _ in range(2)]
    queries = [parse_qs(urlsplit(url).query) for url in urls]
    assert queries[0]["code_challenge"] != queries[1]["code_challenge"]
    assert queries[0]["state"] != queries[1]["state"]
    assert queries[0]["code_challenge_method"] == ["S256"]
    (records, *_) = [record.value for record in await desk.t.records.list("slothpost-connection")]
    assert isinstance(records, dict)
    assert queries[0]["state"][0] not in str(records)
    assert len(records["verifier"]) > 86  # encrypted


async def refused(desk: Desk, user: str, state: str, code: str) -> InvalidField:
    with pytest.raises(InvalidField, match="begin it again") as error:
        await desk.connections.finish(user, state=state, code=code, redirect_uri=BACK)
    assert error.value.field == "state"
    assert await desk.connections.list(user) == []
    return error.value


async def test_a_state_works_once(desk: Desk) -> None:
    state, code = await desk.consent("x")
    account = await desk.connections.finish("ada", state=state, code=code, redirect_uri=BACK)
    await desk.connections.disconnect("ada", account.id)
    await refused(desk, "ada", state, code)


async def test_of_two_who_come_back_at_once_one_is_connected(desk: Desk) -> None:
    state, code = await desk.consent("x")
    both = [desk.connections.finish("ada", state=state, code=code, redirect_uri=BACK) for _ in range(2)]
    outcomes = await asyncio.gather(*both, return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Account", "InvalidField"]
    assert desk.x.calls.count("POST /2/oauth2/token") == 1


async def test_a_state_of_another_user_is_refused_and_stays_theirs(desk: Desk) -> None:
    state, code = await desk.consent("x")
    await refused(desk, "eve", state, code)
    await desk.connections.finish("ada", state=state, code=code, redirect_uri=BACK)


@pytest.mark.parametrize("state", ["", "guessed", "\ud800"])
async def test_a_state_that_nobody_was_given_is_refused(desk: Desk, state: str) -> None:
    await refused(desk, "ada", state, "code")


async def test_a_state_is_forgotten_after_ten_minutes(desk: Desk, clock: ManualClock) -> None:
    state, code = await desk.consent("threads")
    clock.advance(timedelta(minutes=10))
    await refused(desk, "ada", state, code)


async def test_a_code_that_is_too_old_connects_nothing_and_says_so(desk: Desk, clock: ManualClock) -> None:
    state, code = await desk.consent("x")
    clock.advance(30)
    with pytest.raises(NotAllowed, match=r"was not connected: .*authorization code was invalid: connect it again"):
        await desk.connections.finish("ada", state=state, code=code, redirect_uri=BACK)
    assert await desk.connections.list("ada") == []


@pytest.mark.parametrize("network", NETWORKS)
async def test_a_wrong_code_connects_nothing(desk: Desk, network: ChannelName) -> None:
    state, _ = await desk.consent(network)
    with pytest.raises(NotAllowed, match="was not connected"):
        await desk.connections.finish("ada", state=state, code="guessed", redirect_uri=BACK)


@pytest.mark.parametrize("path", ["/2/oauth2/token", "/2/users/me"])
async def test_a_network_that_fails_meanwhile_connects_nothing(desk: Desk, path: str) -> None:
    desk.x.faults.fail_before_taking(on=path)
    with pytest.raises(NotAllowed, match="X answered 503"):
        await desk.connect("x")
    assert await desk.connections.list("ada") == []
    await desk.connect("x")


async def test_a_network_without_credentials_cannot_be_connected(desk: Desk) -> None:
    connections = desk.connections_to({"x": desk.networks["x"]})
    with pytest.raises(InvalidField, match="Threads is not set up in this installation"):
        await connections.authorize_url("ada", "threads", redirect_uri=BACK)


async def test_without_a_key_nobody_is_sent_to_a_network(desk: Desk, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TICKLER_KEY")
    async with tickler.connect("sqlite://", clock=clock) as t:
        connections = AccountConnections(t, desk.db, desk.networks, desk.notices, desk.rearrange)
        with pytest.raises(InvalidInput, match="there is no key"):
            await connections.authorize_url("ada", "x", redirect_uri=BACK)


async def test_connecting_again_replaces_the_tokens_and_mends_the_account(desk: Desk, clock: ManualClock) -> None:
    account = await desk.connect("x")
    desk.x.revoke_all()
    await desk.tokens.mark_broken(account, "Unauthorized")
    clock.advance(60)
    again = await desk.connect("x")
    assert (again.id, again.broken) == (account.id, MISSING)
    assert len(await desk.connections.list("ada")) == 1
    assert (await desk.networks["x"].whoami(await desk.tokens.get(again))).handle == "ada"


async def test_two_users_of_one_account_have_tokens_of_their_own(desk: Desk) -> None:
    own, others = await desk.connect("x", "ada", handle="tea"), await desk.connect("x", "eve", handle="tea")
    assert own.id == others.id
    assert await desk.tokens.get(own) != await desk.tokens.get(others)
    await desk.connections.disconnect("eve", others.id)
    assert [account.id for account in await desk.connections.list("ada")] == [own.id]
    assert (await desk.networks["x"].whoami(await desk.tokens.get(own))).handle == "tea"


async def test_an_account_that_is_connected_for_a_product_is_used_there(desk: Desk) -> None:
    await desk.product()
    account = await desk.connect("threads", product="teapot")
    assert await desk.account_of("teapot", "threads") == account.id
    assert await desk.account_of("teapot", "x") is MISSING


async def test_a_product_that_was_deleted_meanwhile_does_not_matter(desk: Desk) -> None:
    product = await desk.product()
    state, code = await desk.consent("x", product="teapot")
    await desk.db.delete(product.key)
    account = await desk.connections.finish("ada", state=state, code=code, redirect_uri=BACK)
    assert [each.id for each in await desk.connections.list("ada")] == [account.id]


async def test_a_product_of_another_user_cannot_be_named(desk: Desk) -> None:
    await desk.product("kettle", "eve")
    with pytest.raises(NotFound, match="no such product"):
        await desk.connections.authorize_url("ada", "x", redirect_uri=BACK, product="kettle")


async def test_a_channel_posts_with_the_account_that_was_chosen_or_with_none(desk: Desk) -> None:
    await desk.product()
    account = await desk.connect("x")
    desk.rearranged.clear()
    await desk.connections.use("ada", "teapot", "x", account.id)
    assert await desk.account_of("teapot", "x") == account.id
    await desk.connections.use("ada", "teapot", "x", None)
    assert await desk.account_of("teapot", "x") is MISSING
    assert desk.rearranged == ["ada", "ada"]


async def test_accounts_and_products_of_others_are_not_found(desk: Desk) -> None:
    await desk.product()
    await desk.product("kettle", "eve")
    own, others = await desk.connect("x"), await desk.connect("x", "eve")
    for user, product, account in (("ada", "kettle", own.id), ("ada", "teapot", others.id), ("eve", "teapot", others.id)):
        with pytest.raises(NotFound):
            await desk.connections.use(user, product, "x", account)
    with pytest.raises(NotFound):
        await desk.connections.disconnect("ada", others.id)
    assert len(await desk.connections.list("eve")) == 1


async def test_a_channel_takes_accounts_of_its_own_network_only(desk: Desk) -> None:
    await desk.product()
    account = await desk.connect("threads")
    with pytest.raises(InvalidField, match="@ada is on Threads: choose another account"):
        await desk.connections.use("ada", "teapot", "x", account.id)


async def test_disconnecting_deletes_the_tokens_and_frees_the_channels(desk: Desk) -> None:
    for id in ("teapot", "kettle"):
        await desk.product(id)
    account, other = await desk.connect("x", handle="tea"), await desk.connect("x", handle="cup")
    await desk.connections.use("ada", "teapot", "x", account.id)
    await desk.connections.use("ada", "kettle", "x", other.id)
    desk.rearranged.clear()
    await desk.connections.disconnect("ada", account.id)
    assert await desk.db.get(account.key) is None
    assert await desk.account_of("teapot", "x") is MISSING
    assert await desk.account_of("kettle", "x") == other.id
    assert desk.rearranged == ["ada"]


async def test_tokens_that_the_network_does_not_accept_are_not_added(desk: Desk) -> None:
    pair = desk.x.issue_tokens("ada")
    desk.x.revoke_all()
    with pytest.raises(NotAllowed, match="was not connected") as refused:
        await desk.connections.add("ada", "x", pair)
    assert not isinstance(refused.value.__cause__, NetworkError)
    assert [each async for each in desk.db.iterate(Account.key("ada"))] == []
