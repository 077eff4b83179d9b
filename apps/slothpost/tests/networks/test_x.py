"""The client of X against a local X: each documented answer, and none."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import aiohttp
import msgspec
import pytest

import tickler
from slothpost.networks.network import Limited, NotSent, Refused, TokenRejected, Unclear
from slothpost.networks.x import XNetwork, XSettings
from slothpost.standins.faults import Fault
from slothpost.standins.x import XStandIn
from tickler import ManualClock

from .network_accounts import XAccount

MINUTE = timedelta(minutes=1)
TOKEN = "/2/oauth2/token"  # the path


async def test_a_post_is_out_at_the_address_that_is_returned(on_x: XAccount) -> None:
    out = await on_x.publish("Tea <timers> now survive a restart.")
    assert [(post.id, post.url, post.handle) for post in on_x.x.posts] == [(out.remote_id, out.url, "ada")]
    async with aiohttp.ClientSession() as browser, browser.get(out.url) as page:
        assert "Tea &lt;timers&gt; now survive a restart." in await page.text()
    assert on_x.publish_calls == 1


async def test_the_same_text_again_is_refused_as_a_duplicate(on_x: XAccount) -> None:
    await on_x.publish()
    with pytest.raises(Refused, match="X refused: You are not allowed to create a Tweet with duplicate content") as refused:
        await on_x.publish()
    assert refused.value.is_duplicate
    assert len(on_x.x.posts) == 1


@pytest.mark.parametrize("text", ["a" * 281, "茶" * 141])
async def test_a_text_that_is_too_long_for_x_is_refused_for_good(on_x: XAccount, text: str) -> None:
    with pytest.raises(Refused, match="not permitted") as refused:
        await on_x.publish(text)
    assert not refused.value.is_duplicate


async def test_an_invalid_request_is_refused_with_the_sentence_that_names_the_field(on_x: XAccount) -> None:
    with pytest.raises(Refused, match=r"X refused: \$\.text: is missing or empty"):
        await on_x.publish("   ")


async def test_a_revoked_token_is_rejected(on_x: XAccount) -> None:
    on_x.x.revoke_all()
    with pytest.raises(TokenRejected, match="X no longer accepts this connection: Unauthorized"):
        await on_x.publish()


async def test_an_expired_token_is_rejected(on_x: XAccount, clock: ManualClock) -> None:
    clock.advance(timedelta(hours=2))
    with pytest.raises(TokenRejected):
        await on_x.publish()


async def test_a_rate_limit_says_until_when(on_x: XAccount, now: Callable[[], datetime], clock: ManualClock) -> None:
    on_x.x.store.window_size = 1
    await on_x.publish("one")
    clock.advance(MINUTE)
    with pytest.raises(Limited, match="X asks to wait") as limited:
        await on_x.publish("two")
    assert limited.value.until == now() + 14 * MINUTE
    clock.set(limited.value.until)
    await on_x.publish("two")
    assert [post.text for post in on_x.x.posts] == ["one", "two"]


async def test_a_rate_limit_without_a_reset_is_over_after_its_window(on_x: XAccount, now: Callable[[], datetime]) -> None:
    on_x.x.faults.limit()
    with pytest.raises(Limited) as limited:
        await on_x.publish()
    assert limited.value.until == now() + 15 * MINUTE


@pytest.mark.parametrize("reset_at", [datetime(2027, 3, 1, 7, 59, tzinfo=UTC), datetime(2031, 1, 1, tzinfo=UTC)])
async def test_a_reset_that_cannot_be_is_not_believed(on_x: XAccount, now: Callable[[], datetime], reset_at: datetime) -> None:
    on_x.x.faults.limit(reset_at=reset_at)
    with pytest.raises(Limited) as limited:
        await on_x.publish()
    assert limited.value.until == now() + 15 * MINUTE


async def test_posts_that_nobody_paid_for_wait_for_the_operator(on_x: XAccount, now: Callable[[], datetime]) -> None:
    on_x.x.store.credit = 0
    with pytest.raises(
        Limited, match="until its cap or credit is raised: Your enrolled account does not have any credits"
    ) as capped:
        await on_x.publish()
    assert capped.value.until == now() + timedelta(hours=1)


LOST: dict[str, Fault] = {
    "hangs": Fault(kind="hang", taken=True),
    "breaks off": Fault(kind="drop", taken=True),
    "breaks off within its answer": Fault(kind="cut", taken=True),
    "answers nonsense": Fault(kind="garble", taken=True),
}
TAKEN = {**LOST, "answers 503": Fault(kind="fail", taken=True), "answers 303": Fault(kind="fail", taken=True, status=303)}
NOT_TAKEN: dict[str, Fault] = {
    "hangs": Fault(kind="hang"),
    "answers 500": Fault(kind="fail", status=500),
    "answers 408": Fault(kind="fail", status=408),
    "breaks off": Fault(kind="drop"),
}


@pytest.mark.parametrize("fault", TAKEN)
async def test_a_post_that_goes_out_without_an_answer_is_unclear_and_sent_once(on_x: XAccount, fault: str) -> None:
    on_x.x.faults.add(TAKEN[fault])
    with pytest.raises(Unclear):
        await on_x.publish()
    assert (on_x.publish_calls, len(on_x.x.posts)) == (1, 1)


@pytest.mark.parametrize("fault", NOT_TAKEN)
async def test_a_post_that_is_lost_without_an_answer_is_unclear_too(on_x: XAccount, fault: str) -> None:
    on_x.x.faults.add(NOT_TAKEN[fault])
    with pytest.raises(Unclear):
        await on_x.publish()
    assert (on_x.publish_calls, on_x.x.posts) == (1, [])


async def test_an_answer_that_breaks_off_still_says_that_x_took_the_post(on_x: XAccount) -> None:
    on_x.x.faults.take_then_cut()
    with pytest.raises(Unclear, match="X answered that it took the post, but not which one it is"):
        await on_x.publish()


@pytest.mark.parametrize("status", [301, 307])
async def test_a_redirect_was_not_taken_and_is_not_followed(on_x: XAccount, status: int) -> None:
    on_x.x.faults.fail_before_taking(status=status)
    with pytest.raises(NotSent, match="check the address of its API"):
        await on_x.publish()
    assert on_x.publish_calls == 1


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://nowhere.invalid", "ftp://127.0.0.1", "http://127.0.0.1:99999"])
async def test_a_post_that_never_left_is_safe_to_try_again(url: str, x_settings: XSettings, now: Callable[[], datetime]) -> None:
    account = XAccount(XStandIn(now=now), now, msgspec.structs.replace(x_settings, api_url=url))
    with pytest.raises(NotSent, match="X could not be reached"):
        await account.publish()


async def test_an_address_that_the_guard_refuses_is_safe_to_try_again(x_settings: XSettings, now: Callable[[], datetime]) -> None:
    async with tickler.connect("memory://") as t:
        network = XNetwork(x_settings, t.http_session, now)
        with pytest.raises(NotSent, match="X could not be reached"):
            await network.whoami("token")


async def test_x_says_whose_account_it_is(on_x: XAccount) -> None:
    person = await on_x.network.whoami(on_x.tokens.access)
    assert (person.handle, person.remote_id.isdecimal()) == ("ada", True)


async def test_tokens_are_in_no_error_and_no_representation(on_x: XAccount) -> None:
    assert on_x.tokens.refresh is not None
    on_x.x.revoke_all()
    with pytest.raises(TokenRejected) as rejected:
        await on_x.network.refresh(on_x.tokens)
    seen = repr((on_x.tokens, rejected.value, rejected.value.__cause__, rejected.value.__context__))
    assert on_x.tokens.access not in seen
    assert on_x.tokens.refresh not in seen


async def test_a_refresh_gives_the_next_pair_and_ends_this_one(on_x: XAccount) -> None:
    before = on_x.tokens
    on_x.tokens = await on_x.network.refresh(before)
    assert on_x.tokens.access != before.access
    assert on_x.tokens.lifetime == timedelta(hours=2)
    await on_x.publish()
    with pytest.raises(TokenRejected):
        await on_x.network.whoami(before.access)


async def test_a_replayed_refresh_token_ends_the_whole_family(on_x: XAccount) -> None:
    before = on_x.tokens
    on_x.tokens = await on_x.network.refresh(before)
    with pytest.raises(TokenRejected, match="Value passed for the token was invalid"):
        await on_x.network.refresh(before)
    with pytest.raises(TokenRejected):
        await on_x.publish()
    with pytest.raises(TokenRejected):
        await on_x.network.refresh(on_x.tokens)


@pytest.mark.parametrize("fault", LOST)
async def test_a_refresh_without_an_answer_is_unclear(on_x: XAccount, fault: str) -> None:
    on_x.x.faults.add(LOST[fault], on=TOKEN)
    with pytest.raises(Unclear):
        await on_x.network.refresh(on_x.tokens)


async def test_a_refresh_that_x_says_has_failed_is_safe_to_try_again(on_x: XAccount) -> None:
    on_x.x.faults.fail_before_taking(on=TOKEN)
    with pytest.raises(NotSent, match="X answered 503"):
        await on_x.network.refresh(on_x.tokens)
    assert (await on_x.network.refresh(on_x.tokens)).access != on_x.tokens.access


async def test_a_wrong_secret_of_the_installation_is_no_fault_of_the_token(
    x: XStandIn, x_settings: XSettings, on_x: XAccount, now: Callable[[], datetime]
) -> None:
    network = XNetwork(msgspec.structs.replace(x_settings, client_secret="another"), aiohttp.ClientSession, now)
    with pytest.raises(NotSent, match="client id or secret of this installation"):
        await network.refresh(on_x.tokens)


async def test_a_public_client_needs_no_secret(on_x: XAccount, x_settings: XSettings, now: Callable[[], datetime]) -> None:
    network = XNetwork(msgspec.structs.replace(x_settings, client_secret=None), aiohttp.ClientSession, now)
    assert (await network.refresh(on_x.tokens)).refresh is not None
