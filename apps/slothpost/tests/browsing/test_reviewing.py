"""Review in a browser: by keyboard, by touch, and without JavaScript."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from browser.visitor import DESK, Visitor
from browser.visitors import fits_fingers
from browsing.conftest import Served, Visit

from installation import berlin
from slothpost.model import Post, Product

if TYPE_CHECKING:
    from playwright.async_api import Locator

TEXTS = ("Tea timers survive a restart.", "Kettles whistle in tune.", "Cups know when they are empty.")


async def three_drafts(served: Served) -> tuple[Product, list[Post]]:
    product = await served.installation.a_channel({"tue": "09:00", "thu": "09:00"})
    activity = await served.installation.an_activity(product)
    drafts = [await served.installation.a_draft(product, text) for text in TEXTS]
    await served.installation.app.db.update(drafts[0].key, Post.activities.set([activity.id]))
    return product, drafts


def card(visitor: Visitor, post: Post) -> Locator:
    return visitor.page.locator(f"#post-{post.id}")


async def state_of(visitor: Visitor, post: Post, state: str) -> None:
    """Wait until the card of a post says that it is in a state, and is saved."""
    await visitor.page.locator(f'#post-{post.id}[data-state="{state}"]:not([aria-busy])').wait_for()


async def test_everything_is_decided_by_keys(served: Served, visit: Visit) -> None:
    _, (first, second, third) = await three_drafts(served)
    ada = await visit(size=DESK)
    keyboard, here = ada.page.keyboard, served.installation
    ada.refusals.add(422)
    await ada.look()

    # Move, approve, and undo.
    await keyboard.press("j")
    await keyboard.press("j")
    assert await card(ada, second).evaluate("(element) => element === document.activeElement")
    await keyboard.press("k")
    await keyboard.press("a")
    assert await card(ada, second).evaluate("(element) => element === document.activeElement")
    await state_of(ada, first, "approved")
    await ada.sees("Approved for Tomorrow, 09:00.", card(ada, first))
    assert (await here.post(first)).state == "approved"
    await keyboard.press("u")
    await state_of(ada, first, "drafted")
    assert [step.state for step in (await here.post(first)).history] == ["drafted", "approved", "drafted"]

    # Reject and undo.
    await card(ada, second).focus()
    await keyboard.press("x")
    await state_of(ada, second, "skipped")
    await keyboard.press("u")
    await state_of(ada, second, "drafted")

    # Edit: the count follows what is typed, and Ctrl+Enter saves and approves.
    await card(ada, second).focus()
    await keyboard.press("e")
    text = card(ada, second).locator("textarea")
    await text.fill("x" * 281)
    await ada.sees("1 too many", card(ada, second))
    await keyboard.press("Control+Enter")
    await ada.sees("Shorten it by 1", card(ada, second))
    assert await text.input_value() == "x" * 281
    await text.fill("Kettles whistle in F.")
    await ada.sees("21 of 280", card(ada, second))
    await keyboard.press("Control+Enter")
    await state_of(ada, second, "approved")
    assert (await here.post(second)).text == "Kettles whistle in F."
    await ada.page.locator("[data-review-count]").filter(has_text="2").wait_for()

    # Draft anew with a hint, snooze, and the list of keys.
    await card(ada, first).focus()
    await keyboard.press("r")
    await keyboard.type("shorter")
    await keyboard.press("Enter")
    await ada.page.locator(f"#post-{first.id}").get_by_text("survive a restart").first.wait_for()
    await state_of(ada, first, "drafted")
    assert "drafted anew: shorter" in [step.note for step in (await here.post(first)).history]
    await card(ada, third).focus()
    await keyboard.press("s")
    await keyboard.press("Enter")
    await state_of(ada, third, "snoozed")
    assert (await here.post(third)).snoozed_until == here.now() + timedelta(hours=3)
    await keyboard.press("?")
    await ada.sees("save and approve, while editing")
    await ada.look()
    await keyboard.press("Escape")

    # Post now asks first.
    await card(ada, first).focus()
    ada.page.once("dialog", lambda dialog: dialog.dismiss())
    await keyboard.press("n")
    assert (await here.post(first)).state == "drafted"
    ada.page.once("dialog", lambda dialog: dialog.accept())
    await keyboard.press("n")
    await state_of(ada, first, "approved")
    await here.for_(timedelta(seconds=5))
    await ada.sees("Posted.", card(ada, first))
    assert [post.text for post in here.x.posts] == [(await here.post(first)).text]


async def test_a_decision_that_came_too_late_comes_back_with_the_reason(served: Served, visit: Visit) -> None:
    _, (first, *_) = await three_drafts(served)
    ada = await visit()
    await served.installation.app.review.approve("ada", first.id, by="Grace")
    ada.refusals.add(409)
    await card(ada, first).get_by_role("button", name="Snooze").click()
    await ada.page.get_by_role("button", name="For 3 hours").filter(visible=True).click()
    await ada.sees("This post is approved: reload the page to see what can be done with it.", card(ada, first))
    assert await ada.page.locator("#said").inner_text() == (
        "That did not work: This post is approved: reload the page to see what can be done with it."
    )


async def test_a_telephone_shows_one_column_with_room_for_fingers(served: Served, visit: Visit) -> None:
    _, (first, *_) = await three_drafts(served)
    ada = await visit()
    await fits_fingers(ada)
    await ada.tab_through()
    await card(ada, first).get_by_text("Edit").click()
    await fits_fingers(ada)
    await ada.look()
    await card(ada, first).get_by_text("Cancel").click()
    box = await card(ada, first).get_by_role("button", name="Approve", exact=True).bounding_box()
    assert box is not None
    assert box["width"] > 300
    await card(ada, first).get_by_role("button", name="Approve", exact=True).click()
    await state_of(ada, first, "approved")
    await card(ada, first).get_by_role("button", name="Undo").click()
    await state_of(ada, first, "drafted")


async def test_without_javascript_forms_do_the_same(served: Served, visit: Visit) -> None:
    _, (first, second, third) = await three_drafts(served)
    ada, here = await visit(scripts=False), served.installation
    await card(ada, first).get_by_role("button", name="Approve", exact=True).click()
    await ada.page.get_by_text("Approved. It goes out at its slot.").wait_for()
    assert (await here.post(first)).state == "approved"
    await card(ada, second).get_by_text("Edit").click()
    await card(ada, second).locator("textarea").fill("Better.")
    await card(ada, second).get_by_role("button", name="Save", exact=True).click()
    await ada.page.get_by_text("Saved the text.").wait_for()
    assert (await here.post(second)).text == "Better."
    await card(ada, third).get_by_role("button", name="More for this post").click()
    await ada.page.get_by_role("button", name="Move to the next free slot").filter(visible=True).click()
    await ada.page.get_by_text("Moved.").wait_for()
    assert (await here.post(third)).slot_at == berlin("2027-03-11 09:00")
    await card(ada, third).get_by_role("button", name="Reject").click()
    await ada.page.get_by_text("Rejected. It will not be posted.").wait_for()


async def test_new_drafts_wait_behind_a_button(served: Served, visit: Visit) -> None:
    product, _ = await three_drafts(served)
    ada = await visit()
    await served.installation.a_draft(product, "A fourth one.")
    await ada.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await ada.page.get_by_role("button", name="1 new draft").click()
    await ada.sees("A fourth one.")


async def test_a_post_is_moved_to_another_day_by_dragging_and_keeps_its_time(served: Served, visit: Visit) -> None:
    _, (first, *_) = await three_drafts(served)
    ada = await visit(size=DESK)
    await ada.go("Week")
    entry = ada.page.locator(f'[data-post="{first.id}"]')
    await entry.drag_to(ada.page.locator("tr.channel-row td[data-day='2027-03-05']").first)
    await ada.page.locator("td[data-day='2027-03-05']").get_by_text("Tea timers").wait_for()
    assert (await served.installation.post(first)).slot_at == berlin("2027-03-05 09:00")
    await ada.look()


async def test_what_is_written_by_hand_is_counted_while_it_is_typed(served: Served, visit: Visit) -> None:
    product, _ = await three_drafts(served)
    ada = await visit()
    await ada.open(f"/write?product={product.id}")
    await fits_fingers(ada)
    await ada.page.locator("#text").fill("See teapot.example.com 🫖")
    await ada.sees("30 of 280")
    await ada.page.locator("#channel").select_option("threads")
    await ada.sees("free on Threads")
    await ada.page.locator("#channel").select_option("x")
    await ada.press("Keep as a draft")
    await ada.sees("Your post waits for you in Review.")
