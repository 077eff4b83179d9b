"""Posts by the API: lists, details, and every decision."""

from __future__ import annotations

from typing import Any

import pytest
from api_client import ApiClient, client_of

from installation import Installation, berlin
from slothpost.model import Product

PLAN = {"tue": "09:00", "thu": ["09:00", "17:30"]}
TUESDAY, THURSDAY = "2027-03-02T08:00:00Z", "2027-03-04T08:00:00Z"


@pytest.fixture
async def product(here: Installation) -> Product:
    return await here.a_channel(PLAN)


@pytest.fixture
async def api(here: Installation, product: Product) -> ApiClient:
    return await client_of(here.app, await here.a_user())


async def written(api: ApiClient, product: Product, text: str = "Tea timers now survive a restart.", **more: str) -> Any:
    answer = await api.post(f"/api/products/{product.id}/channels/x/posts", {"text": text, **more})
    assert answer.status == 201, answer
    return answer.json


async def test_a_post_is_written_edited_approved_and_published(here: Installation, api: ApiClient, product: Product) -> None:
    post = await written(api, product)
    assert (post["state"], post["slot_at"], post["drafter"]) == ("drafted", TUESDAY, "you")
    path = f"/api/posts/{post['id']}"
    edited = await api.done(f"{path}/edit", {"text": "Tea timers survive restarts now."})
    assert edited["check"]["length"] == len("Tea timers survive restarts now.")
    approved = await api.done(f"{path}/approve")
    assert (approved["state"], "unapprove" in approved["actions"]) == ("approved", True)
    await here.until(berlin("2027-03-02 09:01"))
    published = await api.found(path)
    assert (published["state"], published["actions"]) == ("published", [])
    assert published["url"].startswith(here.x.url)
    assert [step["state"] for step in published["history"]][-3:] == ["approved", "publishing", "published"]
    assert [step["by"] for step in published["history"]][:2] == ["Ada", "Ada"]
    assert [post.text for post in here.x.posts] == ["Tea timers survive restarts now."]


async def test_a_draft_shows_its_activity_and_waits_in_the_review(here: Installation, api: ApiClient, product: Product) -> None:
    activity = await here.an_activity(product)
    await here.until(berlin("2027-03-01 21:01"))
    (card,) = (await api.found("/api/review"))["items"]
    assert [each["id"] for each in card["activities"]] == [activity.id]
    assert (card["state"], card["slot_at"], card["drafter"]) == ("drafted", TUESDAY, "template")
    again = await api.done(f"/api/posts/{card['id']}/regenerate", {"hint": "shorter"})
    assert again["history"][-1]["note"] == "drafted anew: shorter"
    assert [each["x_post"] for each in (await api.found(f"/api/products/{product.id}/activity"))["items"]] == [card["id"]]


async def test_posts_are_listed_by_state_channel_and_product_in_pages(
    here: Installation, api: ApiClient, product: Product
) -> None:
    other = await here.a_product(name="Kettle")
    ids = [(await written(api, product, f"Post {number}"))["id"] for number in range(3)]
    kettle = await written(api, other, "Kettle", slot_at="2027-03-03T12:00:00+01:00")
    assert kettle["slot_at"] == "2027-03-03T11:00:00Z"
    await api.done(f"/api/posts/{ids[0]}/approve")

    async def listed(query: str) -> list[str]:
        return [each["text"] for each in (await api.found(f"/api/posts?{query}"))["items"]]

    assert await listed("") == ["Post 2", "Post 1", "Kettle", "Post 0"], "the latest slot first"
    assert await listed("state=approved") == ["Post 0"]
    assert await listed(f"product={product.id}&state=drafted&channel=x") == ["Post 2", "Post 1"]
    assert await listed("channel=threads") == []
    first = await api.found(f"/api/posts?limit=2&product={product.id}")
    rest = await api.found(f"/api/posts?limit=2&product={product.id}&after={first['next']}")
    assert [each["text"] for each in first["items"] + rest["items"]] == ["Post 2", "Post 1", "Post 0"]
    assert rest["next"] is None


