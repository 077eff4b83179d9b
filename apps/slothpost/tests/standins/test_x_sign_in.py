"""Sign-in at the local X, as a browser and an application see it: consent, codes, PKCE, families of tokens."""

from __future__ import annotations

import hashlib
from base64 import b64encode, urlsafe_b64encode
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest

from slothpost.standins.x import XStandIn
from tickler import ManualClock

BACK = "http://127.0.0.1:8322/accounts/x/callback"
VERIFIER = "v" * 64
REQUEST = {
    "response_type": "code",
    "client_id": "slothpost",
    "redirect_uri": BACK,
    "scope": "tweet.read tweet.write users.read offline.access",
    "state": "the state",
    "code_challenge": urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode(),
    "code_challenge_method": "S256",
}


@pytest.fixture
async def browser() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def decide(browser: aiohttp.ClientSession, x: XStandIn, **fields: str) -> dict[str, str]:
    """Send the form of the consent page, and return the parameters that the application gets."""
    form = {**REQUEST, "handle": "ada", "decision": "allow", **fields}
    async with browser.post(f"{x.url}/i/oauth2/authorize", data=form, allow_redirects=False) as answer:
        assert answer.status == 302
        location = urlsplit(answer.headers["location"])
    assert f"{location.scheme}://{location.netloc}{location.path}" == BACK
    return {name: value for name, (value,) in parse_qs(location.query).items()}


async def token(browser: aiohttp.ClientSession, x: XStandIn, **form: str) -> tuple[int, dict[str, Any]]:
    async with browser.post(f"{x.url}/2/oauth2/token", data={"client_id": "slothpost", **form}) as answer:
        return answer.status, await answer.json()


async def exchange(browser: aiohttp.ClientSession, x: XStandIn, code: str, **form: str) -> tuple[int, dict[str, Any]]:
    given = {"code_verifier": VERIFIER, "redirect_uri": BACK, **form}
    return await token(browser, x, grant_type="authorization_code", code=code, **given)


async def test_the_consent_page_says_who_asks_for_what(browser: aiohttp.ClientSession, x: XStandIn) -> None:
    async with browser.get(f"{x.url}/i/oauth2/authorize", params=REQUEST) as answer:
        page = await answer.text()
    assert answer.status == 200
    assert "slothpost wants to use your X account" in page
    assert "tweet.write" in page
    assert 'name="handle" value="demo"' in page


@pytest.mark.parametrize("field", REQUEST)
async def test_a_request_for_consent_that_x_would_not_understand_is_refused(
    browser: aiohttp.ClientSession, x: XStandIn, field: str
) -> None:
    async with browser.get(f"{x.url}/i/oauth2/authorize", params={**REQUEST, field: ""}) as answer:
        assert answer.status == 400
    async with browser.post(f"{x.url}/i/oauth2/authorize", data={**REQUEST, field: ""}, allow_redirects=False) as answer:
        assert answer.status == 400


async def test_the_consent_page_shows_nothing_as_html(browser: aiohttp.ClientSession, x: XStandIn) -> None:
    async with browser.get(f"{x.url}/i/oauth2/authorize", params={**REQUEST, "state": '"><script>'}) as answer:
        assert "<script>" not in await answer.text()


async def test_who_declines_comes_back_without_a_code(browser: aiohttp.ClientSession, x: XStandIn) -> None:
    assert await decide(browser, x, decision="deny") == {"state": "the state", "error": "access_denied"}


async def test_a_code_is_worth_the_tokens_of_who_consented(browser: aiohttp.ClientSession, x: XStandIn) -> None:
    back = await decide(browser, x)
    assert back["state"] == "the state"
    status, issued = await exchange(browser, x, back["code"])
    assert (status, issued["token_type"], issued["expires_in"]) == (200, "bearer", 7200)
    headers = {"authorization": f"Bearer {issued['access_token']}"}
    async with browser.get(f"{x.url}/2/users/me", headers=headers) as answer:
        assert (await answer.json())["data"]["username"] == "ada"


