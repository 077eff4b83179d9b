"""Deciding about posts by forms alone, and what a script gets for the same forms."""

from __future__ import annotations

from datetime import timedelta

import pytest
from page_client import PageClient, page_client

from installation import Installation, berlin
from slothpost.model import Post, Product
from slothpost.posts import states
from tickler.table import evolve

TOO_LONG = "tea " * 80


@pytest.fixture
async def product(here: Installation) -> Product:
    return await here.a_channel({"tue": "09:00", "thu": "09:00"})


@pytest.fixture
async def draft(here: Installation, product: Product) -> Post:
    return await here.a_draft(product)


@pytest.fixture
async def ada(here: Installation) -> PageClient:
    return await page_client(here.app, await here.a_user())


async def unconfirmed(here: Installation, draft: Post) -> Post:
    """Return the post as an attempt leaves it whose outcome is unknown."""
    begun = states.begin(states.step(draft, "approved", at=here.now(), by="Ada"), "m1", at=here.now())
    left = states.leave_unconfirmed(begun, "X did not answer within 15 s", at=here.now())
    return await here.app.db.put(evolve(left, version=draft.version))


async def test_a_card_shows_text_length_price_and_slot(here: Installation, ada: PageClient, draft: Post) -> None:
    page = await ada.get("/")
    for part in ("X · Teapot Tomorrow, 09:00", draft.text, f"{len(draft.text)} of 280", "$0.015 on X", "Written by hand."):
        assert part.replace("· ", "") in page.text.replace("· ", ""), page.text
    assert "data-review-count>1<" in page.source


async def test_every_decision_is_a_form_and_a_step_of_the_history(here: Installation, ada: PageClient, draft: Post) -> None:
    path = f"/posts/{draft.id}"
    steps = [
        ("edit", {"text": "Tea timers survive.\r\nAll of them."}, "edited", "drafted"),
        ("approve", {}, "approved", "approved"),
        ("unapprove", {}, "unapproved", "drafted"),
        ("snooze", {"for": "3h"}, "snoozed", "drafted"),
        ("reject", {"note": "too small"}, "rejected", "skipped"),
        ("restore", {}, "restored", "drafted"),
        ("next-slot", {}, "moved", "drafted"),
        ("post-now", {}, "posting", "approved"),
    ]
    for action, fields, notice, state in steps:
        assert (await ada.post(f"{path}/{action}", {**fields, "back": "/"})).location == f"/?notice={notice}"
        assert (await here.post(draft)).state == state
    assert (await here.post(draft)).text == "Tea timers survive.\nAll of them."
    page = await ada.get(path)
    for note in ("Changed the text.", "Too small.", "Snoozed until", "by Ada"):
        assert note in page.text
    assert (await ada.post(f"{path}/explode")).status == 404
    assert (await ada.post(f"{path}/approve", {"back": "https://evil.example"})).status in (303, 409)


async def test_saving_and_approving_is_one_step(here: Installation, ada: PageClient, draft: Post) -> None:
    answer = await ada.post(f"/posts/{draft.id}/edit", {"text": "Better.", "then": "approve"})
    assert answer.location == f"/posts/{draft.id}?notice=approved"
    assert ((await here.post(draft)).state, (await here.post(draft)).text) == ("approved", "Better.")


async def test_a_text_that_the_network_refuses_is_not_approved_and_not_lost(
    here: Installation, ada: PageClient, draft: Post
) -> None:
    answer = await ada.post(f"/posts/{draft.id}/edit", {"text": TOO_LONG, "then": "approve"})
    assert answer.status == 422
    assert "Shorten it by 39" in answer.text
    assert answer.value("text").strip() == TOO_LONG.strip()
    assert (await here.post(draft)).text == draft.text
    await ada.post(f"/posts/{draft.id}/edit", {"text": TOO_LONG})
    page = await ada.get("/")
    assert "319 of 280, 39 too many" in page.text
    assert page.source.count("disabled") >= 1
    assert (await ada.post(f"/posts/{draft.id}/approve")).status == 422


async def test_a_decision_that_does_not_fit_any_more_says_so(here: Installation, ada: PageClient, draft: Post) -> None:
    await ada.post(f"/posts/{draft.id}/approve")
    late = await ada.post(f"/posts/{draft.id}/snooze", {"for": "3h"})
    assert (late.status, late.errors) == (409, ["This post is approved: reload the page to see what can be done with it."])
    assert (await here.post(draft)).state == "approved"


