"""Publishing on X and Threads: never twice, and never lost without a word."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import aiohttp
import pytest

from installation import Installation, berlin
from slothpost.errors import NotAllowed
from slothpost.model import ChannelName, Post
from slothpost.networks.network import Networks
from slothpost.networks.x import XNetwork, XSettings
from slothpost.planning.circumstances import ChannelState, Circumstances
from slothpost.posts.post_writer import PostWriter
from slothpost.posts.publisher import Publisher
from tickler import RetryLater
from tickler.table import Transaction

PLAN = {"tue": "09:00"}
SLOT = berlin("2027-03-02 09:00")
MINUTE = timedelta(minutes=1)


async def approved(here: Installation, name: ChannelName = "x", text: str = "Tea timers now survive a restart.") -> Post:
    product = await here.a_channel(PLAN, name)
    return await here.app.review.approve("ada", (await here.a_draft(product, text, name)).id, by="Ada")


def published(here: Installation, name: ChannelName) -> list[str]:
    return [post.text for post in (here.x.posts if name == "x" else here.threads.posts)]


async def kinds(here: Installation) -> list[str]:
    return [notice.kind for notice in await here.app.notices.latest("ada")]


@pytest.mark.parametrize("name", ["x", "threads"])
async def test_an_approved_post_goes_out_at_its_slot(anywhere: Installation, name: ChannelName) -> None:
    post = await approved(anywhere, name)
    await anywhere.until(SLOT - MINUTE)
    assert published(anywhere, name) == []
    await anywhere.until(SLOT + MINUTE)
    out = await anywhere.post(post)
    assert (out.state, published(anywhere, name)) == ("published", [post.text])
    assert str(out.url).startswith((anywhere.x if name == "x" else anywhere.threads).url)
    assert [step.state for step in out.history] == ["drafted", "approved", "publishing", "published"]


async def test_a_post_on_x_whose_answer_is_lost_is_unconfirmed_and_not_sent_again(anywhere: Installation) -> None:
    post = await approved(anywhere)
    anywhere.x.faults.take_then_drop(1)
    await anywhere.until(SLOT + timedelta(hours=2))
    unclear = await anywhere.post(post)
    assert (unclear.state, len(anywhere.x.posts)) == ("unconfirmed", 1)
    assert "may have the post" in unclear.evidence
    assert await kinds(anywhere) == ["unconfirmed"]
    assert await anywhere.app.review.count("ada") == 1
    out = await anywhere.app.review.went_out("ada", post.id, by="Ada", url=anywhere.x.posts[0].url)
    assert (out.state, out.url) == ("published", anywhere.x.posts[0].url)


async def test_an_unclear_post_is_sent_again_when_somebody_has_looked(here: Installation) -> None:
    post = await approved(here)
    here.x.faults.drop_before_taking(1)
    await here.until(SLOT + timedelta(hours=2))
    assert ((await here.post(post)).state, here.x.posts) == ("unconfirmed", [])
    await here.app.review.send_again("ada", post.id, by="Ada")
    await here.for_(MINUTE)
    assert ((await here.post(post)).state, len(here.x.posts)) == ("published", 1)


async def test_a_post_on_threads_whose_answer_is_lost_is_found_by_its_container(anywhere: Installation) -> None:
    post = await approved(anywhere, "threads")
    anywhere.threads.faults.take_then_drop(1)
    await anywhere.until(SLOT + timedelta(minutes=10))
    out = await anywhere.post(post)
    assert (out.state, len(anywhere.threads.posts)) == ("published", 1)
    assert out.url == anywhere.threads.posts[0].url


async def test_a_post_found_after_its_grace_is_missed_and_can_be_posted_now(anywhere: Installation) -> None:
    post = await approved(anywhere)
    anywhere.clock.set(SLOT + timedelta(minutes=61))
    await anywhere.for_(MINUTE)
    missed = await anywhere.post(post)
    assert (missed.state, anywhere.x.posts) == ("missed", [])
    assert await kinds(anywhere) == ["missed"]
    await anywhere.app.review.post_now("ada", post.id, by="Ada")
    await anywhere.for_(MINUTE)
    assert ((await anywhere.post(post)).state, len(anywhere.x.posts)) == ("published", 1)


async def test_a_post_found_within_its_grace_goes_out_late(here: Installation) -> None:
    post = await approved(here)
    here.clock.set(SLOT + timedelta(minutes=59))
    await here.for_(MINUTE)
    assert (await here.post(post)).state == "published"


async def test_a_rate_limit_postpones_until_its_reset_and_tells_the_user(anywhere: Installation) -> None:
    post = await approved(anywhere)
    anywhere.x.faults.limit(1, reset_at=SLOT + timedelta(minutes=12))
    await anywhere.until(SLOT + timedelta(minutes=11))
    waiting = await anywhere.post(post)
    assert (waiting.state, waiting.due_at, anywhere.x.posts) == ("approved", SLOT + timedelta(minutes=12), [])
    assert await kinds(anywhere) == ["postponed"]
    await anywhere.until(SLOT + timedelta(minutes=13))
    assert ((await anywhere.post(post)).state, len(anywhere.x.posts)) == ("published", 1)


async def test_a_limit_that_lasts_is_told_once_and_after_a_week_the_post_has_failed(here: Installation) -> None:
    product = await here.a_channel(PLAN)
    post = await here.app.review.post_now("ada", (await here.a_draft(product)).id, by="Ada")
    for number in range(1, 10):
        here.x.faults.limit(1, reset_at=here.now() + number * timedelta(hours=23))
    await here.for_(timedelta(days=6))
    assert ((await here.post(post)).state, await kinds(here)) == ("approved", ["postponed"])
    await here.for_(timedelta(days=2))
    failed = await here.post(post)
    assert (failed.state, await kinds(here)) == ("failed", ["failed", "postponed"])
    assert failed.history[-1].note == "X asks to wait: Too Many Requests"


async def test_a_postponed_post_can_still_be_taken_back(here: Installation) -> None:
    post = await approved(here)
    here.x.faults.limit(1, reset_at=SLOT + timedelta(minutes=12))
    await here.until(SLOT + timedelta(minutes=1))
    await here.app.review.unapprove("ada", post.id, by="Ada")
    await here.until(SLOT + timedelta(hours=1))
    assert ((await here.post(post)).state, here.x.posts) == ("drafted", [])


async def test_a_duplicate_is_failed_with_the_networks_own_words(here: Installation) -> None:
    first = await approved(here)
    await here.until(SLOT + MINUTE)
    assert (await here.post(first)).state == "published"
    second = await here.app.drafts.write("ada", first.product, "x", first.text, by="Ada")
    await here.app.review.post_now("ada", second.id, by="Ada")
    await here.for_(MINUTE)
    refused = await here.post(second)
    assert (refused.state, len(here.x.posts)) == ("failed", 1)
    assert "duplicate content" in refused.history[-1].note
    assert "failed" in await kinds(here)


async def test_a_dead_token_holds_the_queue_and_tells_once(anywhere: Installation) -> None:
    product = await anywhere.a_channel(PLAN)
    review = anywhere.app.review
    posts = [await anywhere.a_draft(product, f"Number {n} of the teas.") for n in range(2)]
    for post in posts:
        await review.move("ada", post.id, by="Ada", slot_at=SLOT)
        await review.approve("ada", post.id, by="Ada")
    anywhere.x.revoke_all()
    await anywhere.until(SLOT + timedelta(hours=3))
    held = [await anywhere.post(post) for post in posts]
    assert [post.state for post in held] == ["approved", "approved"]
    assert all("must be connected again" in post.held for post in held)
    assert (await kinds(anywhere)).count("reconnect") == 1
    assert anywhere.x.posts == []


async def test_connecting_again_lets_the_queue_go(here: Installation) -> None:
    post = await approved(here)
    here.x.revoke_all()
    await here.until(SLOT + MINUTE)
    assert (await here.post(post)).state == "approved"
    await here.an_account("x")
    await here.for_(MINUTE)
    assert ((await here.post(post)).state, len(here.x.posts)) == ("published", 1)


async def test_a_network_that_is_away_is_tried_again(here: Installation) -> None:
    post = await approved(here, "threads")
    here.threads.faults.fail_before_taking(3)
    await here.until(SLOT + timedelta(minutes=20))
    assert ((await here.post(post)).state, len(here.threads.posts)) == ("published", 1)


async def test_a_paused_channel_holds_its_posts_and_lets_them_go(anywhere: Installation) -> None:
    post = await approved(anywhere)
    await anywhere.app.plans.pause_channel("ada", post.product, "x", paused=True)
    assert await anywhere.app.t.index.next_due() is None
    await anywhere.until(SLOT + timedelta(minutes=30))
    assert ((await anywhere.post(post)).held, anywhere.x.posts) == ("this channel is paused", [])
    await anywhere.app.plans.pause_channel("ada", post.product, "x", paused=False)
    await anywhere.for_(MINUTE)
    assert (await anywhere.post(post)).state == "published"


async def test_a_channel_without_an_account_holds_its_posts(here: Installation) -> None:
    product = await here.a_channel(PLAN, connected=False)
    post = await here.app.review.approve("ada", (await here.a_draft(product)).id, by="Ada")
    assert post.held == "no account is connected to this channel"
    await here.until(SLOT + MINUTE)
    assert (await here.post(post)).state == "approved"


async def test_a_post_that_is_being_published_cannot_be_changed(here: Installation) -> None:
    post = await approved(here)
    seen: list[str] = []

    async def unapprove() -> None:
        with pytest.raises(NotAllowed, match="this post is publishing"):
            await here.app.review.unapprove("ada", post.id, by="Ada")
        seen.append((await here.post(post)).state)

    here.x.faults.call_while_taking(unapprove)
    await here.until(SLOT + MINUTE)
    assert seen == ["publishing"]
    assert (await here.post(post)).state == "published"


async def test_a_threads_post_has_the_topic_of_its_channel(here: Installation) -> None:
    post = await approved(here, "threads")
    await here.app.products.set_topic_tag("ada", post.product, "#tea")
    await here.until(SLOT + MINUTE)
    assert [each.topic_tag for each in here.threads.posts] == ["tea"]


async def test_a_token_that_dies_while_an_attempt_is_unclear_leaves_it_to_a_person(here: Installation) -> None:
    """It may be out: if it could be edited, it might go out twice."""
    post = await approved(here, "threads")
    here.threads.faults.take_then_drop(1)
    await here.until(SLOT + timedelta(seconds=30))
    assert (await here.post(post)).state == "publishing"
    here.threads.revoke_all()
    await here.until(SLOT + timedelta(minutes=10))
    assert ((await here.post(post)).state, len(here.threads.posts)) == ("unconfirmed", 1)
    assert sorted(await kinds(here)) == ["reconnect", "unconfirmed"]


async def test_an_unclear_attempt_that_nobody_can_ask_about_becomes_unconfirmed_after_its_grace(here: Installation) -> None:
    post = await approved(here, "threads")
    here.threads.faults.take_then_drop(1)
    await here.until(SLOT + timedelta(seconds=30))
    here.threads.faults.fail_before_taking(1_000, on=str((await here.post(post)).container))
    await here.until(SLOT + timedelta(minutes=59))
    assert (await here.post(post)).state == "publishing"
    await here.until(SLOT + timedelta(minutes=62))
    assert (await here.post(post)).state == "unconfirmed"


async def test_a_duplicate_of_a_post_that_was_sent_again_says_that_the_first_one_is_out(here: Installation) -> None:
    post = await approved(here)
    here.x.faults.take_then_drop(1)
    await here.until(SLOT + MINUTE)
    await here.app.review.send_again("ada", post.id, by="Ada")
    await here.for_(MINUTE)
    found = await here.post(post)
    assert (found.state, len(here.x.posts)) == ("unconfirmed", 1)
    assert "an earlier attempt seems to have gone out" in found.evidence


async def test_a_container_of_another_account_is_not_published(here: Installation) -> None:
    post = await approved(here, "threads")
    here.threads.faults.limit(1)  # after the container was made
    await here.until(SLOT + timedelta(seconds=30))
    waiting = await here.post(post)
    assert (waiting.state, bool(waiting.container)) == ("approved", True)
    other = await here.app.accounts.add("ada", "threads", here.threads.issue_tokens("teapot"))
    await here.app.accounts.use("ada", post.product, "threads", other.id)
    await here.app.review.post_now("ada", post.id, by="Ada")
    await here.for_(MINUTE)
    assert [each.handle for each in here.threads.posts] == ["teapot"]


async def test_an_unclear_post_is_not_sent_with_another_account(here: Installation) -> None:
    """The container of the first account tells nothing to the second, and may be out."""
    post = await approved(here, "threads")
    here.threads.faults.take_then_drop(1)
    await here.until(SLOT + timedelta(seconds=30))
    other = await here.app.accounts.add("ada", "threads", here.threads.issue_tokens("teapot"))
    await here.app.accounts.use("ada", post.product, "threads", other.id)
    await here.until(SLOT + timedelta(hours=1))
    found = await here.post(post)
    assert (found.state, [each.handle for each in here.threads.posts]) == ("unconfirmed", ["ada"])
    assert "another account" in found.evidence


async def test_a_text_that_was_changed_with_its_approval_replaces_the_prepared_one(here: Installation) -> None:
    post = await approved(here, "threads", "The old text.")
    here.threads.faults.limit(1)  # after the container was made
    await here.until(SLOT + timedelta(seconds=30))
    assert (await here.post(post)).container
    await here.app.review.unapprove("ada", post.id, by="Ada")
    await here.app.review.approve("ada", post.id, by="Ada", text="The new text.")
    await here.app.review.post_now("ada", post.id, by="Ada")
    await here.for_(MINUTE)
    assert published(here, "threads") == ["The new text."]


async def test_a_second_delivery_asks_nobody_about_an_attempt_that_may_be_under_way(here: Installation) -> None:
    """A post that was postponed and then moved has two fires, which may be delivered at once."""
    post = await approved(here)
    said: list[str] = []

    async def deliver_again() -> None:
        with pytest.raises(RetryLater) as later:
            await here.app.publisher.publish("ada", post.id)
        said.append(str(later.value))

    here.x.faults.call_while_taking(deliver_again)
    await here.until(SLOT + timedelta(minutes=10))
    found = await here.post(post)
    assert ([step.state for step in found.history][-2:], len(said)) == (["publishing", "published"], 1)
    assert await kinds(here) == []


async def test_a_network_that_is_away_for_an_hour_leaves_the_whole_history(here: Installation) -> None:
    product = await here.a_channel(PLAN)
    post = await here.app.review.post_now("ada", (await here.a_draft(product)).id, by="Ada")
    nowhere = XSettings(client_id=here.x.client_id, api_url="http://127.0.0.1:9")
    await _publish_with(here, {"x": XNetwork(nowhere, aiohttp.ClientSession, here.now)}, post)
    history = [step.state for step in (await here.post(post)).history]
    assert (history[:2], history[-1]) == (["drafted", "approved"], "failed")
    assert 10 < history.count("publishing") < 30


async def test_a_long_history_keeps_how_it_began(here: Installation) -> None:
    post = await approved(here)
    for number in range(120):
        await here.app.review.edit("ada", post.id, by="Ada", text=f"Number {number} of the teas.")
    history = (await here.post(post)).history
    assert (len(history), [step.state for step in history[:2]]) == (100, ["drafted", "approved"])


async def test_an_approval_while_a_channel_is_resumed_is_not_held_for_ever(
    anywhere: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    product = await anywhere.a_channel(PLAN)
    post = await anywhere.a_draft(product)
    await anywhere.app.plans.pause_channel("ada", product.id, "x", paused=True)
    read = Circumstances.of_post

    async def resume_after_reading(self: Circumstances, post: Post, tx: Transaction | None = None) -> ChannelState:
        state = await read(self, post, tx)
        if tx is not None:
            monkeypatch.undo()
            await anywhere.app.plans.pause_channel("ada", product.id, "x", paused=False)
        return state

    monkeypatch.setattr(Circumstances, "of_post", resume_after_reading)
    assert (await anywhere.app.review.approve("ada", post.id, by="Ada")).held == ""
    await anywhere.until(SLOT + MINUTE)
    assert (await anywhere.post(post)).state == "published"


async def test_an_account_that_is_connected_while_its_post_is_being_held_lets_it_go(
    here: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = await approved(here)
    here.x.revoke_all()
    read = Circumstances.of_post
    reads: list[Post] = []

    async def connect_after_reading(self: Circumstances, post: Post, tx: Transaction | None = None) -> ChannelState:
        state = await read(self, post, tx)
        if state.hold_reason is not None and not reads:
            reads.append(post)
            await here.an_account("x")
        return state

    monkeypatch.setattr(Circumstances, "of_post", connect_after_reading)
    await here.until(SLOT + MINUTE)
    assert ((await here.post(post)).state, len(here.x.posts), len(reads)) == ("published", 1, 1)


async def test_without_credentials_of_a_network_posts_are_tried_again_and_then_fail_with_the_reason(here: Installation) -> None:
    post = await approved(here)
    here.clock.set(SLOT)
    await _publish_with(here, {}, post)
    failed = await here.post(post)
    assert (failed.state, failed.history[-1].note) == ("failed", "this installation has no credentials of X")
    assert await kinds(here) == ["failed"]


async def _publish_with(here: Installation, networks: Networks, post: Post) -> None:
    """Publish a post with other networks, again whenever it is postponed."""
    publisher = Publisher(here.app.db, PostWriter(here.app.t, here.app.db, here.app.notices), networks, here.app.tokens)
    while (waiting := await here.post(post)).state == "approved":
        here.clock.set(max(here.now(), waiting.due_at))
        with suppress(RetryLater):
            await publisher.publish("ada", post.id)