async def test_every_decision_is_a_step(here: Installation, api: ApiClient, product: Product) -> None:
    path = f"/api/posts/{(await written(api, product))['id']}"
    snoozed = await api.done(f"{path}/snooze", {"until": "2027-03-01T18:00:00+01:00"})
    assert snoozed["snoozed_until"] == "2027-03-01T17:00:00Z"
    assert (await api.found("/api/review"))["items"] == []
    assert (await api.done(f"{path}/reject", {"note": "dull"}))["history"][-1]["note"] == "dull"
    assert (await api.done(f"{path}/restore"))["state"] == "drafted"
    assert (await api.done(f"{path}/next-slot"))["slot_at"] == THURSDAY
    assert (await api.done(f"{path}/move", {"slot_at": "2027-03-05T10:00:00Z"}))["slot_at"] == "2027-03-05T10:00:00Z"
    assert (await api.done(f"{path}/approve", {"text": "Other words."}))["text"] == "Other words."
    assert (await api.done(f"{path}/unapprove"))["state"] == "drafted"
    assert (await api.done(f"{path}/post-now"))["state"] == "approved"
    assert {step["by"] for step in (await api.found(path))["history"]} == {"Ada"}


@pytest.mark.parametrize(
    ("action", "body", "state"),
    [("went-out", {"url": "https://x.example/ada/status/7"}, "published"), ("send-again", None, "approved")],
)
async def test_an_unconfirmed_post_is_resolved(
    here: Installation, api: ApiClient, product: Product, action: str, body: object, state: str
) -> None:
    post = await written(api, product)
    await api.done(f"/api/posts/{post['id']}/approve")
    here.x.faults.take_then_drop()
    await here.until(berlin("2027-03-02 09:05"))
    found = await api.found(f"/api/posts/{post['id']}")
    assert (found["state"], bool(found["evidence"])) == ("unconfirmed", True)
    assert (await api.done(f"/api/posts/{post['id']}/{action}", body))["state"] == state


@pytest.mark.parametrize(
    ("action", "body", "refusal"),
    [
        ("edit", {}, (422, "invalid_field", "text")),
        ("edit", {"text": 1}, (422, "invalid_field", "text")),
        ("edit", {"text": "x", "state": "published"}, (422, "invalid_field", "state")),
        ("approve", {"text": "tea " * 80}, (422, "invalid_field", "text")),
        ("approve", [], (400, "malformed", "")),
        ("snooze", {"until": "2027-03-01T18:00:00"}, (422, "invalid_field", "until")),
        ("snooze", {"until": "2020-03-01T18:00:00Z"}, (422, "invalid_field", "until")),
        ("snooze", {"until": "0001-01-01T00:00:00+14:00"}, (422, "invalid_field", "until")),
        ("move", {"slot_at": "9999-12-31T23:59:59-12:00"}, (422, "invalid_field", "slot_at")),
        ("move", {"slot_at": "2029-01-01T00:00:00Z"}, (422, "invalid_field", "slot_at")),
        ("reject", {"note": "x" * 301}, (422, "invalid_field", "note")),
        ("regenerate", {"hint": "x" * 501}, (422, "invalid_field", "hint")),
        ("regenerate", {}, (409, "not_allowed", "")),
        ("unapprove", {}, (409, "not_allowed", "")),
        ("send-again", {}, (409, "not_allowed", "")),
        ("went-out", {"url": "https://x.example/1"}, (409, "not_allowed", "")),
        ("went-out", {"url": "javascript:alert(1)"}, (422, "invalid_field", "url")),
        ("post-now", {"at": "now"}, (422, "invalid_field", "at")),
        ("dance", {}, (404, "not_found", "")),
    ],
)
async def test_what_cannot_be_done_is_refused_and_changes_nothing(
    api: ApiClient, product: Product, action: str, body: object, refusal: tuple[int, str, str]
) -> None:
    post = await written(api, product)
    assert (await api.post(f"/api/posts/{post['id']}/{action}", body)).refusal == refusal
    assert await api.found(f"/api/posts/{post['id']}") == post
