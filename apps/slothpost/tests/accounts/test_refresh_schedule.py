"""Tokens of Threads, which a schedule refreshes between 30 and 50 days."""

from __future__ import annotations

from datetime import timedelta

import pytest

from slothpost.accounts.refresh_schedule import refresh_key, refresh_schedule
from slothpost.model import Account
from slothpost.standins.faults import Fault
from tickler import ManualClock
from tickler.table import MISSING, evolve
from tickler.testing import Played, play

from .desk import Desk

DAY = timedelta(days=1)
PATH = "/refresh_access_token"


async def on_threads(desk: Desk) -> Account:
    return await desk.connections.add("ada", "threads", desk.threads.issue_tokens("ada"))


async def for_days(desk: Desk, clock: ManualClock, days: float) -> Played:
    return await play(desk.t, clock, until=timedelta(days=days))


def refreshes(desk: Desk) -> int:
    return desk.threads.calls.count(f"GET {PATH}")


async def is_accepted(desk: Desk, account: Account) -> bool:
    return bool(await desk.networks["threads"].whoami(await desk.tokens.get(await desk.stored(account))))


async def test_tokens_are_refreshed_every_thirty_days_for_a_year(desk: Desk, clock: ManualClock) -> None:
    account = await on_threads(desk)
    played = await for_days(desk, clock, 365)
    assert [entry.answer for entry in played.of("ada", refresh_key(account.id)).delivered] == ["refreshed"] * 12
    assert await is_accepted(desk, account)
    assert await desk.told() == []


async def test_tokens_that_live_shorter_are_refreshed_at_half_their_life(desk: Desk) -> None:
    account = await on_threads(desk)
    for lifetime, expected in ((DAY * 10, DAY * 5), (DAY, timedelta(hours=25)), (DAY * 60, DAY * 30)):
        lives = evolve(account, expires_at=account.obtained_at + lifetime)
        assert refresh_schedule(lives).when.upcoming(1, after=account.obtained_at) == [account.obtained_at + expected]
    assert refresh_schedule(evolve(account, expires_at=MISSING)).when.upcoming(1, after=account.obtained_at) == [
        account.obtained_at + DAY * 30
    ]


@pytest.mark.parametrize("fault", [Fault(kind="fail"), Fault(kind="limit"), Fault(kind="garble")])
async def test_a_refresh_that_fails_is_tried_again_for_weeks(desk: Desk, clock: ManualClock, fault: Fault) -> None:
    account = await on_threads(desk)
    desk.threads.faults.add(fault, 40, on=PATH)
    await for_days(desk, clock, 39)
    assert (await desk.stored(account)).obtained_at == account.obtained_at
    await for_days(desk, clock, 3)
    stored = await desk.stored(account)
    assert timedelta(days=40) - timedelta(hours=1) < stored.obtained_at - account.obtained_at < timedelta(days=41)
    assert await desk.told() == []
    await for_days(desk, clock, 20)
    assert await is_accepted(desk, account)


async def test_a_token_that_cannot_be_refreshed_until_it_expires_is_given_up_once(desk: Desk, clock: ManualClock) -> None:
    account = await on_threads(desk)
    desk.threads.faults.fail_before_taking(1_000, on=PATH)
    played = await for_days(desk, clock, 61)
    stored = await desk.stored(account)
    assert "its token expires, and could not be refreshed: Threads answered 503" in str(stored.broken)
    assert len(await desk.told()) == 1
    assert not played.dead
    tried = refreshes(desk)
    await for_days(desk, clock, 20)
    assert (len(await desk.told()), refreshes(desk)) == (1, tried)


async def test_a_refresh_that_threads_refuses_breaks_the_connection_at_once(desk: Desk, clock: ManualClock) -> None:
    account = await on_threads(desk)
    desk.threads.revoke_all()
    await for_days(desk, clock, 31)
    (text,) = await desk.told()
    assert text.startswith("Threads: @ada must be connected again: Threads no longer accepts this connection")
    played = await for_days(desk, clock, 30)
    assert refreshes(desk) == 1
    (entry,) = played.of("ada", refresh_key(account.id)).delivered
    assert "nothing to do: the account must be connected again" in str(entry.answer)


async def test_connecting_again_begins_anew(desk: Desk, clock: ManualClock) -> None:
    account = await on_threads(desk)
    await for_days(desk, clock, 20)
    await on_threads(desk)
    await for_days(desk, clock, 29.9)
    assert refreshes(desk) == 0
    await for_days(desk, clock, 0.2)
    assert refreshes(desk) == 1
    assert (await desk.stored(account)).broken is MISSING


async def test_an_account_that_is_disconnected_is_not_refreshed(desk: Desk, clock: ManualClock) -> None:
    account = await on_threads(desk)
    await desk.connections.disconnect("ada", account.id)
    assert await desk.t.schedules.get("ada", refresh_key(account.id)) is None
    await for_days(desk, clock, 90)
    assert refreshes(desk) == 0
    assert await desk.tokens.refresh_due("ada", account.id) == "nothing to do: the account was disconnected"


async def test_an_account_on_x_has_no_schedule(desk: Desk) -> None:
    account = await desk.connections.add("ada", "x", desk.x.issue_tokens("ada"))
    assert await desk.t.schedules.get("ada", refresh_key(account.id)) is None
    assert (await desk.tokens.refresh_due("ada", account.id)).startswith("nothing to do")


async def test_a_token_that_was_just_refreshed_is_left_alone(desk: Desk, clock: ManualClock) -> None:
    account = await on_threads(desk)
    clock.advance(DAY * 30)
    done = [await desk.tokens.refresh_due("ada", account.id) for _ in range(2)]
    assert done == ["refreshed", "nothing to do: the token is new"]


async def test_a_token_that_expired_while_nothing_ran_is_given_up(desk: Desk, clock: ManualClock) -> None:
    account = await on_threads(desk)
    clock.advance(DAY * 61)
    assert "must be connected again: its token has expired" in await desk.tokens.refresh_due("ada", account.id)
    assert len(await desk.told()) == 1
    assert refreshes(desk) == 0