@pytest.mark.parametrize(
    ("action", "fields", "reason"),
    [
        ("snooze", {}, "Choose a day and a time."),
        ("snooze", {"until": "tomorrow"}, "Choose a day and a time."),
        ("snooze", {"until": "2020-01-01T09:00"}, "This instant has passed: choose a later one."),
        ("move", {"slot_at": ""}, "Choose a day and a time."),
        ("move", {"slot_at": "2020-01-01T09:00"}, "This instant has passed, or is more than a year away: choose one in between."),
        ("move", {"days": "many"}, "Choose a day."),
        ("move", {"days": "999"}, "Choose a day."),
    ],
)
async def test_a_wrong_instant_is_refused_with_the_reason(
    here: Installation, ada: PageClient, draft: Post, action: str, fields: dict[str, str], reason: str
) -> None:
    answer = await ada.post(f"/posts/{draft.id}/{action}", fields)
    assert answer.status == 422
    assert reason in answer.text
    assert (await here.post(draft)).slot_at == draft.slot_at


async def test_a_post_moves_to_a_slot_to_any_time_and_by_days_at_the_same_time(
    here: Installation, ada: PageClient, draft: Post
) -> None:
    path = f"/posts/{draft.id}/move"
    page = await ada.get(f"/posts/{draft.id}")
    assert '<option value="2027-03-04T08:00:00+00:00">Thu 4 Mar, 09:00</option>' in page.source
    await ada.post(path, {"slot_at": "2027-03-04T08:00:00+00:00"})
    assert (await here.post(draft)).slot_at == berlin("2027-03-04 09:00")
    await ada.post(path, {"slot_at": "2027-03-05T11:45"})
    assert (await here.post(draft)).slot_at == berlin("2027-03-05 11:45")
    await ada.post(path, {"days": "28", "back": "/week"})  # over the change of the clock
    assert (await here.post(draft)).slot_at == berlin("2027-04-02 11:45")


async def test_a_snoozed_draft_leaves_the_queue_until_tomorrow_morning(here: Installation, ada: PageClient, draft: Post) -> None:
    await ada.post(f"/posts/{draft.id}/move", {"slot_at": "2027-03-04T09:00"})
    await ada.post(f"/posts/{draft.id}/snooze", {"for": "morning"})
    assert (await here.post(draft)).snoozed_until == berlin("2027-03-02 09:00")
    assert "Nothing waits for you." in (await ada.get("/")).text
    await here.until(berlin("2027-03-02 09:01"))
    assert draft.text in (await (await page_client(here.app, await here.a_user())).get("/")).text


async def test_an_unclear_attempt_is_resolved_with_the_link_or_sent_again(
    here: Installation, ada: PageClient, draft: Post
) -> None:
    await unconfirmed(here, draft)
    page = await ada.get("/")
    assert "Did it go out? X did not answer within 15 s." in page.text
    assert "I looked on X, and it is not there" in page.text
    wrong = await ada.post(f"/posts/{draft.id}/went-out", {"url": "x.com/me"})
    assert (wrong.errors, wrong.value("url")) == (
        ["Copy the address of the post from your browser: it starts with https://."],
        "x.com/me",
    )
    await ada.post(f"/posts/{draft.id}/went-out", {"url": "https://x.com/ada/status/1"})
    assert (await here.post(draft)).state == "published"
    assert 'href="https://x.com/ada/status/1"' in (await ada.get(f"/posts/{draft.id}")).source

    other = await unconfirmed(here, await here.a_draft(await here.app.products.get("ada", draft.product), "Tea again."))
    await ada.post(f"/posts/{other.id}/send-again", {"looked": "on"})
    assert (await here.post(other)).state == "approved"


async def test_a_script_gets_the_card_as_it_is_after_a_decision(here: Installation, ada: PageClient, draft: Post) -> None:
    done = await ada.post(f"/posts/{draft.id}/approve", x_fragment="queue")
    assert done.status == 200
    assert "<html" not in done.source
    assert 'data-state="approved"' in done.source
    assert "is-compact" in done.source
    whole = await ada.get(f"/posts/{draft.id}", x_fragment="page")
    assert "is-compact" not in whole.source
    refused = await ada.post(f"/posts/{draft.id}/edit", {"text": TOO_LONG}, x_fragment="queue")
    assert (refused.status, len(refused.errors)) == (422, 1)
    assert refused.value("text").strip() == TOO_LONG.strip()


