"""What somebody finds who starts the demo: the first time, again, and days later."""

from __future__ import annotations

import itertools
import re
import signal
import stat
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from html import escape
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest
from demo.conftest import THURSDAY, ZONE, Made, Start, Started, free_port, opened

from slothpost.app import open_slothpost
from slothpost.demo import DEMO_USER, open_demo
from slothpost.demo.days import days_of
from slothpost.demo.local_services import GOES_OUT_AND_HANGS
from slothpost.demo.time_lapse import work
from slothpost.errors import InvalidField, NotAllowed
from slothpost.model import Channel, Post, Slot
from slothpost.planning.plans import CHANNELS
from slothpost.settings import Settings
from slothpost.text.check import check_text
from tickler import ManualClock
from tickler.table import MISSING

pytestmark = pytest.mark.xdist_group("demo")  # the weeks are played once, in one process

A_DAY = timedelta(days=1)


async def posts_of(started: Started) -> list[Post]:
    return [post async for post in started.app.db.iterate(Post.by_slot(DEMO_USER))]


async def coming_drafts(started: Started, within: timedelta) -> list[Post]:
    now = started.app.now()
    return [post for post in await posts_of(started) if post.state == "drafted" and now < post.slot_at <= now + within]


def first_words(post: Post) -> str:
    return escape(post.text.splitlines()[0][:25])


def here(started: Started, post: Post) -> str:
    """Return the address of a post, whose port may have been another one when it was published."""
    network = started.demo.services.x if post.channel == "x" else started.demo.services.threads
    return network.url + urlsplit(str(post.url)).path


async def text_of(url: str) -> str:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        assert answer.status == 200, url
        return await answer.text()


async def test_it_has_posts_in_every_state_that_lasts(start: Start) -> None:
    async with start(THURSDAY) as started:
        states = Counter(post.state for post in await posts_of(started))
    assert states["published"] >= 15
    assert states["drafted"] >= 3
    assert {state: states[state] for state in ("approved", "unconfirmed", "missed", "failed", "skipped", "publishing")} == {
        "approved": 1, "unconfirmed": 1, "missed": 1, "failed": 1, "skipped": 1, "publishing": 0,
    }  # fmt: skip


async def test_it_shows_what_comes_of_plans_and_sources_too(start: Start) -> None:
    async with start(THURSDAY) as started:
        app = started.app
        products = await app.products.list(DEMO_USER)
        assert sorted(product.name for product in products) == ["Plainbill", "Portpeek", "Steepwell"]
        nothing, paused, sources, told = [], 0, set(), 0
        for product in products:
            for name in CHANNELS:
                slots = [slot async for slot in app.db.iterate(Slot.key(product.id).under(name))]
                nothing += [slot.nothing for slot in slots if slot.nothing is not MISSING]
                channel = await app.db.get(Channel.key.id(product.id, name))
                assert channel is not None
                paused += channel.paused
            for activity in (await app.activities.recent(DEMO_USER, product.id)).items:
                sources |= {sighting.source for sighting in activity.sightings}
                told += activity.worth > 0
            assert all(setup.is_live or setup.source == "vercel" for setup in await app.connections.list(DEMO_USER, product.id))
        assert ([reason.partition(":")[0] for reason in nothing], paused, sources) == (
            ["since the last post there were 3 changes, all of them maintenance"], 1, {"github", "vercel", "appstore"},
        )  # fmt: skip
        assert told > 20
        assert len(await app.activities.unrouted(DEMO_USER)) == 2


async def test_every_draft_can_be_approved_as_it_is(start: Start) -> None:
    async with start(THURSDAY) as started:
        posts = await posts_of(started)
    drafted = [post for post in posts if post.drafter == "template"]
    assert not [post.text for post in drafted if post.drafter_note or not check_text(post.channel, post.text).is_sendable]
    assert len({(post.channel, post.text) for post in drafted}) == len(drafted)


async def test_what_was_published_is_on_the_local_networks_also_after_a_start(start: Start) -> None:
    for at in (THURSDAY, THURSDAY + timedelta(hours=1)):
        async with start(at) as started:
            published = [post for post in await posts_of(started) if post.state == "published"]
            for post in (published[0], published[-1]):
                assert first_words(post) in await text_of(here(started, post))
            (unconfirmed,) = [post for post in await posts_of(started) if post.state == "unconfirmed"]
            texts = [local.text for local in started.demo.services.x.posts]
            assert texts.count(unconfirmed.text) == 1, "it did go out: slothpost was not told"


async def test_a_second_start_changes_nothing(start: Start) -> None:
    async with start(THURSDAY) as first:
        before = await posts_of(first)
    async with start(THURSDAY + timedelta(minutes=5)) as second:
        assert [(post.id, post.state, post.text) for post in await posts_of(second)] == [
            (post.id, post.state, post.text) for post in before
        ]


