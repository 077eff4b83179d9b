"""The week: what stands at each slot, and on which day it falls for the reader."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from page_client import PageClient, page_client

from installation import Installation, berlin
from slothpost.model import Channel, Post, PostState, Product, Slot, Voice
from slothpost.web.pages.time_format import Clock, span
from slothpost.web.pages.week_grid import Row, monday_of, week_row

NOW = berlin("2027-03-03 12:00")  # a Wednesday
MONDAY = date(2027, 3, 1)
READER = Clock(NOW, "Europe/Berlin")
PRODUCT = Product(id="p1", user="ada", name="Teapot", voice=Voice(), created_at=NOW)


def channel(zone: str = "Europe/Berlin", **days: list[str]) -> Channel:
    return Channel(product="p1", name="x", user="ada", days=days, zone=zone, active_since=NOW)


def a_post(at: datetime, state: PostState = "drafted") -> Post:
    return Post(
        user="ada", id=f"{at:%d%H}", product="p1", channel="x", state=state, text="Tea.", slot_at=at, due_at=at, version=1
    )


def row(of: Channel, *, posts: list[Post] | None = None, slots: list[Slot] | None = None, clock: Clock = READER) -> Row:
    return week_row(PRODUCT, of, MONDAY, clock, posts=posts or [], slots=slots or [])


def kinds(found: Row) -> list[list[str]]:
    return [[entry.post.state if entry.post else entry.kind for entry in day] for day in found.days]


def test_slots_to_come_are_empty_and_those_that_passed_are_not_shown() -> None:
    found = row(channel(tue=["09:00"], thu=["09:00", "17:30"], wed=["11:59", "12:01"]))
    assert kinds(found) == [[], [], ["empty"], ["empty", "empty"], [], [], []]
    assert found.days[3][0].draft_at == berlin("2027-03-03 21:00")
    assert found.days[2][0].draft_at is None  # its draft is being made


def test_a_post_takes_its_slot_and_one_that_was_rejected_leaves_it_free() -> None:
    thursday = berlin("2027-03-04 09:00")
    assert kinds(row(channel(thu=["09:00"]), posts=[a_post(thursday)]))[3] == ["drafted"]
    assert kinds(row(channel(thu=["09:00"]), posts=[a_post(thursday, "skipped")]))[3] == ["skipped", "empty"]


def test_a_post_between_the_slots_is_shown_in_the_order_of_the_day() -> None:
    posts = [a_post(berlin("2027-03-04 12:00"), "approved"), a_post(berlin("2027-03-02 09:00"), "published")]
    assert kinds(row(channel(thu=["09:00", "17:30"]), posts=posts)) == [
        [], ["published"], [], ["empty", "approved", "empty"], [], [], []
    ]  # fmt: skip


def test_nothing_to_tell_is_shown_with_its_reason_also_after_the_plan_has_changed() -> None:
    tuesday = berlin("2027-03-02 09:00")
    slots = [Slot(product="p1", channel="x", at=tuesday, nothing="only chores")]
    for plan in (channel(tue=["09:00"]), channel(fri=["09:00"])):
        entry = row(plan, slots=slots).days[1][0]
        assert (entry.kind, entry.note) == ("nothing", "only chores")


def test_a_slot_falls_on_the_day_of_the_reader() -> None:
    in_tokyo = channel("Asia/Tokyo", fri=["01:00"])  # Thursday evening in Berlin
    assert kinds(row(in_tokyo)) == [[], [], [], ["empty"], [], [], []]
    there = Clock(NOW, "Asia/Tokyo")
    assert kinds(row(in_tokyo, clock=there)) == [[], [], [], [], ["empty"], [], []]
    monday_in_tokyo = channel("Asia/Tokyo", mon=["00:30"])  # Sunday of this week in Berlin
    assert kinds(row(monday_in_tokyo)) == [[], [], [], [], [], [], ["empty"]]


def test_the_week_of_a_change_of_the_clock_has_all_of_its_slots() -> None:
    now = berlin("2027-03-22 00:00")
    found = week_row(
        PRODUCT,
        channel(sat=["09:00"], sun=["02:30", "09:00"]),
        date(2027, 3, 22),
        Clock(now, "Europe/Berlin"),
        posts=[],
        slots=[],
    )
    assert [len(day) for day in found.days] == [0, 0, 0, 0, 0, 1, 2]
    assert [entry.at.astimezone(UTC).hour for entry in found.days[6]] == [1, 7]


def test_times_are_written_as_people_say_them() -> None:
    assert [READER.text(NOW + timedelta(days=days)) for days in (-1, 0, 1, 2, 365)] == [
        "Yesterday, 12:00", "Today, 12:00", "Tomorrow, 12:00", "Fri 5 Mar, 12:00", "Thu 2 Mar 2028, 12:00"
    ]  # fmt: skip
    in_new_york = READER.element(berlin("2027-03-04 18:00"), "America/New_York")
    assert "Tomorrow, 18:00</time> <small>Thu 12:00 in America/New_York</small>" in in_new_york
    assert "small" not in READER.element(NOW, "Europe/Paris")
    assert "<script>" not in READER.element(NOW, "<script>")
    assert (span(timedelta(hours=12)), span(timedelta(days=1, minutes=90))) == ("12 h", "1 d 1 h 30 min")


def test_sentences_of_the_engine_have_times_on_the_clock_of_the_reader() -> None:
    text = "fires at 2027-03-04 09:00:00 America/New_York (14:00 UTC), not at 2027-03-03 20:00:00 UTC: see `tickler doctor` <b>"
    shown = READER.sentence(text)
    assert "Tomorrow, 15:00</time>" in shown
    assert "Today, 21:00</time>" in shown
    assert shown.endswith("see <code>tickler doctor</code> &lt;b&gt;")


@pytest.fixture
async def ada(here: Installation) -> PageClient:
    return await page_client(here.app, await here.a_user())


async def test_the_page_shows_posts_free_slots_and_where_to_move(here: Installation, ada: PageClient) -> None:
    product = await here.a_channel({"tue": "09:00", "thu": ["09:00", "17:30"]})
    draft = await here.a_draft(product)
    page = await ada.get("/week")
    assert "This week" in page.text
    assert "09:00 draft Tea timers now survive a restart." in page.text
    assert "free Draft due: Wed 3 Mar, 21:00." in page.text
    assert '<option value="1">Wed 3 Mar</option>' in page.source
    await ada.post(f"/posts/{draft.id}/move", {"days": "1", "back": "/week"})
    assert (await here.post(draft)).slot_at == berlin("2027-03-03 09:00")
    later = await ada.get("/week?from=2027-03-10")
    assert "Week of Mon 8 Mar" in later.text
    assert later.source.count("empty-slot") == 3


@pytest.mark.parametrize("text", ["yesterday", "9999-12-31", "0001-01-01", "2027-02-30", "", "2027-13-01T00"])
async def test_a_week_that_is_none_is_this_one(ada: PageClient, text: str) -> None:
    page = await ada.get(f"/week?from={text}")
    assert (page.status, "This week" in page.text) == (200, True)


async def test_an_empty_week_says_what_to_do(ada: PageClient) -> None:
    assert "give a channel its times" in (await ada.get("/week")).text
    assert monday_of(date(2027, 3, 7)) == MONDAY