async def test_a_text_is_counted_as_the_network_does_while_it_is_typed(here: Installation, ada: PageClient, draft: Post) -> None:
    checked = await ada.post(f"/posts/{draft.id}/check", {"text": "See https://teapot.example.com\r\n👩‍🚀"})
    assert "30 of 280" in checked.text
    assert "$0.20 on X" in checked.text
    assert '<span class="link">teapot.example.com</span>' in checked.source
    written = await ada.post("/write/check", {"text": "👩‍🚀", "channel": "threads"})
    assert "11 of 500" in written.text
    assert "free on Threads" in written.text
    assert (await here.post(draft)).text == draft.text


async def test_a_post_is_written_by_hand_for_a_free_slot_or_an_instant(
    here: Installation, ada: PageClient, product: Product
) -> None:
    fields = {"product": product.id, "channel": "x", "text": "Tea at nine."}
    first = await ada.post("/write", fields)
    assert first.location.endswith("?notice=written")
    await ada.post("/write", {**fields, "text": "Tea at noon.", "slot_at": "2027-03-03T12:00"})
    assert {post.text: post.slot_at for post in await here.posts(product)} == {
        "Tea at nine.": berlin("2027-03-02 09:00"),
        "Tea at noon.": berlin("2027-03-03 12:00"),
    }


@pytest.mark.parametrize(
    ("field", "text", "reason"),
    [
        ("text", " ", "It is empty, or has more than 10,000 characters: write a post."),
        ("product", "nothing", "Choose a product."),
        ("channel", "mastodon", "Choose X or Threads."),
        ("slot_at", "noon", "Choose a day and a time, or leave it empty for the next free slot."),
        ("slot_at", "2020-01-01T12:00", "This instant has passed: choose a later one."),
    ],
)
async def test_what_is_wrong_with_a_post_by_hand_is_next_to_its_field(
    here: Installation, ada: PageClient, product: Product, field: str, text: str, reason: str
) -> None:
    fields = {"product": product.id, "channel": "threads", "text": "Tea.\nNow.", "slot_at": "2027-03-03T12:00", field: text}
    answer = await ada.post("/write", fields)
    assert (answer.status, answer.errors) == (422, [reason])
    if field != "text":
        assert answer.value("text") == "Tea.\nNow."
    assert await here.posts(product, "threads") == []


async def test_a_queue_of_many_has_pages(here: Installation, ada: PageClient, product: Product) -> None:
    for number in range(21):
        await here.app.drafts.write(
            "ada", product.id, "x", f"Tea {number}.", by="Ada", slot_at=here.now() + timedelta(hours=number + 1)
        )
    first = await ada.get("/")
    assert "Tea 20." not in first.text
    after = first.source.partition('rel="next" href="')[2].partition('"')[0]
    assert "Tea 20." in (await ada.get(after)).text
    assert (await ada.get("/?after=nonsense")).status == 422


async def test_going_out_next_lists_what_is_approved_and_why_it_waits(here: Installation, ada: PageClient, draft: Post) -> None:
    await ada.post(f"/posts/{draft.id}/approve")
    assert "Going out next Tomorrow, 09:00" in (await ada.get("/")).text
    await ada.post(f"/products/{draft.product}/x/account", {"account": ""})
    assert "No account is connected to this channel." in (await ada.get("/")).text
    await here.until(draft.slot_at + timedelta(days=6))
    late = (await ada.get("/")).text
    assert "No account is connected to this channel." in late, "it is still approved"
    assert "The next post goes out" not in late


async def test_drafts_that_can_still_make_their_slot_come_before_what_went_wrong(
    here: Installation, ada: PageClient, product: Product, draft: Post
) -> None:
    await unconfirmed(here, draft)
    here.clock.set(draft.slot_at + timedelta(hours=1))
    await here.a_draft(product, "The next thing.")
    ada = await page_client(here.app, await here.a_user())  # the session has expired
    page = await ada.get("/")
    assert page.text.index("The next thing.") < page.text.index("Did it go out?")
