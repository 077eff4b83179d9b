"""Signing in, inviting, tokens and notices: what is shown once, and what works once."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from api_client import ApiClient
from page_client import PageAnswer, PageClient, page_client, web_of

from installation import Installation
from slothpost.web.api_tokens import API_TOKEN_PREFIX
from slothpost.web.app import create_app

LINK = re.compile(r"http://127\.0\.0\.1:8322(/(?:join|sign-in)/[\w-]{43})")


@pytest.fixture
async def operator(here: Installation) -> PageClient:
    user = await here.app.users.create("Olga", is_operator=True, id="olga")
    return await page_client(here.app, user)


def link_of(answer: PageAnswer) -> str:
    found = LINK.search(answer.text)
    assert found is not None, answer.text
    return found[1]


async def test_a_link_signs_in_once_and_opening_it_does_not_use_it_up(here: Installation) -> None:
    await here.a_user()
    code, browser = await web_of(here.app).links.create("ada"), PageClient(create_app(here.app))
    for _ in range(3):
        assert "Welcome, Ada." in (await browser.get(f"/sign-in/{code}")).text
    signed_in = await browser.sign_in(code)
    assert signed_in.location == "/?notice=in"
    assert "HttpOnly" in signed_in.headers["set-cookie"]
    assert "Ada" in (await browser.get("/")).text
    again = await PageClient(browser.app).get(f"/sign-in/{code}")
    assert (again.status, "ask for another" in again.text) == (404, True)


async def test_a_sign_in_leads_to_no_other_site(here: Installation) -> None:
    await here.a_user()
    for next_path, leads_to in (("//evil.example", "/"), ("https://evil.example", "/"), ("/week", "/week")):
        code = await web_of(here.app).links.create("ada")
        browser = PageClient(create_app(here.app))
        page = await browser.get(f"/sign-in/{code}?next={next_path}")
        token = re.search(r'name="form_token" value="([^"]+)"', page.source)
        assert token is not None
        answer = await browser.post(f"/sign-in/{code}", {"next": next_path}, token=token[1])
        assert answer.location == f"{leads_to}?notice=in"


async def test_an_invitation_makes_one_user_with_a_name_and_a_zone(here: Installation, operator: PageClient) -> None:
    path = link_of(await operator.post("/users/invite"))
    guest = PageClient(operator.app)
    token = re.search(r'name="form_token" value="([^"]+)"', (await guest.get(path)).source)
    assert token is not None
    for nothing in (" ", "\u200b"):  # nobody sees the second one either
        wrong = await guest.post(path, {"name": nothing, "zone": "Mars/Olympus"}, token=token[1])
        assert (wrong.status, wrong.errors) == (422, ["Use 1 to 80 characters."])
    wrong = await guest.post(path, {"name": "Bob", "zone": "Mars/Olympus"}, token=token[1])
    assert wrong.errors == ["'Mars/Olympus' is not a time zone: use a name such as Europe/Paris."]
    assert (wrong.value("name"), wrong.value("zone")) == ("Bob", "Mars/Olympus")
    joined = await guest.post(path, {"name": "Bob", "zone": "Europe/Paris"}, token=token[1])
    guest.cookie = joined.headers["set-cookie"].partition(";")[0]
    assert "Bob" in (await guest.get("/settings")).text
    bob = next(user for user in await here.app.users.everyone() if user.name == "Bob")
    assert (bob.zone, bob.is_operator) == ("Europe/Paris", False)
    second = PageClient(operator.app)
    assert (await second.get(path)).status == 404
    assert (await second.post(path, {"name": "Eve", "zone": "UTC"}, token=token[1])).status == 404
    assert "Eve" not in [user.name for user in await here.app.users.everyone()]


async def test_a_link_for_another_purpose_does_not_sign_in(here: Installation, operator: PageClient) -> None:
    invitation = link_of(await operator.post("/users/invite")).rpartition("/")[2]
    browser = PageClient(operator.app)
    assert (await browser.get(f"/sign-in/{invitation}")).status == 404
    code = await web_of(here.app).links.create("olga")
    assert (await browser.get(f"/join/{code}")).status == 404


async def test_the_operator_makes_a_link_for_somebody_who_lost_theirs(here: Installation, operator: PageClient) -> None:
    await here.a_user()
    answer = await operator.post("/users/ada/sign-in-link")
    assert "Send this to Ada" in answer.text
    browser = PageClient(operator.app)
    await browser.sign_in(link_of(answer).rpartition("/")[2])
    assert "Ada" in (await browser.get("/")).text
    assert (await operator.post("/users/nobody/sign-in-link")).status == 404


async def test_a_link_for_another_device_is_of_the_same_user_and_short_lived(here: Installation) -> None:
    ada = await page_client(here.app, await here.a_user())
    code = link_of(await ada.post("/settings/device-link")).rpartition("/")[2]
    other = PageClient(ada.app)
    assert "Welcome, Ada." in (await other.get(f"/sign-in/{code}")).text
    here.clock.advance(timedelta(minutes=16).total_seconds())
    assert (await other.get(f"/sign-in/{code}")).status == 404


async def test_who_is_signed_in_stays_so_for_weeks_and_not_for_ever(here: Installation) -> None:
    """There is no password: each sign-in needs a link that somebody makes."""
    ada = await page_client(here.app, await here.a_user())
    here.clock.advance(timedelta(days=60))
    assert (await ada.get("/")).status == 200
    here.clock.advance(timedelta(days=31))
    assert (await ada.get("/")).location == "/sign-in?next=%2F"


async def test_signing_out_everywhere_ends_every_session(here: Installation) -> None:
    user = await here.a_user()
    desk, phone = await page_client(here.app, user), await page_client(here.app, user)
    here.clock.advance(1)
    assert (await desk.post("/sign-out-everywhere")).location == "/sign-in?notice=out-everywhere"
    here.clock.advance(6)
    for browser in (desk, phone):
        assert (await browser.get("/")).location.startswith("/sign-in")


async def test_signing_out_ends_one_session(here: Installation) -> None:
    user = await here.a_user()
    desk, phone = await page_client(here.app, user), await page_client(here.app, user)
    assert (await desk.post("/sign-out")).location == "/sign-in?notice=out"
    assert (await desk.get("/")).location.startswith("/sign-in")
    assert (await phone.get("/")).status == 200


async def test_a_token_is_shown_once_works_and_can_be_revoked(here: Installation) -> None:
    ada = await page_client(here.app, await here.a_user())
    shown = await ada.post("/settings/tokens", {"token_name": "backup script", "scope": "read"})
    found = re.search(rf"\b{API_TOKEN_PREFIX}_\w+", shown.text)
    assert found is not None
    assert found[0] not in (await ada.get("/settings")).text
    assert "backup script" in (await ada.get("/settings")).text
    api = ApiClient(ada.app, found[0])
    assert (await api.get("/api/account")).status == 200
    assert (await api.post("/api/account/pause")).status == 403
    (token,) = re.findall(r"/settings/tokens/(\w+)/revoke", (await ada.get("/settings")).source)
    assert (await ada.post(f"/settings/tokens/{token}/revoke")).location == "/settings?notice=revoked#tokens"
    here.clock.advance(6)
    assert (await api.get("/api/account")).status == 401
    nameless = await ada.post("/settings/tokens", {"token_name": " ", "scope": "write"})
    assert nameless.errors == ["Use 1 to 60 characters, so that you know it again."]


async def test_the_secret_of_a_webhook_for_notices_is_shown_once(here: Installation) -> None:
    ada = await page_client(here.app, await here.a_user())
    for url in ("ftp://example.com", "http://10.0.0.1/x"):
        wrong = await ada.post("/settings/notices", {"notify_url": url})
        assert (wrong.status, len(wrong.errors), wrong.value("notify_url")) == (422, 1, url)
    shown = await ada.post("/settings/notices", {"notify_url": "https://hooks.example.com/me"})
    assert "whsec_" in shown.text
    page = await ada.get("/settings")
    assert "whsec_" not in page.text
    assert page.value("notify_url") == "https://hooks.example.com/me"
    same = await ada.post("/settings/notices", {"notify_url": "https://hooks.example.com/me"})
    assert same.location == "/settings?notice=saved#notices"
    await ada.post("/settings/notices", {"notify_url": ""})
    assert (await ada.get("/settings")).value("notify_url") == ""


async def test_name_and_zone_are_saved_or_refused_with_what_was_typed(here: Installation) -> None:
    ada = await page_client(here.app, await here.a_user())
    wrong = await ada.post("/settings", {"name": "Ada L.", "zone": "Atlantis"})
    assert wrong.errors == ["'Atlantis' is not a time zone: use a name such as Europe/Paris."]
    assert (wrong.value("name"), wrong.value("zone")) == ("Ada L.", "Atlantis")
    assert (await ada.post("/settings", {"name": "Ada L.", "zone": "Asia/Tokyo"})).location == "/settings?notice=saved"
    assert "times are in Asia/Tokyo" in (await ada.get("/")).text


async def test_everything_can_be_paused_and_says_so_on_every_page(here: Installation) -> None:
    product = await here.a_channel({"tue": "09:00"})
    ada = await page_client(here.app, await here.a_user())
    await ada.post("/settings/pause")
    for path in ("/", "/week", f"/products/{product.id}"):
        assert "Everything is paused" in (await ada.get(path)).text
    assert "none: your account is paused" in (await ada.get(f"/products/{product.id}")).text
    await ada.post("/settings/resume")
    assert "Everything is paused" not in (await ada.get("/")).text
    assert (await ada.post("/settings/stop")).status == 404
