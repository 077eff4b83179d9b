"""Who may call the API, and how requests that nobody can read are answered."""

from __future__ import annotations

import pytest
from api_client import ApiClient, client_of, tokens_of

from installation import Installation
from slothpost.errors import NotFound
from slothpost.web.api.operations import OPERATIONS

NAMES = {"product": "p1", "channel": "x", "post": "p1-x-1"}


@pytest.fixture
async def api(here: Installation) -> ApiClient:
    return await client_of(here.app, await here.a_user())


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
async def test_every_operation_needs_a_token_with_its_scope(here: Installation, operation: object) -> None:
    method, path = operation.method, f"/api{operation.path.format(**NAMES)}"  # type: ignore[attr-defined]  # an Operation
    reading = await client_of(here.app, await here.a_user(), writes=False)
    assert (await ApiClient(reading.app)(method, path)).refusal[:2] == (401, "unauthorized")
    with_a_token = await reading(method, path)
    if operation.scope == "write":  # type: ignore[attr-defined]  # an Operation
        assert with_a_token.refusal[:2] == (403, "forbidden")
    else:
        assert with_a_token.status in (200, 404)


async def test_a_token_that_was_revoked_or_whose_user_is_gone_is_refused(here: Installation, api: ApiClient) -> None:
    ada, tokens = await here.a_user(), tokens_of(here.app)
    assert (await api.get("/api/account")).status == 200
    (issued,) = await tokens.list(ada)
    assert (issued.name, issued.scopes) == ("a script", ["read", "write"])
    await tokens.revoke(ada, issued.id)
    here.clock.advance(6)
    assert (await api.get("/api/account")).refusal[0] == 401
    assert await tokens.list(ada) == []

    bob = await here.a_user("bob")
    of_bob = await client_of(here.app, bob)
    await here.app.db.delete(bob.key)
    assert (await of_bob.get("/api/account")).refusal[0] == 401


async def test_a_token_of_another_user_is_neither_listed_nor_revoked(here: Installation, api: ApiClient) -> None:
    bob, tokens = await here.a_user("bob"), tokens_of(here.app)
    (issued,) = await tokens.list(await here.a_user())
    assert await tokens.list(bob) == []
    with pytest.raises(NotFound):
        await tokens.revoke(bob, issued.id)
    assert (await api.get("/api/account")).status == 200


async def test_a_session_works_too_but_not_from_another_site(here: Installation, api: ApiClient) -> None:
    browser = ApiClient(api.app)
    cookie = await signed_in(here, browser)
    assert (await browser("GET", "/api/account", cookie=cookie)).json["id"] == "ada"
    foreign = {"cookie": cookie, "origin": "https://evil.example"}
    assert (await browser("POST", "/api/account/pause", **foreign)).status == 403
    user = await here.app.users.get("ada")
    assert user is not None
    assert not user.paused


async def signed_in(here: Installation, browser: ApiClient) -> str:
    """Return the cookie of a session, as a page has it."""
    from slothpost.model import User
    from tickler.web import Web

    web: Web[User] = Web(here.app.t, "slothpost", user=here.app.users.get)
    return (await web.sessions.cookie_for("ada")).partition(";")[0]


@pytest.mark.parametrize(
    ("body", "headers", "refusal"),
    [
        (b"{", {}, (400, "malformed", "")),
        (b"\xff", {}, (400, "malformed", "")),
        (b'{"name": "\\ud800"}', {}, (400, "malformed", "")),
        (b"[" * 100_000, {}, (400, "malformed", "")),
        (b"[]", {}, (400, "malformed", "")),
        (b"null", {}, (400, "malformed", "")),
        (b"name=Teapot", {"content_type": "application/x-www-form-urlencoded"}, (415, "unsupported_media_type", "content-type")),
        (b'{"name": "Teapot"}', {"content_type": "text/plain"}, (415, "unsupported_media_type", "content-type")),
        (b"", {}, (422, "invalid_field", "name")),
    ],
)
async def test_a_body_that_is_no_object_is_refused(
    api: ApiClient, body: bytes, headers: dict[str, str], refusal: tuple[int, str, str]
) -> None:
    assert (await api("POST", "/api/products", body, **headers)).refusal == refusal
    assert (await api.get("/api/products")).json == {"items": []}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("limit=many", "limit"),
        ("limit=1&limit=2", "limit"),
        ("after=", "after"),
        ("after=nonsense", "after"),
        ("state=lost", "state"),
        ("channel=mastodon", "channel"),
        ("page=2", "page"),
    ],
)
async def test_a_parameter_that_cannot_be_used_is_named(api: ApiClient, query: str, field: str) -> None:
    assert (await api.get(f"/api/posts?{query}")).refusal == (422, "invalid_field", field)


async def test_a_cursor_of_another_list_is_refused(here: Installation, api: ApiClient) -> None:
    product = await here.a_channel({"tue": "09:00"})
    for _ in range(2):
        await here.a_draft(product)
    cursor = (await api.found("/api/posts?limit=1"))["next"]
    assert (await api.get(f"/api/review?limit=1&after={cursor}")).refusal == (422, "invalid_field", "after")


async def test_unknown_paths_and_methods_are_problems_with_a_code(api: ApiClient) -> None:
    assert (await api.get("/api/nothing")).refusal[:2] == (404, "not_found")
    refused = await api("DELETE", "/api/products")
    assert refused.refusal[:2] == (405, "method_not_allowed")
    assert set(refused.headers["allow"].split(", ")) >= {"GET", "POST"}
