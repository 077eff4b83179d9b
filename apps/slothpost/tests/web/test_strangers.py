"""Every route of the application, with the ids of another user: nothing is shown, and nothing changes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest
from api_client import tokens_of
from litestar.routes import HTTPRoute
from web.asking import Got, ask

from installation import Installation
from slothpost.model import Account, Activity, Channel, Connection, IssuedToken, Notice, Post, Product, Slot, Unrouted, User
from slothpost.web.app import create_app, routes
from slothpost.web.pages.decisions import DECISIONS
from tickler.web import Web

MARK = "Zanzibar"  # in everything that the victim has
INSTANT = "2027-03-03T10:00:00Z"
OWNED = {"product", "post", "account", "token", "user"}
CODE = "A" * 43
# What the API takes, so that nothing but the owner is wrong with a request.
BODIES = {
    "plan": b'{"days": {"mon": "08:00"}}',
    "posts": b'{"text": "mine"}',
    "edit": b'{"text": "mine"}',
    "snooze": f'{{"until": "{INSTANT}"}}'.encode(),
    "move": f'{{"slot_at": "{INSTANT}"}}'.encode(),
    "went-out": b'{"url": "https://x.example/eve/status/1"}',
}
# Pages that anybody may see, and what has a secret of its own.
PUBLIC = re.compile(r"/(sign-in(/.*)?|join/.*|health/live|api/openapi\.json)")
SIGNED = re.compile(r"/(webhooks/.*|tick)")


class Victim(NamedTuple):
    """What one user has, by the names that paths give to ids."""

    product: Product
    ids: Mapping[str, Sequence[str]]


class Asked(NamedTuple):
    """One request to one route. `owned`: its path has an id of the victim."""

    method: str
    path: str
    owned: bool

    @property
    def body(self) -> bytes:
        return BODIES.get(self.path.rpartition("/")[2], b"{}")


@pytest.fixture
async def victim(here: Installation) -> Victim:
    product = await here.a_product(name=MARK, description=MARK)
    account = await here.an_account()
    await here.app.accounts.use("ada", product.id, "x", account.id)
    await here.app.plans.set_plan("ada", product.id, "x", {"tue": "09:00", "thu": "09:00"})
    await here.an_activity(product, f"{MARK} gets an airport")
    posts = [await here.a_draft(product, f"{MARK} {number}") for number in range(2)]
    await here.app.review.approve("ada", posts[0].id, by="Ada")
    await here.app.connections.setup("ada", product.id, "github")
    unrouted = Unrouted(id="d1", project="prj_1", owner="team_of_ada", event="deployment", summary=MARK, received_at=here.now())
    await here.app.db.create(unrouted)
    ada = await here.a_user()
    tokens = tokens_of(here.app)
    await tokens.issue(ada, MARK, writes=True)
    (issued,) = await tokens.list(ada)
    ids = {
        "product": [product.id],
        "post": [post.id for post in posts],
        "account": [account.id],
        "token": [issued.id],
        "user": ["ada"],
        "channel": ["x"],
        "network": ["x"],
        "source": ["github", "vercel", "appstore"],
        "action": list(DECISIONS),
        "change": ["pause", "resume"],
        "code": [CODE],
    }
    return Victim(product, ids)


class Stranger:
    """Sends requests as somebody: with a session, with a token, or as nobody."""

    def __init__(self, here: Installation, headers: Mapping[str, str], form_token: str = "") -> None:
        self._here = here
        self._headers = headers
        self._form_token = form_token

    async def __call__(self, asked: Asked, fields: Mapping[str, str], query: str = "") -> Got:
        sent, body = dict(self._headers), b""
        if asked.method != "GET":
            is_api = asked.path.startswith("/api/")
            sent["content-type"] = "application/json" if is_api else "application/x-www-form-urlencoded"
            body = asked.body if is_api else urlencode({**fields, "form_token": self._form_token}).encode()
        app = create_app(self._here.app)  # each has its own limits, which these many requests would reach
        return await ask(app, asked.method, f"{asked.path}{query}", sent, [body])


@pytest.fixture
async def eve(here: Installation) -> Stranger:
    """A user with a product of her own, signed in."""
    await here.a_user("eve")
    await here.a_product("eve", name="Evening")
    web: Web[User] = Web(here.app.t, "slothpost", user=here.app.users.get)
    cookie = (await web.sessions.cookie_for("eve")).partition(";")[0]
    shown = await ask(create_app(here.app), "GET", "/settings", {"cookie": cookie, "accept": "text/html"})
    (form_token, *_) = re.findall(r'name="form_token" value="([0-9a-f]{64})"', shown.body.decode())
    return Stranger(here, {"cookie": cookie, "accept": "text/html", "origin": "http://localhost"}, form_token)


def every_request(victim: Victim) -> Iterator[Asked]:
    """Fill the path of each route with every id that it may have. A name that is unknown here has to be told what it is."""
    for route in routes().routes:
        if not isinstance(route, HTTPRoute):
            continue
        names = re.findall(r"\{(\w+):\w+\}", route.path)
        kinds = [name.removesuffix("_id") for name in names]
        assert set(kinds) <= victim.ids.keys(), f"{route.path}: what is an id here? Add it to the victim"
        for values in itertools.product(*(victim.ids[kind] for kind in kinds)):
            path = route.path
            for name, value in zip(names, values, strict=True):
                path = re.sub(rf"\{{{name}:\w+\}}", value, path)
            for method in sorted(route.methods - {"OPTIONS"}):
                yield Asked(method, path, not OWNED.isdisjoint(kinds))


def form_of(victim: Victim) -> dict[str, str]:
    """Return every field that a form has, with the victim's ids where it has ids."""
    return {
        **{name: victim.ids[name][0] for name in ("product", "post", "account", "token", "user", "channel")},
        "text": "mine",
        "url": "https://x.example/eve/status/1",
        "until": "2027-03-03T10:00",
        "slot_at": "2027-03-03T10:00",
        "name": "Eve",
        "zone": "UTC",
        "tz": "UTC",
        "token_name": "mine",
        "mon": "08:00",
    }  # fmt: skip


