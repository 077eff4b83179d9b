"""Sign-in at the local Threads, as a browser and an application see it: consent, codes, tokens of an hour and of sixty days."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest

from slothpost.standins.threads import ThreadsStandIn
from tickler import ManualClock

BACK = "http://127.0.0.1:8322/accounts/threads/callback"
REQUEST = {
    "response_type": "code",
    "client_id": ThreadsStandIn.client_id,
    "redirect_uri": BACK,
    "scope": "threads_basic,threads_content_publish",
    "state": "the state",
}


@pytest.fixture
async def browser() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def code(browser: aiohttp.ClientSession, threads: ThreadsStandIn, **fields: str) -> str:
    form = {**REQUEST, "handle": "ada", "decision": "allow", **fields}
    async with browser.post(f"{threads.url}/oauth/authorize", data=form, allow_redirects=False) as answer:
        location = urlsplit(answer.headers["location"])
    assert location.fragment == "_"
    query = parse_qs(location.query)
    assert query["state"] == ["the state"]
    return query["code"][0]


async def short_lived(
    browser: aiohttp.ClientSession, threads: ThreadsStandIn, code: str, **fields: str
) -> tuple[int, dict[str, Any]]:
    form = {
        "client_id": threads.client_id,
        "client_secret": threads.client_secret,
        "code": code,
        "grant_type": "authorization_code",
        "redirect_uri": BACK,
        **fields,
    }
    async with browser.post(f"{threads.url}/oauth/access_token", data=form) as answer:
        return answer.status, await answer.json()


async def get(browser: aiohttp.ClientSession, threads: ThreadsStandIn, path: str, **query: str) -> tuple[int, dict[str, Any]]:
    async with browser.get(f"{threads.url}/{path}", params=query) as answer:
        return answer.status, await answer.json()


async def long_lived(
    browser: aiohttp.ClientSession, threads: ThreadsStandIn, token: str, secret: str | None = None
) -> tuple[int, dict[str, Any]]:
    query = {"grant_type": "th_exchange_token", "client_secret": secret or threads.client_secret, "access_token": token}
    return await get(browser, threads, "access_token", **query)


async def test_the_consent_page_says_who_asks_for_what(browser: aiohttp.ClientSession, threads: ThreadsStandIn) -> None:
    async with browser.get(f"{threads.url}/oauth/authorize", params=REQUEST) as answer:
        page = await answer.text()
    assert "slothpost wants to use your Threads account" in page
    assert "threads_content_publish" in page


@pytest.mark.parametrize("field", ["response_type", "client_id", "redirect_uri", "scope"])
async def test_a_request_for_consent_that_threads_would_not_understand_is_refused(
    browser: aiohttp.ClientSession, threads: ThreadsStandIn, field: str
) -> None:
    async with browser.get(f"{threads.url}/oauth/authorize", params={**REQUEST, field: "no"}) as answer:
        assert answer.status == 400


async def test_a_code_becomes_a_token_of_sixty_days(browser: aiohttp.ClientSession, threads: ThreadsStandIn) -> None:
    status, short = await short_lived(browser, threads, await code(browser, threads))
    assert (status, short["user_id"] > 0) == (200, True)
    status, long = await long_lived(browser, threads, short["access_token"])
    assert (status, long["expires_in"]) == (200, 5_183_944)
    _, me = await get(browser, threads, "v1.0/me", fields="id,username", access_token=long["access_token"])
    assert me == {"id": str(short["user_id"]), "username": "ada"}


async def test_a_code_works_once_and_only_with_what_it_was_asked_for(
    browser: aiohttp.ClientSession, threads: ThreadsStandIn
) -> None:
    once = await code(browser, threads)
    assert [(await short_lived(browser, threads, once))[0] for _ in range(2)] == [200, 400]
    for other in ({"redirect_uri": f"{BACK}/"}, {"client_secret": "wrong"}):
        status, error = await short_lived(browser, threads, await code(browser, threads), **other)
        assert (status, error["error_type"]) == (400, "OAuthException")


async def test_who_declines_comes_back_without_a_code(browser: aiohttp.ClientSession, threads: ThreadsStandIn) -> None:
    with pytest.raises(KeyError):
        await code(browser, threads, decision="deny")


async def test_only_a_valid_token_of_an_hour_is_extended(
    browser: aiohttp.ClientSession, threads: ThreadsStandIn, clock: ManualClock
) -> None:
    _, short = await short_lived(browser, threads, await code(browser, threads))
    assert (await long_lived(browser, threads, short["access_token"], secret="wrong"))[0] == 400
    clock.advance(timedelta(hours=1))
    status, expired = await long_lived(browser, threads, short["access_token"])
    assert (status, expired["error"]["code"]) == (400, 190)


@pytest.mark.parametrize(("age", "status"), [(timedelta(hours=23), 400), (timedelta(hours=24), 200), (timedelta(days=60), 400)])
async def test_a_token_is_refreshed_when_it_is_a_day_old_and_has_not_expired(
    browser: aiohttp.ClientSession, threads: ThreadsStandIn, clock: ManualClock, age: timedelta, status: int
) -> None:
    token = threads.issue_tokens("ada").access
    clock.advance(age)
    query = {"grant_type": "th_refresh_token", "access_token": token}
    assert (await get(browser, threads, "refresh_access_token", **query))[0] == status


async def test_without_the_scope_to_publish_nothing_is_prepared(browser: aiohttp.ClientSession, threads: ThreadsStandIn) -> None:
    _, short = await short_lived(browser, threads, await code(browser, threads, scope="threads_basic"))
    form = {"media_type": "TEXT", "text": "tea", "access_token": short["access_token"]}
    async with browser.post(f"{threads.url}/v1.0/me/threads", data=form) as answer:
        assert (answer.status, (await answer.json())["error"]["code"]) == (403, 10)


async def test_a_container_is_published_once_however_often_that_is_asked_for(
    browser: aiohttp.ClientSession, threads: ThreadsStandIn
) -> None:
    token = threads.issue_tokens("ada").access
    form = {"media_type": "TEXT", "text": "tea", "access_token": token}
    async with browser.post(f"{threads.url}/v1.0/me/threads", data=form) as answer:
        container = (await answer.json())["id"]
    ids = []
    for _ in range(2):
        published = {"creation_id": container, "access_token": token}
        async with browser.post(f"{threads.url}/v1.0/me/threads_publish", data=published) as answer:
            ids.append((await answer.json())["id"])
    assert ids == [threads.posts[0].id] * 2
    assert len(threads.posts) == 1
    _, status = await get(browser, threads, f"v1.0/{container}", fields="status", access_token=token)
    assert status["status"] == "PUBLISHED"
    _, quota = await get(browser, threads, "v1.0/me/threads_publishing_limit", access_token=token)
    assert quota["data"][0]["quota_usage"] == 1


async def test_another_account_sees_no_container(browser: aiohttp.ClientSession, threads: ThreadsStandIn) -> None:
    own, other = (threads.issue_tokens(handle).access for handle in ("ada", "eve"))
    async with browser.post(
        f"{threads.url}/v1.0/me/threads", data={"media_type": "TEXT", "text": "tea", "access_token": own}
    ) as answer:
        container = (await answer.json())["id"]
    assert (await get(browser, threads, f"v1.0/{container}", fields="status", access_token=other))[0] == 400
    published = {"creation_id": container, "access_token": other}
    async with browser.post(f"{threads.url}/v1.0/me/threads_publish", data=published) as answer:
        assert (await answer.json())["error"]["error_subcode"] == 4279009
