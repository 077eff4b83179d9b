"""Tokens that posts are sent with: refreshed by one, stored before they are used, and given up loudly."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from slothpost.accounts.access_tokens import AccessTokens, TokenBusy
from slothpost.accounts.account_changes import LEASE
from slothpost.model import Account
from slothpost.networks.network import Limited, NotSent, TokenRejected
from slothpost.standins.faults import Fault
from tickler import ManualClock, StoreUnavailable
from tickler.table import MISSING, OpenTable, evolve

from .desk import Desk

MINUTE = timedelta(minutes=1)
TOKEN = "/2/oauth2/token"  # the path
ALMOST_EXPIRED = timedelta(hours=1, minutes=55)


def refreshes(desk: Desk) -> int:
    return desk.x.calls.count(f"POST {TOKEN}")


async def is_accepted(desk: Desk, token: str) -> bool:
    try:
        return bool(await desk.networks["x"].whoami(token))
    except TokenRejected:
        return False


async def on_x(desk: Desk) -> Account:
    """Return an account on X, whose calls so far are forgotten."""
    account = await desk.connections.add("ada", "x", desk.x.issue_tokens("ada"))
    desk.x.calls.clear()
    return account


async def test_a_token_with_time_left_is_used_as_it_is(desk: Desk, clock: ManualClock) -> None:
    account = await on_x(desk)
    clock.advance(ALMOST_EXPIRED - MINUTE)
    assert await is_accepted(desk, await desk.tokens.get(account))
    assert refreshes(desk) == 0
    assert (await desk.stored(account)).version == account.version + 1


async def test_a_token_that_expires_within_five_minutes_is_refreshed_first(desk: Desk, clock: ManualClock) -> None:
    account = await on_x(desk)
    first = await desk.tokens.get(account)
    clock.advance(ALMOST_EXPIRED)
    token = await desk.tokens.get(account)
    assert token != first
    assert await is_accepted(desk, token)
    stored = await desk.stored(account)
    assert (stored.expires_at, stored.obtained_at, stored.refreshing_until) == (
        desk.now() + timedelta(hours=2),
        desk.now(),
        MISSING,
    )
    assert stored.connected_at != stored.obtained_at
    assert await desk.tokens.get(stored) == token
    assert refreshes(desk) == 1


async def test_who_has_read_the_account_before_a_refresh_gets_the_new_token(desk: Desk, clock: ManualClock) -> None:
    account = await on_x(desk)
    clock.advance(ALMOST_EXPIRED)
    assert await desk.tokens.get(account) == await desk.tokens.get(account)
    assert refreshes(desk) == 1


async def test_the_new_pair_is_stored_before_it_is_used(desk: Desk, clock: ManualClock) -> None:
    account = await on_x(desk)
    clock.advance(ALMOST_EXPIRED)
    token = await desk.tokens.get(account)
    restarted = AccessTokens(desk.t, desk.db, desk.networks, desk.notices)
    assert await restarted.get(await desk.stored(account)) == token


async def test_a_refresh_waits_until_nobody_uses_the_old_token(desk: Desk, clock: ManualClock) -> None:
    account = await on_x(desk)
    clock.advance(ALMOST_EXPIRED - timedelta(seconds=30))
    with pytest.raises(TokenBusy, match="is about to be refreshed") as busy:
        await desk.tokens.get(account)
    assert (busy.value.until, refreshes(desk)) == (desk.now() + timedelta(seconds=30), 0)
    clock.set(busy.value.until)
    assert await is_accepted(desk, await desk.tokens.get(account))


async def test_of_two_who_need_a_refresh_one_does_it_and_the_other_is_told_until_when(
    desk_anywhere: Desk, clock: ManualClock
) -> None:
    desk = desk_anywhere
    account = await on_x(desk)
    clock.advance(ALMOST_EXPIRED)
    hold = desk.x.faults.hold(on=TOKEN)
    first = asyncio.create_task(desk.tokens.get(account))
    async with asyncio.timeout(10):
        await hold.arrived.wait()
        with pytest.raises(TokenBusy, match="another process refreshes") as busy:
            await desk.tokens.get(account)
        assert busy.value.until == desk.now() + LEASE
        hold.release()
        token = await first
    assert await desk.tokens.get(account) == token
    assert refreshes(desk) == 1
    assert await is_accepted(desk, token)


async def test_of_many_at_the_same_instant_one_refreshes(desk_anywhere: Desk, clock: ManualClock) -> None:
    desk = desk_anywhere
    account = await on_x(desk)
    clock.advance(ALMOST_EXPIRED)
    outcomes = await asyncio.gather(*(desk.tokens.get(account) for _ in range(5)), return_exceptions=True)
    tokens = {outcome for outcome in outcomes if isinstance(outcome, str)}
    assert len(tokens) == 1
    assert all(isinstance(outcome, str | TokenBusy) for outcome in outcomes)
    assert refreshes(desk) == 1


@pytest.mark.parametrize("kind", ["hang", "drop", "cut", "garble"])
async def test_a_refresh_whose_answer_is_lost_breaks_the_connection_and_tells_once(
    desk: Desk, clock: ManualClock, kind: str
) -> None:
    account = await on_x(desk)
    clock.advance(ALMOST_EXPIRED)
    desk.x.faults.add(Fault(kind=kind, taken=True), on=TOKEN)  # type: ignore[arg-type]  # one of them
    with pytest.raises(TokenRejected, match="the old ones may be void"):
        await desk.tokens.get(account)
    stored = await desk.stored(account)
    assert "the old ones may be void" in str(stored.broken)
    assert stored.refreshing_until is MISSING
    assert not await desk.tokens.mark_broken(account, "once more")
    for each in (account, stored):
        with pytest.raises(TokenRejected):
            await desk.tokens.get(each)
    assert refreshes(desk) == 1
    (text,) = await desk.told()
    assert text.startswith("X: @ada must be connected again: X ")


async def test_a_refresh_that_x_refuses_breaks_the_connection(desk: Desk, clock: ManualClock) -> None:
    account = await on_x(desk)
    desk.x.revoke_all()
    clock.advance(ALMOST_EXPIRED)
    with pytest.raises(TokenRejected, match="Value passed for the token was invalid"):
        await desk.tokens.get(account)
    assert len(await desk.told()) == 1


async def test_a_replayed_refresh_token_breaks_the_connection(desk: Desk, clock: ManualClock) -> None:
    account = await on_x(desk)
    clock.advance(ALMOST_EXPIRED)
    await desk.tokens.get(account)
    version = (await desk.stored(account)).version
    await desk.db.put(evolve(account, version=version))  # a backup was restored
    with pytest.raises(TokenRejected):
        await desk.tokens.get(await desk.stored(account))
    assert (await desk.stored(account)).broken is not MISSING


@pytest.mark.parametrize("fault", [Fault(kind="fail"), Fault(kind="fail", status=307)])
async def test_a_refresh_that_x_did_not_do_is_tried_again_at_once(desk: Desk, clock: ManualClock, fault: Fault) -> None:
    account = await on_x(desk)
    clock.advance(ALMOST_EXPIRED)
    desk.x.faults.add(fault, on=TOKEN)
    with pytest.raises(NotSent):
        await desk.tokens.get(account)
    assert (await desk.stored(account)).refreshing_until is MISSING
    assert await is_accepted(desk, await desk.tokens.get(account))
    assert await desk.told() == []


async def test_a_limit_on_refreshes_says_until_when(desk: Desk, clock: ManualClock) -> None:
    account = await on_x(desk)
    clock.advance(ALMOST_EXPIRED)
    desk.x.faults.limit(reset_at=desk.now() + 3 * MINUTE, on=TOKEN)
    with pytest.raises(Limited, match="X asks to wait") as limited:
        await desk.tokens.get(account)
    assert limited.value.until == desk.now() + 3 * MINUTE
    assert (await desk.stored(account)).refreshing_until is MISSING


async def test_what_a_process_left_that_died_while_it_refreshed_is_taken_over(desk: Desk, clock: ManualClock) -> None:
    account = await on_x(desk)
    clock.advance(ALMOST_EXPIRED)
    hold = desk.x.faults.hold(on=TOKEN)
    dying = asyncio.create_task(desk.tokens.get(account))
    async with asyncio.timeout(10):
        await hold.arrived.wait()
    dying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await dying
    with pytest.raises(TokenBusy) as busy:
        await desk.tokens.get(account)
    clock.set(busy.value.until)
    assert await is_accepted(desk, await desk.tokens.get(account))
    hold.release()


async def test_an_account_that_is_disconnected_during_a_refresh_stays_deleted(desk: Desk, clock: ManualClock) -> None:
    account = await on_x(desk)
    clock.advance(ALMOST_EXPIRED)

    async def disconnect() -> None:
        await desk.connections.disconnect("ada", account.id)

    desk.x.faults.call_while_taking(disconnect, on=TOKEN)
    with pytest.raises(TokenBusy):
        await desk.tokens.get(account)
    with pytest.raises(TokenRejected, match="disconnected"):
        await desk.tokens.get(account)
    assert await desk.db.get(account.key) is None


async def test_an_account_that_is_connected_again_during_a_refresh_keeps_its_new_tokens(desk: Desk, clock: ManualClock) -> None:
    account = await on_x(desk)
    clock.advance(ALMOST_EXPIRED)

    async def connect() -> None:
        await desk.connections.add("ada", "x", desk.x.issue_tokens("ada"))

    desk.x.faults.call_while_taking(connect, on=TOKEN)
    with pytest.raises(TokenBusy, match="connected anew"):
        await desk.tokens.get(account)
    assert await is_accepted(desk, await desk.tokens.get(await desk.stored(account)))


async def test_what_is_said_of_earlier_tokens_does_not_break_a_new_connection(desk: Desk, clock: ManualClock) -> None:
    account = await on_x(desk)
    clock.advance(MINUTE)
    await desk.connections.add("ada", "x", desk.x.issue_tokens("ada"))
    assert not await desk.tokens.mark_broken(account, "Unauthorized")
    assert (await desk.stored(account)).broken is MISSING
    assert await desk.told() == []


async def test_a_connection_is_broken_once_and_its_user_is_told_once(desk: Desk) -> None:
    account = await on_x(desk)
    marked = await asyncio.gather(*(desk.tokens.mark_broken(account, "Unauthorized") for _ in range(3)))
    assert sorted(marked) == [False, False, True]
    assert (await desk.stored(account)).broken == "Unauthorized"
    assert await desk.told() == ["X: @ada must be connected again: Unauthorized"]


async def test_without_a_refresh_token_a_token_is_used_until_it_expires(desk: Desk, clock: ManualClock) -> None:
    account = await on_x(desk)
    account = await desk.db.update(account.key, Account.refresh_token.remove())
    clock.advance(timedelta(hours=2) - MINUTE)
    assert await is_accepted(desk, await desk.tokens.get(account))
    clock.advance(MINUTE)
    with pytest.raises(TokenRejected, match="expired"):
        await desk.tokens.get(account)


async def test_new_tokens_are_stored_although_the_store_is_away_for_a_moment(
    desk: Desk, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = await on_x(desk)
    clock.advance(ALMOST_EXPIRED)
    transact, failures = OpenTable.transact, iter([False, True])

    async def failing(self: OpenTable, work: object) -> object:
        if next(failures, False):
            raise StoreUnavailable("the database is locked")
        return await transact(self, work)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(OpenTable, "transact", failing)
    token = await desk.tokens.get(account)
    assert await desk.tokens.get(await desk.stored(account)) == token


async def test_tokens_of_another_user_cannot_be_used(desk: Desk) -> None:
    account = await on_x(desk)
    other = await desk.connections.add("eve", "x", desk.x.issue_tokens("ada"))
    swapped = evolve(other, access_token=account.access_token)  # somebody copied a row
    with pytest.raises(TokenRejected, match="cannot be decrypted"):
        await desk.tokens.get(swapped)