async def snapshot(here: Installation, victim: Victim) -> list[Any]:
    """Return everything that the victim has, and when it is due."""
    product, db = victim.product.id, here.app.db
    selections: list[Any] = [
        *(kind.key("ada") for kind in (User, Account, Post, Notice, IssuedToken)),
        *(kind.key(product) for kind in (Product, Channel, Connection, Activity, Slot)),
    ]
    items = [item for selection in selections for item in [each async for each in db.iterate(selection)]]
    return [*items, *(await here.app.t.schedules.list(owner="ada")).items]


async def test_no_route_shows_or_changes_what_another_user_has(here: Installation, victim: Victim, eve: Stranger) -> None:
    before, form = await snapshot(here, victim), form_of(victim)
    query = "?" + urlencode({name: form[name] for name in ("product", "post", "account", "channel")})
    wrong: list[str] = []
    number = 0
    for asked in every_request(victim):
        if asked.path in ("/sign-out", "/sign-out-everywhere"):
            continue  # they end the session of this test
        for more in ("", query) if asked.method == "GET" and not asked.path.startswith("/api/") else ("",):
            number += 1
            got = await eve(asked, form, more)
            allowed = (401, 403, 404) if SIGNED.fullmatch(asked.path) else (403, 404)
            if got.status >= 500 or (asked.owned and got.status not in allowed):
                wrong.append(f"{asked.method} {asked.path}{more} answered {got.status}: {got.body[:200]!r}")
            if MARK.encode() in got.body:
                wrong.append(f"{asked.method} {asked.path}{more} shows {MARK}")
            if await snapshot(here, victim) != before:
                wrong.append(f"{asked.method} {asked.path}{more} changes something")
                before = await snapshot(here, victim)
    assert wrong == []
    assert number > 100, "not all routes were found"


async def test_a_token_reaches_no_more_than_its_user(here: Installation, victim: Victim) -> None:
    token = await tokens_of(here.app).issue(await here.a_user("eve"), "mine", writes=True)
    mallory = Stranger(here, {"authorization": f"Bearer {token}"})
    before, wrong = await snapshot(here, victim), []
    for asked in every_request(victim):
        got = await mallory(asked, form_of(victim))
        is_open = asked.path.startswith("/api/") or PUBLIC.fullmatch(asked.path) is not None
        is_right = got.status < 500 if is_open and not asked.owned else got.status in (401, 403, 404)
        if not is_right or MARK.encode() in got.body:
            wrong.append(f"{asked.method} {asked.path} answered {got.status}: {got.body[:200]!r}")
    assert wrong == []
    assert await snapshot(here, victim) == before
    filtered = Asked("GET", "/api/posts", owned=True)
    assert (await mallory(filtered, {}, f"?product={victim.product.id}")).status == 404


async def test_whoever_is_not_signed_in_is_sent_to_sign_in(here: Installation, victim: Victim) -> None:
    before, wrong = await snapshot(here, victim), []
    for asked, accept in itertools.product(every_request(victim), ("text/html", "application/json")):
        if PUBLIC.fullmatch(asked.path):
            continue
        got = await Stranger(here, {"accept": accept})(asked, form_of(victim))
        sent_to_sign_in = got.status == 303 and got.headers["location"].startswith("/sign-in")
        if got.status not in (401, 403, 404) and not sent_to_sign_in:
            wrong.append(f"{asked.method} {asked.path} answered {got.status}")
        if MARK.encode() in got.body:
            wrong.append(f"{asked.method} {asked.path} shows {MARK}")
    assert wrong == []
    assert await snapshot(here, victim) == before