async def test_a_code_lives_thirty_seconds(browser: aiohttp.ClientSession, x: XStandIn, clock: ManualClock) -> None:
    early, late = (await decide(browser, x))["code"], (await decide(browser, x))["code"]
    clock.advance(29)
    assert (await exchange(browser, x, early))[0] == 200
    clock.advance(1)
    status, error = await exchange(browser, x, late)
    assert (status, error["error"]) == (400, "invalid_request")


async def test_a_code_works_once(browser: aiohttp.ClientSession, x: XStandIn) -> None:
    code = (await decide(browser, x))["code"]
    assert [(await exchange(browser, x, code))[0] for _ in range(2)] == [200, 400]


@pytest.mark.parametrize("other", [{"code_verifier": "w" * 64}, {"redirect_uri": f"{BACK}/"}, {"client_id": "another"}])
async def test_a_code_works_only_with_what_it_was_asked_for(
    browser: aiohttp.ClientSession, x: XStandIn, other: dict[str, str]
) -> None:
    status, _ = await exchange(browser, x, (await decide(browser, x))["code"], **other)
    assert status in (400, 401)


async def test_a_confidential_client_shows_its_secret(browser: aiohttp.ClientSession, x: XStandIn) -> None:
    refresh = x.issue_tokens("ada").refresh
    form = {"grant_type": "refresh_token", "refresh_token": refresh or ""}
    found = []
    for secret in ("wrong", x.client_secret):
        basic = b64encode(f"{x.client_id}:{secret}".encode()).decode()
        headers = {"authorization": f"Basic {basic}"}
        async with browser.post(f"{x.url}/2/oauth2/token", data=form, headers=headers) as answer:
            found.append((answer.status, (await answer.json()).get("error")))
    assert found == [(401, "unauthorized_client"), (200, None)]


async def test_without_offline_access_there_is_no_refresh_token(browser: aiohttp.ClientSession, x: XStandIn) -> None:
    back = await decide(browser, x, scope="tweet.read tweet.write users.read")
    _, issued = await exchange(browser, x, back["code"])
    assert "refresh_token" not in issued


async def test_without_the_scope_to_write_nothing_is_posted(browser: aiohttp.ClientSession, x: XStandIn) -> None:
    _, issued = await exchange(browser, x, (await decide(browser, x, scope="users.read"))["code"])
    headers = {"authorization": f"Bearer {issued['access_token']}"}
    async with browser.post(f"{x.url}/2/tweets", json={"text": "tea"}, headers=headers) as answer:
        assert answer.status == 403


async def test_each_refresh_ends_the_pair_before(browser: aiohttp.ClientSession, x: XStandIn) -> None:
    first = x.issue_tokens("ada").refresh or ""
    _, second = await token(browser, x, grant_type="refresh_token", refresh_token=first)
    status, third = await token(browser, x, grant_type="refresh_token", refresh_token=second["refresh_token"])
    assert status == 200
    status, error = await token(browser, x, grant_type="refresh_token", refresh_token=first)
    assert (status, error["error"]) == (400, "invalid_request")
    status, _ = await token(browser, x, grant_type="refresh_token", refresh_token=third["refresh_token"])
    assert status == 400  # the replay has ended all of them


async def test_a_refresh_token_lives_half_a_year(browser: aiohttp.ClientSession, x: XStandIn, clock: ManualClock) -> None:
    refresh = x.issue_tokens("ada").refresh or ""
    clock.advance(timedelta(days=182))
    assert (await token(browser, x, grant_type="refresh_token", refresh_token=refresh))[0] == 400


async def test_the_pages_of_an_account_have_its_posts_only(browser: aiohttp.ClientSession, x: XStandIn) -> None:
    for handle in ("ada", "eve"):
        headers = {"authorization": f"Bearer {x.issue_tokens(handle).access}"}
        async with browser.post(f"{x.url}/2/tweets", json={"text": f"Tea of {handle}"}, headers=headers) as answer:
            assert (answer.status, answer.headers["x-rate-limit-remaining"]) == (201, "99")
    async with browser.get(f"{x.url}/ada") as answer:
        page = await answer.text()
    assert ("Tea of ada" in page, "Tea of eve" in page) == (True, False)
    async with browser.get(f"{x.url}/ada/status/1") as answer:
        assert answer.status == 404
