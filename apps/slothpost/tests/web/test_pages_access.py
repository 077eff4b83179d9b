"""Who may open which page, and that nobody reaches what is somebody else's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from api_client import client_of, tokens_of
from page_client import PageAnswer, PageClient, page_client
from web.asking import ask

from installation import Installation
from slothpost.people.products import ProductChanges
from slothpost.web.app import create_app
from slothpost.web.pages import PAGE_ROUTES

OPEN = ("/sign-in", "/sign-in/{code:str}", "/join/{code:str}", "/health/live", "/sign-out")
OF_SOMETHING = ("product_id", "post_id", "account_id", "token_id", "user_id")


def pages() -> Iterator[tuple[str, str]]:
    """Yield method and path of every page."""
    for handler in PAGE_ROUTES:
        for method in handler.http_methods - {"OPTIONS", "HEAD"}:
            for path in handler.paths:
                yield str(method), path


PAGES = sorted(set(pages()))


def filled(path: str, **values: str) -> str:
    """Return a path with values for its parameters."""
    source = "vercel" if path.endswith(("/own-secret", "/install")) else "github"
    defaults = {"source": source, "network": "x", "channel": "x", "action": "approve", "change": "pause", "code": "x" * 43}
    for name, value in {**defaults, **values}.items():
        path = path.replace(f"{{{name}:str}}", value)
    return path


@pytest.fixture
async def ada(here: Installation) -> PageClient:
    return await page_client(here.app, await here.a_user())


async def send(client: PageClient, method: str, path: str) -> PageAnswer:
    return await (client.get(path) if method == "GET" else client.post(path))


@pytest.mark.parametrize(("method", "path"), [each for each in PAGES if each[1] not in OPEN])
async def test_a_page_needs_a_session(here: Installation, method: str, path: str) -> None:
    unknown = PageClient(create_app(here.app))
    answer = await send(unknown, method, filled(path, **dict.fromkeys(OF_SOMETHING, "x1")))
    assert answer.location.startswith("/sign-in")


async def test_the_sign_in_leads_back_to_the_page_that_was_asked_for(here: Installation) -> None:
    unknown = PageClient(create_app(here.app))
    assert (await unknown.get("/week?from=2027-03-01")).location == "/sign-in?next=%2Fweek%3Ffrom%3D2027-03-01"


async def test_a_token_of_the_api_opens_no_page_whatever_its_scope(here: Installation) -> None:
    api = await client_of(here.app, await here.a_user())
    headers = {"authorization": f"Bearer {api.token}", "accept": "text/html"}
    for path in ("/", "/settings", "/products"):
        got = await ask(api.app, "GET", path, headers)
        assert (got.status, b"sign in to use the pages" in got.body) == (403, True)


@pytest.mark.parametrize(("method", "path"), [each for each in PAGES if any(name in each[1] for name in OF_SOMETHING)])
async def test_what_is_somebody_elses_is_not_found(here: Installation, method: str, path: str) -> None:
    product = await here.a_channel({"tue": "09:00"})
    draft = await here.a_draft(product)
    account = await here.an_account("threads")
    token = await _token_of(here)
    mallory = await here.a_user("mallory")
    client = await page_client(here.app, mallory)
    ids = {"product_id": product.id, "post_id": draft.id, "account_id": account.id, "token_id": token, "user_id": "ada"}
    before = await here.post(draft)
    answer = await send(client, method, filled(path, **ids))
    assert answer.status == 404, answer.text
    assert "Teapot" not in answer.source
    assert draft.text not in answer.source
    assert await here.post(draft) == before
    assert (await here.app.products.get("ada", product.id)).paused is False


async def _token_of(here: Installation) -> str:
    ada = await here.a_user()
    await tokens_of(here.app).issue(ada, "script", writes=True)
    return (await tokens_of(here.app).list(ada))[0].id


@pytest.mark.parametrize("path", [path for method, path in PAGES if method == "POST" and "{code" not in path])
async def test_a_form_needs_the_token_of_this_session(here: Installation, ada: PageClient, path: str) -> None:
    product = await here.a_channel({"tue": "09:00"})
    draft = await here.a_draft(product)
    bob = await page_client(here.app, await here.a_user("bob"))
    place = filled(path, product_id=product.id, post_id=draft.id, account_id="x:1", token_id="x1", user_id="bob")
    for token in ("", "nonsense", await bob.form_token()):
        assert (await ada.post(place, token=token)).status == 403
    assert (await ada.post(place, origin="https://evil.example")).status == 403
    assert (await here.post(draft)).state == "drafted"


async def test_only_the_operator_invites_and_makes_links_for_others(here: Installation, ada: PageClient) -> None:
    await here.a_user("bob")
    for path in ("/users/invite", "/users/bob/sign-in-link"):
        assert (await ada.post(path)).status == 404
    assert "Invite" not in (await ada.get("/settings")).text


async def test_a_user_who_is_gone_is_signed_out(here: Installation, ada: PageClient) -> None:
    await here.app.db.delete((await here.a_user()).key)
    assert (await ada.get("/")).location.startswith("/sign-in")


async def test_every_page_is_strict_about_where_things_come_from(here: Installation, ada: PageClient) -> None:
    product = await here.a_channel({"tue": "09:00"})
    draft = await here.a_draft(product)
    paths = [
        *("/", "/week", "/activity", "/products", "/settings", "/write", "/new-product", f"/posts/{draft.id}"),
        *(f"/products/{product.id}", f"/products/{product.id}/edit"),
        *(f"/products/{product.id}/connect/{source}" for source in ("github", "vercel", "appstore")),
    ]
    for path in paths:
        answer = await ada.get(path)
        assert answer.status == 200, (path, answer.text)
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe-inline" not in policy
        assert answer.headers["cache-control"] == "no-store"
        for inline in (" style=", "<style", " onclick=", "javascript:"):
            assert inline not in answer.source, (path, inline)
        assert "<script type=" in answer.source
        assert all("src=" in tag for tag in answer.source.split("<script")[1:])


async def test_what_users_write_is_escaped(here: Installation, ada: PageClient) -> None:
    evil = "<img src=x onerror=alert(1)>"
    product = await here.a_channel({"tue": "09:00"}, description=evil)
    await here.app.products.update("ada", product.id, ProductChanges(name=f"Tea {evil}"))
    draft = await here.a_draft(product, f"Tea {evil}")
    await here.an_activity(product, f"Tea {evil}")
    for path in (
        "/",
        "/week",
        "/activity",
        "/products",
        f"/products/{product.id}",
        f"/products/{product.id}/edit",
        f"/posts/{draft.id}",
    ):
        answer = await ada.get(path)
        assert answer.status == 200
        assert "<img" not in answer.source
        assert "onerror" in answer.text


async def test_the_process_says_that_it_lives_under_any_host_name(here: Installation) -> None:
    got = await ask(create_app(here.app), "GET", "/health/live", host="10.0.0.7")
    assert (got.status, got.body) == (200, b"live")
    assert (await ask(create_app(here.app), "GET", "/", host="evil.example")).status == 421


async def test_a_page_that_does_not_exist_is_a_page(here: Installation, ada: PageClient) -> None:
    answer = await ada.get("/nothing")
    assert (answer.status, "There is no such page." in answer.text) == (404, True)
    assert (await ada.get("/posts/nothing")).status == 404
    assert (await ada.post("/posts/nothing/approve")).status == 404
