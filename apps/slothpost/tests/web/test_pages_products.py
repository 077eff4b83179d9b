"""The forms of products and plans: what is wrong is refused next to its field, and nothing that was typed is lost."""

from __future__ import annotations

import pytest
from page_client import PageClient, page_client

from installation import Installation
from slothpost.web.pages.plan_form import read_plan
from tickler.web import FormFields

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
OFF = dict.fromkeys(DAYS, "")
PRODUCT = {
    "name": "Teapot",
    "url": "https://teapot.example.com",
    "description": "Tea, on time.",
    "drafter": "template",
    "domains": "teapot.example.com\nshop.example.com",
    "samples": "One.\nTwo.\n\nThree.",
    "rules": "short\nno jokes",
    "banned": "game-changer",
    "lead_minutes": "720",
    "grace_minutes": "60",
    "undecided": "next_slot",
    "tells_private": "on",
}


@pytest.fixture
async def ada(here: Installation) -> PageClient:
    return await page_client(here.app, await here.a_user())


async def plan(here: Installation, product: str) -> dict[str, list[str]]:
    return dict((await here.app.plans.view("ada", product, "x")).state.channel.days)


async def test_a_product_is_created_with_all_of_its_settings(here: Installation, ada: PageClient) -> None:
    answer = await ada.post("/new-product", PRODUCT)
    assert answer.location.endswith("?notice=created")
    (product,) = await here.app.products.list("ada")
    assert (product.name, product.undecided, product.tells_private) == ("Teapot", "next_slot", True)
    assert product.domains == ["teapot.example.com", "shop.example.com"]
    assert (product.voice.samples, product.voice.rules) == (["One.\nTwo.", "Three."], ["short", "no jokes"])
    form = await ada.get(f"/products/{product.id}/edit")
    assert {name: form.value(name) for name in ("name", "description", "domains", "samples", "lead_minutes")} == {
        name: PRODUCT[name] for name in ("name", "description", "domains", "samples", "lead_minutes")
    }
    unchecked = {name: text for name, text in PRODUCT.items() if name != "tells_private"}
    await ada.post(f"/products/{product.id}/edit", {**unchecked, "name": "Kettle"})
    changed = await here.app.products.get("ada", product.id)
    assert (changed.name, changed.tells_private) == ("Kettle", False)


@pytest.mark.parametrize(
    ("field", "text", "reason"),
    [
        ("name", " ", "Use 1 to 80 characters."),
        ("url", "javascript:alert(1)", "'javascript' is not a domain: use one such as example.com."),
        ("domains", "not a domain", "'not a domain' is not a domain: use one such as example.com."),
        ("lead_minutes", "twelve", "'twelve' is not a number of minutes: use digits."),
        ("lead_minutes", "99999", "99999 is not between 0 and 8,640."),
        ("grace_minutes", "-5", "'-5' is not a number of minutes: use digits."),
        ("drafter", "markov", "Invalid enum value 'markov'."),
        ("undecided", "maybe", "Invalid enum value 'maybe'."),
        ("enabled", "on", "'enabled' is an unknown field: reload the page."),
    ],
)
async def test_a_wrong_field_of_a_product_is_refused_next_to_it(
    here: Installation, ada: PageClient, field: str, text: str, reason: str
) -> None:
    typed = {**PRODUCT, field: text}
    answer = await ada.post("/new-product", typed)
    assert (answer.status, answer.errors) == (422, [reason])
    if field in ("name", "url", "domains", "lead_minutes", "grace_minutes"):
        assert f'id="{field}-error"' in answer.source
    for name in ("description", "samples", "rules", "banned"):
        assert answer.value(name) == PRODUCT[name]
    assert await here.app.products.list("ada") == []


async def test_a_plan_is_saved_and_shows_its_next_draft_and_slot(here: Installation, ada: PageClient) -> None:
    product = await here.a_product()
    assert "not scheduled" in (await ada.get(f"/products/{product.id}")).text
    days = {**OFF, "tue": "9:00", "thu": "09:00, 17:30", "zone": "Europe/Berlin"}
    assert (await ada.post(f"/products/{product.id}/x/plan", days)).location == f"/products/{product.id}?notice=plan#x"
    assert await plan(here, product.id) == {"tue": ["09:00"], "thu": ["09:00", "17:30"]}
    page = await ada.get(f"/products/{product.id}")
    assert "Next draft Today, 21:00 Next slot Tomorrow, 09:00 Why" in page.text
    assert "The drafting of this channel is not due yet: it fires next at Today, 21:00" in page.text
    await ada.post(f"/products/{product.id}/x/plan", {**OFF, "zone": "Europe/Berlin"})
    assert "none: no day has a time" in (await ada.get(f"/products/{product.id}")).text


UNKNOWN_FLAG = "mon.enabled is an unknown field: a day is on when it has a 'time', and off when that is null."