async def test_a_draft_is_posted_now_after_a_second_start(start: Start) -> None:
    async with start(THURSDAY):
        pass
    async with start(THURSDAY + timedelta(hours=3)) as again:
        for draft in await coming_drafts(again, 3 * A_DAY):
            await again.app.review.post_now(DEMO_USER, draft.id, by="Demo")
            again.clock.advance(2)
            await work(again.app)
            post = (await again.app.review.card(DEMO_USER, draft.id)).post
            assert (post.state, post.text) == ("published", draft.text)
            assert first_words(post) in await text_of(str(post.url))


@pytest.mark.parametrize("days", [0, 1, 4, 40])
async def test_a_draft_for_the_next_hours_waits_on_any_day(start: Start, days: int) -> None:
    async with start(THURSDAY + days * A_DAY) as started:
        drafts = await coming_drafts(started, timedelta(hours=13))
        assert drafts
        assert not any(draft.drafter_note for draft in drafts)


async def test_a_marker_in_a_text_makes_the_network_hang_after_it_took_the_post(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slothpost.demo.local_services.NETWORK_TIMEOUT_S", 0.2)
    async with start(THURSDAY) as started:
        draft = (await coming_drafts(started, timedelta(hours=13)))[0]
        await started.app.review.edit(DEMO_USER, draft.id, by="Demo", text=f"Tea is ready {GOES_OUT_AND_HANGS}")
        await started.app.review.post_now(DEMO_USER, draft.id, by="Demo")
        started.clock.advance(2)
        await work(started.app)
        post = (await started.app.review.card(DEMO_USER, draft.id)).post
        assert post.state == "unconfirmed"
        assert post.text in [local.text for local in started.demo.services.x.posts]


async def test_the_first_start_says_what_takes_so_long_and_leaves_nothing_but_the_file(made: Made) -> None:
    assert made.said == ["making up three weeks of a developer's work: this takes a few seconds, the first time only"]
    assert [found.name for found in made.path.parent.iterdir()] == ["demo.db"]
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600


async def test_networks_take_other_ports_where_theirs_are_taken(start: Start) -> None:
    async with start(THURSDAY) as first, start(THURSDAY) as second:
        assert first.demo.services.x.url != second.demo.services.x.url


@pytest.mark.parametrize("store", ["sqlite://", "memory://", "postgresql://127.0.0.1/posts"])
async def test_it_needs_a_file(store: str) -> None:
    with pytest.raises(InvalidField, match="SLOTHPOST_STORE: the demo is kept in a file"):
        async with open_demo(Settings(store=store), say=print):
            pass


async def test_a_file_of_others_is_left_alone(start: Start, path: Path) -> None:
    path.unlink()
    async with open_slothpost(Settings(store=f"sqlite:///{path}")) as app:
        await app.users.create("Ada")
    with pytest.raises(NotAllowed, match="this file is not of the demo"):
        async with start(THURSDAY):
            pass


def test_the_next_post_is_hours_away_at_any_time_of_the_week() -> None:
    for hour in range(7 * 24):
        for minute in (0, 29, 31, 59):
            now = THURSDAY + timedelta(hours=hour, minutes=minute)
            days = days_of(now, ZONE)
            assert timedelta(minutes=90) <= days.at(0, days.soon) - now < timedelta(hours=12)
            assert days.at(-1, "17:30") < now, "what happens before it has happened"


async def test_its_weeks_can_be_played_at_any_time(soak: bool, tmp_path: Path) -> None:
    if not soak:
        pytest.skip("plays the weeks 13 times: make soak")
    for hour in range(0, 7 * 24, 13):
        at = THURSDAY + timedelta(hours=hour, minutes=7 * hour % 60)
        async with opened(tmp_path / f"{hour}.db", ManualClock(at), free_port(), []) as found:
            states = Counter(post.state for post in await posts_of(found))
            assert {states[state] for state in ("approved", "unconfirmed", "missed", "failed", "skipped")} == {1}, at
            assert states["drafted"] >= 3, at
            assert await coming_drafts(found, timedelta(hours=13)), at


def test_on_the_command_line_it_prints_where_to_look(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.rename(path.with_name("slothpost-demo.db"))
    port = free_port()
    command = [sys.executable, "-m", "slothpost", "serve", "--demo", "--port", str(port)]
    with subprocess.Popen(command, cwd=path.parent, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = "".join(itertools.takewhile(lambda line: "working as" not in line, process.stderr))
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert re.search(rf"open  http://127.0.0.1:{port}/sign-in/[\w-]+\n", said)
    for place in ("X", "Threads", "ship something"):
        assert re.search(rf"  {place} +http://127\.0\.0\.1:\d+\b", said)
