"""The client of Threads against a local Threads: each documented answer, and none. What is unclear is found out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import aiohttp
import pytest

from slothpost.networks.network import Limited, NotSent, Refused, TokenRejected, Unclear
from slothpost.standins.faults import Fault
from slothpost.standins.threads_posts import Container
from tickler import ManualClock

from .network_accounts import TEXT, ThreadsAccount

HOUR = timedelta(hours=1)

TAKEN: dict[str, Fault] = {
    "hangs": Fault(kind="hang", taken=True),
    "answers 500": Fault(kind="fail", taken=True, status=500),
    "breaks off": Fault(kind="drop", taken=True),
    "breaks off within its answer": Fault(kind="cut", taken=True),
    "answers nonsense": Fault(kind="garble", taken=True),
}
NOT_TAKEN: dict[str, Fault] = {
    "hangs": Fault(kind="hang"),
    "answers 503": Fault(kind="fail"),
    "breaks off": Fault(kind="drop"),
}


def container_of(on_threads: ThreadsAccount) -> Container:
    (container,) = on_threads.threads.store.containers.values()
    return container


async def test_a_post_is_out_at_the_address_that_is_returned(on_threads: ThreadsAccount) -> None:
    out = await on_threads.publish("Tea <timers> now survive a restart.", topic_tag="tea")
    (post,) = on_threads.threads.posts
    assert (post.id, post.url, post.topic_tag) == (out.remote_id, out.url, "tea")
    async with aiohttp.ClientSession() as browser, browser.get(out.url) as page:
        text = await page.text()
    assert "Tea &lt;timers&gt; now survive a restart." in text
    assert "› tea" in text
    assert on_threads.publish_calls == 1


async def test_the_container_is_kept_before_it_is_published(on_threads: ThreadsAccount) -> None:
    await on_threads.publish()
    assert on_threads.posts_when_kept == [0]
    assert on_threads.container == container_of(on_threads).id


async def test_a_post_whose_container_cannot_be_kept_does_not_go_out(on_threads: ThreadsAccount) -> None:
    async def fail(container: str) -> None:
        raise RuntimeError("the store is away")

    on_threads._keep = fail  # type: ignore[method-assign]  # what happens when a store fails
    with pytest.raises(RuntimeError):
        await on_threads.publish()
    assert on_threads.publish_calls == 0


async def test_a_container_is_published_when_it_is_ready(on_threads: ThreadsAccount) -> None:
    on_threads.threads.store.polls_until_ready = 2
    await on_threads.publish()
    assert sum(call == f"GET /v1.0/{on_threads.container}" for call in on_threads.threads.calls) == 3


async def test_a_container_that_does_not_get_ready_is_left_for_the_next_attempt(on_threads: ThreadsAccount) -> None:
    on_threads.threads.store.polls_until_ready = 4
    with pytest.raises(NotSent, match="still working"):
        await on_threads.publish()
    assert on_threads.publish_calls == 0
    await on_threads.publish()
    assert (len(on_threads.threads.store.containers), len(on_threads.threads.posts)) == (1, 1)


async def test_a_container_with_an_error_is_refused_with_its_words(on_threads: ThreadsAccount) -> None:
    on_threads.threads.store.next_error = "UNKNOWN"
    with pytest.raises(Refused, match="Threads could not prepare the post: UNKNOWN"):
        await on_threads.publish()
    assert on_threads.publish_calls == 0


@pytest.mark.parametrize("fault", TAKEN)
async def test_a_post_that_goes_out_without_an_answer_is_found_by_its_container(on_threads: ThreadsAccount, fault: str) -> None:
    on_threads.threads.faults.add(TAKEN[fault])
    with pytest.raises(Unclear) as unclear:
        await on_threads.publish()
    assert not unclear.value.needs_person
    out = await on_threads.publish()
    (post,) = on_threads.threads.posts
    assert (out.remote_id, out.url) == (post.id, post.url)
    assert on_threads.publish_calls == 1


@pytest.mark.parametrize("fault", NOT_TAKEN)
async def test_a_post_that_is_lost_without_an_answer_goes_out_once(on_threads: ThreadsAccount, fault: str) -> None:
    on_threads.threads.faults.add(NOT_TAKEN[fault])
    with pytest.raises(Unclear):
        await on_threads.publish()
    await on_threads.publish()
    assert (len(on_threads.threads.posts), len(on_threads.threads.store.containers)) == (1, 1)


async def test_nothing_is_safe_to_say_while_an_unclear_post_cannot_be_asked_for(on_threads: ThreadsAccount) -> None:
    on_threads.threads.faults.take_then_fail()
    with pytest.raises(Unclear):
        await on_threads.publish()
    assert on_threads.container is not None
    for fault in (Fault(kind="fail"), Fault(kind="limit"), Fault(kind="garble")):
        on_threads.threads.faults.add(fault, on=on_threads.container)
        with pytest.raises(Unclear, match="could not be asked what became of an earlier attempt"):
            await on_threads.publish()
    assert (await on_threads.publish()).remote_id == on_threads.threads.posts[0].id


async def test_an_expired_container_is_prepared_anew(on_threads: ThreadsAccount, clock: ManualClock) -> None:
    on_threads.threads.faults.fail_before_taking()
    with pytest.raises(Unclear):
        await on_threads.publish()
    clock.advance(timedelta(days=1))
    await on_threads.publish()
    assert (len(on_threads.threads.posts), len(on_threads.threads.store.containers)) == (1, 2)


async def test_a_post_of_a_container_that_threads_forgot_is_found_by_its_text(on_threads: ThreadsAccount) -> None:
    on_threads.threads.faults.take_then_fail()
    with pytest.raises(Unclear):
        await on_threads.publish()
    on_threads.threads.store.containers.clear()
    out = await on_threads.publish()
    assert [post.id for post in on_threads.threads.posts] == [out.remote_id]


async def test_a_container_that_threads_forgot_without_a_post_needs_a_person(
    on_threads: ThreadsAccount, clock: ManualClock
) -> None:
    await on_threads.publish()  # the same text, days ago
    on_threads.container = None
    clock.advance(timedelta(days=3))
    on_threads.threads.faults.fail_before_taking()
    with pytest.raises(Unclear):
        await on_threads.publish()
    on_threads.threads.store.containers.clear()
    with pytest.raises(Unclear, match="does not list it either") as unclear:
        await on_threads.publish()
    assert unclear.value.needs_person
    assert len(on_threads.threads.posts) == 1


async def test_a_new_container_that_threads_does_not_find_yet_is_published_later(on_threads: ThreadsAccount) -> None:
    on_threads.threads.store.unready_publishes = 1
    with pytest.raises(NotSent, match="does not find the post that it has prepared"):
        await on_threads.publish()
    await on_threads.publish()
    assert (len(on_threads.threads.posts), len(on_threads.threads.store.containers)) == (1, 1)


async def test_a_container_that_threads_does_not_find_twice_is_replaced(on_threads: ThreadsAccount) -> None:
    on_threads.threads.store.unready_publishes = 2
    first = None
    for _ in range(2):
        with pytest.raises(NotSent):
            await on_threads.publish()
        first = first or on_threads.container
    assert on_threads.container != first
    await on_threads.publish()
    assert len(on_threads.threads.posts) == 1


async def test_the_same_text_again_is_refused_as_a_duplicate(on_threads: ThreadsAccount) -> None:
    await on_threads.publish()
    on_threads.container = None
    with pytest.raises(Refused, match="Threads refused: You have posted this already") as refused:
        await on_threads.publish()
    assert refused.value.is_duplicate
    assert len(on_threads.threads.posts) == 1


@pytest.mark.parametrize("text", ["a" * 501, "🚀" * 126])
async def test_a_text_that_is_too_long_for_threads_is_refused_for_good(on_threads: ThreadsAccount, text: str) -> None:
    with pytest.raises(Refused, match="at most 500 characters"):
        await on_threads.publish(text)


async def test_too_many_links_are_refused_for_good(on_threads: ThreadsAccount) -> None:
    with pytest.raises(Refused, match="5 links at most"):
        await on_threads.publish(" ".join(f"https://tea{n}.example.com" for n in range(6)))


async def test_a_revoked_token_is_rejected(on_threads: ThreadsAccount) -> None:
    on_threads.threads.revoke_all()
    with pytest.raises(TokenRejected, match="Threads no longer accepts this connection"):
        await on_threads.publish()


async def test_a_token_of_another_account_publishes_nothing(on_threads: ThreadsAccount) -> None:
    on_threads.tokens = on_threads.threads.issue_tokens("eve")
    with pytest.raises(Refused):
        await on_threads.publish()
    assert on_threads.threads.posts == []


async def test_a_spent_quota_is_known_before_anything_is_prepared(
    on_threads: ThreadsAccount, now: Callable[[], datetime]
) -> None:
    on_threads.threads.store.quota_size = 1
    await on_threads.publish("one")
    on_threads.container = None
    with pytest.raises(Limited, match="no more than 1 posts in 24 hours") as limited:
        await on_threads.publish("two")
    assert limited.value.until == now() + HOUR
    assert len(on_threads.threads.store.containers) == 1


async def test_a_throttled_request_waits_an_hour(on_threads: ThreadsAccount, now: Callable[[], datetime]) -> None:
    on_threads.threads.faults.limit()
    with pytest.raises(Limited, match="Threads asks to wait: Application request limit reached") as limited:
        await on_threads.publish()
    assert limited.value.until == now() + HOUR
    await on_threads.publish()
    assert len(on_threads.threads.posts) == 1


@pytest.mark.parametrize("step", ["/threads_publishing_limit", "/threads"])
@pytest.mark.parametrize("fault", ["answers 503", "breaks off"])
async def test_what_fails_before_publishing_is_safe_to_try_again(on_threads: ThreadsAccount, step: str, fault: str) -> None:
    times = 2 if fault == "breaks off" and step == "/threads_publishing_limit" else 1  # a broken GET is repeated at once
    on_threads.threads.faults.add(NOT_TAKEN[fault], times, on=step)
    with pytest.raises(NotSent):
        await on_threads.publish()
    assert on_threads.publish_calls == 0
    await on_threads.publish()
    assert len(on_threads.threads.posts) == 1


async def test_a_post_whose_address_cannot_be_read_is_out_all_the_same(on_threads: ThreadsAccount) -> None:
    on_threads.threads.faults.call_while_taking(_fail_next_read(on_threads))
    out = await on_threads.publish()
    assert out.url == f"{on_threads.threads.url}/@ada"
    assert out.remote_id == on_threads.threads.posts[0].id


def _fail_next_read(on_threads: ThreadsAccount) -> Callable[[], Awaitable[None]]:
    async def fail() -> None:
        on_threads.threads.faults.fail_before_taking(on=str(int(on_threads.container or "0") + 1))

    return fail


async def test_threads_says_whose_account_it_is(on_threads: ThreadsAccount) -> None:
    person = await on_threads.network.whoami(on_threads.tokens.access)
    assert (person.handle, person.remote_id.isdecimal()) == ("ada", True)


async def test_a_token_is_refreshed_after_a_day_and_lives_sixty_more(on_threads: ThreadsAccount, clock: ManualClock) -> None:
    with pytest.raises(Refused, match="at least 24 hours old"):
        await on_threads.network.refresh(on_threads.tokens)
    clock.advance(timedelta(days=30))
    pair = await on_threads.network.refresh(on_threads.tokens)
    assert pair.lifetime is not None
    assert pair.lifetime.days == 59
    clock.advance(timedelta(days=40))
    with pytest.raises(TokenRejected):
        await on_threads.network.whoami(on_threads.tokens.access)
    on_threads.tokens = pair
    await on_threads.publish(TEXT)


async def test_an_expired_token_cannot_be_refreshed(on_threads: ThreadsAccount, clock: ManualClock) -> None:
    clock.advance(timedelta(days=60))
    with pytest.raises(TokenRejected, match="session has expired"):
        await on_threads.network.refresh(on_threads.tokens)