@pytest.mark.parametrize(
    ("field", "text", "shown_at", "reason"),
    [
        ("mon", '{"enabled": true}', "mon", UNKNOWN_FLAG),
        ("mon.enabled", "true", "mon", UNKNOWN_FLAG),
        ("wed", "25:00", "wed", "'25:00' is not a time of day: write '09:00' or '17:30:15', or leave it empty for a day off."),
        ("wed", "09:00 lunch", "wed", "'lunch' is not a time of day"),
        ("wed", "{", "wed", "'{' is not a time of day"),
        ("wed", "[[[[", "wed", "is not a time of day"),
        ("wed", "true", "wed", "'true' is not a time of day"),
        ("moon", "09:00", "form", "'moon' is an unknown field: a plan has a field for each day, from mon to sun."),
        ("enabled", "on", "form", "'enabled' is an unknown field"),
        ("zone", "Mars/Olympus", "zone", "'Mars/Olympus' is not a time zone: use a name such as Europe/Paris."),
        ("zone", "", "zone", "'' is not a time zone"),
    ],
)
async def test_a_wrong_field_of_a_plan_is_refused_next_to_it(
    here: Installation, ada: PageClient, field: str, text: str, shown_at: str, reason: str
) -> None:
    product = await here.a_channel({"tue": "08:00"})
    typed = {**OFF, "tue": "10:15", "sun": "20:00", "zone": "Europe/Berlin", field: text}
    answer = await ada.post(f"/products/{product.id}/x/plan", typed)
    assert answer.status == 422
    (error,) = answer.errors
    assert error.startswith(reason) or reason in error
    if shown_at != "form":
        assert f'id="x-{shown_at}-error"' in answer.source
        assert f'aria-describedby="x-{shown_at}-error" aria-invalid="true"' in answer.source or shown_at == "zone"
    shown = answer.source.partition('id="threads"')[0]
    assert 'value="10:15"' in shown
    assert 'value="20:00"' in shown
    assert await plan(here, product.id) == {"tue": ["08:00"]}


async def test_every_wrong_day_is_named_at_once(here: Installation, ada: PageClient) -> None:
    product = await here.a_product()
    typed = {**OFF, "mon": "24:00", "tue": "x", "fri": '{"time": "9"}', "zone": "Nowhere"}
    answer = await ada.post(f"/products/{product.id}/threads/plan", typed)
    assert len(answer.errors) == 4
    assert all(f'id="threads-{field}-error"' in answer.source for field in ("mon", "tue", "fri", "zone"))
    assert "&#34;time&#34;" in answer.source  # what was typed is there still


def test_a_day_takes_times_in_any_common_form_and_what_the_api_takes() -> None:
    typed = [("mon", "09:00,17:30"), ("tue", " 9:00;10:00 "), ("wed", '{"time": "08:00"}'), ("thu", '["07:00"]'), ("fri", "")]
    days, form = read_plan(FormFields([*typed, ("zone", "UTC")]))
    assert form.errors == {}
    assert days == {"mon": ["09:00", "17:30"], "tue": ["9:00", "10:00"], "wed": {"time": "08:00"}, "thu": ["07:00"], "fri": None}


async def test_channels_and_products_are_paused_and_resumed(here: Installation, ada: PageClient) -> None:
    product = await here.a_channel({"tue": "09:00"})
    path = f"/products/{product.id}"
    for place, reason in ((f"{path}/x", "this channel is paused"), (path, "this product is paused")):
        await ada.post(f"{place}/pause")
        assert f"none: {reason}" in (await ada.get(path)).text
        await ada.post(f"{place}/resume")
        assert "Next draft Today, 21:00" in (await ada.get(path)).text
    for wrong in (f"{path}/x/stop", f"{path}/stop", f"{path}/mastodon/pause", f"{path}/mastodon/plan"):
        assert (await ada.post(wrong, {**OFF, "zone": "UTC"})).status == 404


async def test_a_topic_tag_is_saved_or_refused(here: Installation, ada: PageClient) -> None:
    product = await here.a_product()
    wrong = await ada.post(f"/products/{product.id}/topic-tag", {"topic_tag": "a.b"})
    assert (wrong.status, wrong.errors, wrong.value("topic_tag")) == (422, ["Use up to 50 characters, without . and &."], "a.b")
    await ada.post(f"/products/{product.id}/topic-tag", {"topic_tag": "#tea"})
    assert (await ada.get(f"/products/{product.id}")).value("topic_tag") == "tea"


async def test_a_channel_uses_an_account_of_its_network_only(here: Installation, ada: PageClient) -> None:
    product = await here.a_channel({"tue": "09:00"}, connected=False)
    x, threads = await here.an_account("x"), await here.an_account("threads")
    path = f"/products/{product.id}"
    await ada.post(f"{path}/x/account", {"account": x.id})
    assert f'<option value="{x.id}" selected>' in (await ada.get(path)).source
    assert (await ada.post(f"{path}/x/account", {"account": threads.id})).status == 422
    await ada.post(f"{path}/x/account", {"account": ""})
    assert "No account is connected." in (await ada.get("/products")).text
    await ada.post(f"/accounts/{x.id}/disconnect")
    assert [account.id for account in await here.app.accounts.list("ada")] == [threads.id]


async def test_a_model_of_ones_own_is_kept_without_showing_its_key(here: Installation, ada: PageClient) -> None:
    product = await here.a_product()
    path = f"/products/{product.id}"
    own = {"model_url": "https://models.example.com/v1", "model": "tea-large", "model_key": "sk-oolong"}
    assert (await ada.post(f"{path}/own-model", own)).location == f"{path}/edit?notice=saved#own-model"
    page = await ada.get(f"{path}/edit")
    assert (page.value("model_url"), page.value("model"), page.value("model_key")) == (own["model_url"], own["model"], "")
    assert "sk-oolong" not in page.source
    wrong = await ada.post(f"{path}/own-model", {**own, "model_url": "models.example.com"})
    assert (wrong.status, wrong.value("model_url"), wrong.value("model_key")) == (422, "models.example.com", "")
    assert 'id="model_url-error"' in wrong.source
    await ada.post(f"{path}/own-model", dict.fromkeys(own, ""))
    assert (await ada.get(f"{path}/edit")).value("model") == ""
