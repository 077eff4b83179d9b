"""The wizards of the sources, and accounts on networks: what is shown once, and when a connection turns green."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from urllib.parse import parse_qs, urlsplit

import pytest
from page_client import PageAnswer, PageClient, page_client
from web.asking import ask

from installation import Installation, network_settings, open_installation
from slothpost.model import Product, User
from slothpost.settings import Settings
from slothpost.sources.source_settings import SourceSettings
from slothpost.standins.deliveries import Signed, github_delivery
from slothpost.standins.github import GithubStandIn
from slothpost.standins.threads import ThreadsStandIn
from slothpost.standins.vercel import VercelStandIn
from slothpost.standins.x import XStandIn
from tickler import ManualClock

SECRET = re.compile(r'<textarea id="webhook-secret"[^>]*>([^<]+)</textarea>')


@pytest.fixture
async def github(now: Callable[[], datetime]) -> AsyncIterator[GithubStandIn]:
    async with GithubStandIn(now=now) as server:
        yield server


@pytest.fixture
async def vercel(now: Callable[[], datetime]) -> AsyncIterator[VercelStandIn]:
    async with VercelStandIn(now=now, redirect_uri="http://127.0.0.1:8322/connections/vercel") as server:
        yield server


@pytest.fixture
async def here(
    clock: ManualClock, x: XStandIn, threads: ThreadsStandIn, github: GithubStandIn, vercel: VercelStandIn
) -> AsyncIterator[Installation]:
    sources = SourceSettings(
        github_api_url=github.url,
        vercel_api_url=vercel.url,
        vercel_url=vercel.url,
        vercel_client_id=vercel.client_id,
        vercel_client_secret=vercel.client_secret,
        vercel_integration_slug=vercel.slug,
    )
    settings = Settings(store="memory://", sources=sources, **network_settings(x, threads))
    async with open_installation(settings, clock, x, threads) as installation:
        yield installation


@pytest.fixture
async def product(here: Installation) -> Product:
    return await here.a_product()


@pytest.fixture
async def ada(here: Installation, product: Product) -> PageClient:
    return await page_client(here.app, await here.a_user())


def secret_of(answer: PageAnswer) -> str:
    found = SECRET.search(answer.source)
    assert found is not None, answer.text
    return found[1]


async def deliver(here: PageClient, path: str, delivery: Signed) -> int:
    return (await ask(here.app, "POST", path, delivery.headers, [delivery.body])).status


async def test_a_repository_is_chosen_from_the_list_of_a_token_and_turns_green_at_its_first_ping(
    ada: PageClient, product: Product, github: GithubStandIn
) -> None:
    github.add_repository("ada/teapot")
    github.add_repository("ada/secret-kettle", private=True)
    path, token = f"/products/{product.id}/connect/github", github.issue_token("ada")
    listed = await ada.post(f"{path}/repositories", {"token": token})
    assert "ada/secret-kettle (private)" in listed.text
    assert token not in listed.source
    sealed = listed.value("sealed")
    connected = await ada.post(path, {"sealed": sealed, "repository": "ada/secret-kettle"})
    assert "ada/secret-kettle private: drafts do not name it" in connected.text
    assert f"http://127.0.0.1:8322/webhooks/github/{product.id}" in connected.text
    assert "Github cannot reach this address" in connected.text.replace("GitHub", "Github")
    secret = secret_of(connected)
    assert SECRET.search((await ada.get(path)).source) is None
    assert (await ada.get(f"{path}/status")).source == '{"is_live":false}'
    assert await deliver(ada, f"/webhooks/github/{product.id}", github_delivery("wrong", "ping", {"zen": "Tea."})) == 401
    assert await deliver(ada, f"/webhooks/github/{product.id}", github_delivery(secret, "ping", {"zen": "Tea."})) < 300
    assert (await ada.get(f"{path}/status")).source == '{"is_live":true}'
    assert "It works: the last delivery came Today, 09:00" in (await ada.get(path)).text
    assert "live" in (await ada.get(f"/products/{product.id}")).text


async def test_a_token_that_github_does_not_take_is_refused_next_to_its_field(
    ada: PageClient, product: Product, github: GithubStandIn
) -> None:
    path = f"/products/{product.id}/connect/github"
    for token in ("", "github_pat_nothing", "two words"):
        answer = await ada.post(f"{path}/repositories", {"token": token})
        assert (answer.status, len(answer.errors)) == (422, 1)
        assert 'id="token-error"' in answer.source
        assert answer.value("token") == ""  # secrets are not sent back
    nothing = await ada.post(f"{path}/repositories", {"token": github.issue_token("ada")})
    assert nothing.errors == ["This token reaches no repository that you may push to: give it access to one."]


async def test_a_token_that_somebody_else_typed_is_of_no_use(
    here: Installation, ada: PageClient, product: Product, github: GithubStandIn
) -> None:
    github.add_repository("ada/teapot")
    path = f"/products/{product.id}/connect/github"
    sealed = (await ada.post(f"{path}/repositories", {"token": github.issue_token("ada")})).value("sealed")
    bob = await page_client(here.app, await here.a_user("bob"))
    own = await here.a_product("bob", name="Bob's")
    answer = await bob.post(f"/products/{own.id}/connect/github", {"sealed": sealed, "repository": "ada/teapot"})
    assert answer.errors == ["Paste the token again."]
    assert (await bob.post(f"{path}/repositories", {"token": github.issue_token("bob")})).status == 404
    for action in ("", "/new-secret", "/disconnect", "/repositories"):
        assert (await bob.post(f"{path}{action}", {"token": "x"})).status == 404


async def test_a_webhook_alone_has_a_secret_which_can_be_replaced(ada: PageClient, product: Product) -> None:
    path = f"/products/{product.id}/connect/github"
    assert "waits" not in (await ada.get(path)).text  # nothing is begun by looking
    first = secret_of(await ada.post(path))
    second = secret_of(await ada.post(f"{path}/new-secret"))
    assert first != second
    ping = {"zen": "Tea."}
    assert await deliver(ada, f"/webhooks/github/{product.id}", github_delivery(first, "ping", ping)) == 401
    assert await deliver(ada, f"/webhooks/github/{product.id}", github_delivery(second, "ping", ping)) < 300
    assert (await ada.post(f"{path}/disconnect")).location == f"/products/{product.id}?notice=disconnected#sources"
    assert "not connected" in (await ada.get(f"/products/{product.id}")).text


async def test_an_app_is_connected_by_its_webhook_with_or_without_its_id(ada: PageClient, product: Product) -> None:
    path = f"/products/{product.id}/connect/appstore"
    wrong = await ada.post(path, {"app_id": "teapot", "country": "us"})
    assert (wrong.status, wrong.value("app_id")) == (422, "teapot")
    assert 'id="app_id-error"' in wrong.source
    assert secret_of(await ada.post(path, {"app_id": "", "country": "us"}))
    assert "Waiting for the first delivery" in (await ada.get(path)).text


async def test_a_vercel_project_is_chosen_from_the_users_own_list_and_belongs_to_one_product(
    here: Installation, ada: PageClient, product: Product, vercel: VercelStandIn
) -> None:
    own, other = vercel.add_project("teapot", "user_ada"), vercel.add_project("kettle", "user_bob")
    path = f"/products/{product.id}/connect/vercel"
    assert "Install the Vercel integration first." in (await ada.get(path)).text
    away = (await ada.get(f"{path}/install")).location
    assert away.startswith(f"{vercel.url}/integrations/slothpost/new?state=")
    code, installation = vercel.install("user_ada")
    query = f"code={code}&configurationId={installation.id}&state={urlsplit(away).query.partition('=')[2]}"
    bob = await page_client(here.app, await here.a_user("bob"))
    assert (await bob.get(f"/connections/vercel?{query}")).status == 422
    assert (await ada.get(f"/connections/vercel?{query}")).location == f"{path}?notice=connected"
    page = await ada.get(path)
    assert "teapot" in page.text
    assert "kettle" not in page.text
    assert (await ada.post(path, {"project": other.id})).status == 404
    connected = await ada.post(path, {"project": own.id})
    assert "teapot" in connected.text
    assert "The operator of this slothpost has set it." in connected.text
    await here.app.db.update(User.key.id("ada"), User.is_operator.set(True))
    wizard = await ada.get(path)
    assert "Vercel answers 403" in wizard.text
    assert "in the Integration Console of vercel.com, open the integration, and set this webhook URL" in wizard.text
    assert "http://127.0.0.1:8322/webhooks/vercel" in wizard.source
    second = await here.a_product(name="Second")
    refused = await ada.post(f"/products/{second.id}/connect/vercel", {"project": own.id})
    assert refused.errors == ["The project teapot belongs to another product: disconnect it there first."]
    assert (await ada.post(f"{path}/own-secret", {"secret": "s" * 201})).errors
    assert (await ada.post(f"{path}/own-secret", {"secret": "of our team"})).location == f"{path}?notice=saved"


async def test_paths_of_one_source_do_not_exist_for_another(ada: PageClient, product: Product) -> None:
    path = f"/products/{product.id}/connect"
    assert (await ada.get(f"{path}/gitlab")).status == 404
    assert (await ada.get(f"{path}/github/install")).status == 404
    assert (await ada.post(f"{path}/vercel/repositories")).status == 404
    assert (await ada.post(f"{path}/github/own-secret")).status == 404
    assert (await ada.post(f"{path}/vercel/new-secret")).status == 409


async def test_an_account_is_connected_at_the_network_and_used_by_the_channel(
    here: Installation, ada: PageClient, product: Product, x: XStandIn
) -> None:
    away = (await ada.get(f"/accounts/x/connect?product={product.id}")).location
    query = {name: values[0] for name, values in parse_qs(urlsplit(away).query).items()}
    assert away.startswith(f"{x.url}/i/oauth2/authorize?")
    assert query["redirect_uri"] == "http://127.0.0.1:8322/accounts/x/callback"
    denied = await ada.get(f"/accounts/x/callback?error=access_denied&state={query['state']}")
    assert (denied.status, "X is not connected" in denied.text) == (400, True)
    stolen = await (await page_client(here.app, await here.a_user("bob"))).get(
        f"/accounts/x/callback?code=c&state={query['state']}"
    )
    assert (stolen.status, "is not yours" in stolen.text) == (400, True)
    wrong = await ada.get(f"/accounts/x/callback?code=wrong&state={query['state']}")
    assert (wrong.status, "Value passed for the authorization code was invalid" in wrong.text) == (400, True), wrong.text
    assert await here.app.accounts.list("ada") == []
    assert (await ada.get("/accounts/mastodon/connect")).status == 404
    assert (await ada.get("/accounts/x/connect?product=nothing")).status == 404


async def test_an_installation_without_credentials_of_a_network_says_so(
    clock: ManualClock, x: XStandIn, threads: ThreadsStandIn
) -> None:
    async with open_installation(Settings(store="memory://"), clock, x, threads) as bare:
        ada = await page_client(bare.app, await bare.a_user())
        product = await bare.a_product()
        assert (await ada.get("/accounts/x/connect")).status == 409
        assert "The operator has not set credentials of X." in (await ada.get(f"/products/{product.id}")).text
        assert "its operator sets them" in (await ada.get("/settings")).text
        assert "has no Vercel integration" in (await ada.get(f"/products/{product.id}/connect/vercel")).text
