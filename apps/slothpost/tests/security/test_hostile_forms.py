"""Pages with values that nobody types by mistake: each is answered with a reason, and none with a failure of the server."""

from __future__ import annotations

import itertools
from typing import Any
from urllib.parse import urlencode

import pytest
from page_client import PageClient, page_client

from installation import Installation
from security.page_dangers import dangers_of
from slothpost.web.app import create_app
from slothpost.web.pages.decisions import DECISIONS

VALUES = (
    "\x00", "x" * 20_000, "0001-01-01T00:00", "9999-12-31T23:59", "http://[::1", "-1", "{", "[" * 9_000, '{"time": 1e400}',
    "javascript:alert(1)", '"><script>alert(1)</script>', "' onfocus=alert(1) '", "\r\nset-cookie: a=b", "https://a\x00b/",
)  # fmt: skip
PRODUCT = {
    "name": "Teapot", "url": "", "drafter": "template", "undecided": "hold", "lead_minutes": "720", "grace_minutes": "60",
    "description": "", "domains": "", "samples": "", "rules": "", "banned": "",
}  # fmt: skip
FORMS: dict[str, dict[str, str]] = {
    "/new-product": {"name": "Teapot", "url": ""},
    "/products/{product}/edit": PRODUCT,
    "/products/{product}/own-model": {"model_url": "https://m.example.com", "model": "m", "model_key": ""},
    "/products/{product}/x/plan": {"mon": "09:00", "zone": "UTC", "sun.time": ""},
    "/products/{product}/x/account": {"account": ""},
    "/products/{product}/topic-tag": {"topic_tag": ""},
    "/products/{product}/connect/vercel": {"project": ""},
    "/products/{product}/connect/vercel/own-secret": {"secret": ""},
    "/settings": {"name": "Ada", "zone": "UTC"},
    "/settings/notices": {"notify_url": ""},
    "/settings/tokens": {"token_name": "a", "scope": ""},
    "/write": {"product": "", "channel": "x", "text": "A", "slot_at": ""},
    "/write/check": {"channel": "x", "text": "A"},
    "/posts/{post}/check": {"text": "A"},
}
DECIDED = {
    "approve": ("text", "back"), "edit": ("text", "then"), "regenerate": ("hint",), "reject": ("note",),
    "snooze": ("until", "for"), "move": ("slot_at", "days"), "went-out": ("url",),
}  # fmt: skip
PARSED = {"url", "model_url", "notify_url", "slot_at", "mon"}  # always with every value
PARAMETERS = ("after", "from", "notice", "product", "next", "channel", "text", "slot_at", "state", "code", "error")


@pytest.fixture
async def ids(here: Installation) -> dict[str, str]:
    product = await here.a_channel({"tue": "09:00"})
    return {"product": product.id, "post": (await here.a_draft(product)).id}


@pytest.fixture
async def ada(here: Installation) -> PageClient:
    return await page_client(here.app, await here.a_user())


async def sent(here: Installation, ada: PageClient, path: str, fields: dict[str, str], token: str) -> None:
    browser = PageClient(create_app(here.app), ada.cookie)  # with limits of its own, which these many requests would reach
    answer = await browser.post(path, fields, token=token)
    assert answer.status < 500, (path, {name: value[:40] for name, value in fields.items()}, answer.text)
    location = answer.headers.get("location", "/")
    assert location.startswith("/"), (path, location)
    assert not location.startswith("//"), (path, location)
    assert "\n" not in location, (path, location)
    assert not dangers_of(answer.source), path


async def test_no_value_of_any_field_makes_a_form_fail(
    here: Installation, ada: PageClient, ids: dict[str, str], soak: bool
) -> None:
    token, number = await ada.form_token(), 0
    for path, fields in FORMS.items():
        for name, value in itertools.product(fields, VALUES):
            number += 1
            if soak or name in PARSED or number % 4 == 0:
                await sent(here, ada, path.format(**ids), {**fields, name: value}, token)


async def test_no_value_makes_a_decision_fail(here: Installation, ada: PageClient, ids: dict[str, str]) -> None:
    token = await ada.form_token()
    for action in DECISIONS:
        for name in DECIDED.get(action, ()):
            for value in VALUES:
                await sent(here, ada, f"/posts/{ids['post']}/{action}", {name: value}, token)


async def test_no_parameter_makes_a_page_fail(here: Installation, ada: PageClient, ids: dict[str, str]) -> None:
    pages: tuple[Any, ...] = ("/", "/week", "/activity", "/write", "/accounts/x/callback", "/connections/vercel", "/sign-in")
    for path in (*pages, "/products/{product}/connect/vercel".format(**ids)):
        for value in VALUES:
            query = urlencode(dict.fromkeys(PARAMETERS, value[:300]))
            answer = await PageClient(create_app(here.app), ada.cookie).get(f"{path}?{query}")
            assert answer.status < 500, (path, value[:40], answer.text)
            assert not dangers_of(answer.source), path
