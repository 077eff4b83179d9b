"""Deliveries of others over HTTP: what each status is for. What becomes of their content is tested with the sources."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

import pytest
from web.asking import Got, ask

from installation import Installation, network_settings, open_installation
from slothpost.model import Activity, Product
from slothpost.settings import Settings
from slothpost.sources.source_settings import SourceSettings
from slothpost.standins.threads import ThreadsStandIn
from slothpost.standins.x import XStandIn
from slothpost.web.app import create_app
from tickler import ManualClock

INTEGRATION = "the client secret of the integration"
PUSH = {
    "ref": "refs/heads/main",
    "deleted": False,
    "after": "a" * 40,
    "repository": {
        "id": 7,
        "full_name": "ada/teapot",
        "private": False,
        "default_branch": "main",
        "html_url": "https://github.example.com/ada/teapot",
    },
    "commits": [
        {
            "id": "a" * 40,
            "message": "feat: brew tea at a time of your choice",
            "timestamp": "2027-03-01T08:00:00Z",
            "url": "https://github.example.com/ada/teapot/commit/aaaa",
            "distinct": True,
            "author": {"name": "Ada"},
        }
    ],
}


@pytest.fixture
async def here(clock: ManualClock, x: XStandIn, threads: ThreadsStandIn) -> AsyncIterator[Installation]:
    sources = SourceSettings(vercel_client_secret=INTEGRATION)
    settings = Settings(store="memory://", sources=sources, **network_settings(x, threads))
    async with open_installation(settings, clock, x, threads) as installation:
        yield installation


@pytest.fixture
async def product(here: Installation) -> Product:
    return await here.a_product()


async def github(
    here: Installation, product: str, body: bytes, *, secret: str, event: str = "push", guid: str = "guid-1", **headers: str
) -> Got:
    signature = f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"
    sent = {
        "content-type": "application/json",
        "x-github-event": event,
        "x-github-delivery": guid,
        "x-hub-signature-256": signature,
        "origin": "https://github.example.com",  # whoever sends it: the signature counts
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    return await ask(create_app(here.app), "POST", f"/webhooks/github/{product}", sent, [body])


async def secret_of(here: Installation, product: Product) -> str:
    setup = await here.app.connections.setup("ada", product.id, "github")
    assert setup.url_path == f"/webhooks/github/{product.id}"
    assert setup.secret is not None
    return setup.secret


async def activities(here: Installation, product: Product) -> Sequence[Activity]:
    await here.for_(timedelta(minutes=1))
    return (await here.app.activities.recent("ada", product.id, first=10, after=None)).items


async def test_a_signed_delivery_is_accepted_and_worked_on_later(here: Installation, product: Product) -> None:
    secret, body = await secret_of(here, product), json.dumps(PUSH).encode()
    accepted = await github(here, product.id, body, secret=secret)
    assert (accepted.status, json.loads(accepted.body)) == (202, {"result": "accepted"})
    (activity,) = await activities(here, product)
    assert activity.id == f"commit:{'a' * 40}"


async def test_a_replay_is_accepted_once(here: Installation, product: Product) -> None:
    secret, body = await secret_of(here, product), json.dumps(PUSH).encode()
    statuses = [(await github(here, product.id, body, secret=secret)).status for _ in range(3)]
    assert statuses == [202, 200, 200]
    assert len(await activities(here, product)) == 1


@pytest.mark.parametrize("given", ["", "sha256=", "sha256=" + "0" * 64, "sha1=abc", "é"])
async def test_a_wrong_or_missing_signature_is_refused_before_anything_is_read(
    here: Installation, product: Product, given: str
) -> None:
    await secret_of(here, product)
    refused = await github(here, product.id, b"{ not json", secret="", x_hub_signature_256=given)
    assert (refused.status, refused.problem["code"]) == (401, "unauthorized")
    assert list(await activities(here, product)) == []


async def test_a_product_that_is_not_there_looks_like_a_wrong_signature(here: Installation, product: Product) -> None:
    known = await github(here, product.id, b"{}", secret="wrong")
    unknown = await github(here, "0123456789abcdef", b"{}", secret="wrong")
    assert (known.status, known.body) == (unknown.status, unknown.body)


async def test_what_is_not_json_is_a_bad_request_and_what_is_not_known_is_ignored(here: Installation, product: Product) -> None:
    secret = await secret_of(here, product)
    assert (await github(here, product.id, b"{ not json", secret=secret)).status == 400
    ignored = await github(here, product.id, json.dumps(PUSH).encode(), secret=secret, event="sponsorship")
    assert ignored.status == 202
    assert json.loads(ignored.body)["result"].startswith("ignored: ")
    ping = json.dumps({"zen": "Keep it simple.", "hook_id": 1, "repository": PUSH["repository"]}).encode()
    assert (await github(here, product.id, ping, secret=secret, event="ping", guid="guid-2")).status == 200
    assert list(await activities(here, product)) == []


async def test_a_body_of_more_than_25_mb_is_too_large(here: Installation, product: Product) -> None:
    secret, piece = await secret_of(here, product), b" " * 1024 * 1024
    app, path = create_app(here.app), f"/webhooks/github/{product.id}"
    assert (await ask(app, "POST", path, {"content-length": str(27 * len(piece))}, [b""])).status == 413
    assert (await ask(app, "POST", path, {}, [piece] * 27)).status == 413, "without an announced length"
    began = time.perf_counter()
    large = json.dumps({**PUSH, "padding": " " * 24_000_000}).encode()
    assert (await github(here, product.id, large, secret=secret)).status == 202
    assert time.perf_counter() - began < 5


async def test_a_delivery_of_vercel_needs_the_secret_of_the_integration(here: Installation) -> None:
    body = json.dumps({"type": "deployment.promoted", "id": "d1", "payload": {"project": {"id": "prj_1"}}}).encode()
    app = create_app(here.app)

    async def send(secret: str, path: str = "/webhooks/vercel") -> Got:
        return await ask(app, "POST", path, {"x-vercel-signature": hmac.new(secret.encode(), body, "sha1").hexdigest()}, [body])

    assert (await send("wrong")).status == 401
    assert json.loads((await send(INTEGRATION)).body) == {"result": "kept: no product has this project"}
    product = await here.a_product()
    assert (await send(INTEGRATION, f"/webhooks/vercel/{product.id}")).status == 401, "that address has a secret of its own"


async def test_a_delivery_of_the_app_store_is_signed_for_its_product(here: Installation, product: Product) -> None:
    setup = await here.app.connections.setup("ada", product.id, "appstore")
    attributes = {"oldValue": "IN_REVIEW", "newValue": "READY_FOR_DISTRIBUTION", "timestamp": "2027-03-01T08:00:00Z"}
    kind = "appStoreVersionAppVersionStateUpdated"
    instance = {"instance": {"data": {"type": "appStoreVersions", "id": "v1"}}}
    data = {"type": kind, "id": "e1", "version": 1, "attributes": attributes, "relationships": instance}
    body = json.dumps({"data": data}).encode()
    signature = hmac.new((setup.secret or "").encode(), body, hashlib.sha256).hexdigest()
    app, path = create_app(here.app), f"/webhooks/appstore/{product.id}"
    assert (await ask(app, "POST", path, {"x-apple-signature": "hmacsha256=" + "0" * 64}, [body])).status == 401
    assert (await ask(app, "POST", path, {"x-apple-signature": f"hmacsha256={signature}"}, [body])).status == 202


async def test_a_session_or_a_token_is_no_signature(here: Installation, product: Product) -> None:
    app = create_app(here.app)
    for headers in ({"authorization": "Bearer sp_x"}, {"cookie": "slothpost_session=x"}):
        assert (await ask(app, "POST", f"/webhooks/github/{product.id}", headers, [b"{}"])).status == 401
    assert (await ask(app, "GET", f"/webhooks/github/{product.id}")).status == 405
