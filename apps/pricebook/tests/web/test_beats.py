"""Health checks, and beats from outside where no process stays up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from litestar.types import ASGIApp
from web.asking import ask

from pricebook.app import Pricebook, Settings, open_pricebook
from pricebook.editions.staging import Staged
from pricebook.identifiers import SWEEP_OWNER
from pricebook.model import Head
from pricebook.money import Money
from pricebook.web.app import create_app
from tickler import ManualClock, PythonTarget
from tickler.errors import StoreUnavailable

SECRET = "what only the cron knows"
BEARER = {"authorization": f"Bearer {SECRET}"}


@pytest.fixture
async def book(clock: ManualClock) -> AsyncIterator[Pricebook]:
    async with open_pricebook(Settings(store="memory://", tick_secret=SECRET), clock=clock) as opened:
        yield opened


@pytest.fixture
def app(book: Pricebook) -> ASGIApp:
    return create_app(book).asgi


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_beat_does_what_is_due(book: Pricebook, app: ASGIApp, method: str) -> None:
    done: list[Any] = []

    @book.t.handler("work")
    async def work(delivery: Any) -> None:
        done.append(delivery.payload)

    await book.t.send("tests", "1", PythonTarget("work"), {"n": 1})
    answer = await ask(app, method, "/tick?budget_ms=5000", BEARER)
    assert (answer.status, json.loads(answer.body)["delivered"]) == (200, 1)
    assert done == [{"n": 1}]


async def test_beats_alone_settle_what_counts_and_look_for_what_was_lost(
    book: Pricebook, app: ASGIApp, clock: ManualClock
) -> None:
    await book.switch.open_store("1")
    number = await book.switch.open_edition("1")
    await book.switch.stage("1", number, [Staged("ALL", "Base", "TEA", Money(250, "EUR"))])
    await book.switch.seal("1", number)
    assert (await ask(app, "POST", "/tick", BEARER)).status == 200
    assert [each.owner for each in (await book.t.schedules.list(owner="store/1")).items] == ["store/1"]
    assert await book.t.schedules.get(SWEEP_OWNER, "sweep") is not None
    clock.advance(120)
    assert json.loads((await ask(app, "POST", "/tick", BEARER)).body)["delivered"] >= 2
    head = await book.db.get(Head.key.id("1"))
    assert head is not None
    assert head.editions == {}, "it is settled"


async def test_a_beat_where_a_worker_follows_the_changes_already_leaves_them_to_it(
    book: Pricebook, app: ASGIApp, clock: ManualClock
) -> None:
    async with book.settling.running():
        assert (await ask(app, "POST", "/tick", BEARER)).status == 200
    await book.switch.open_store("1")
    assert await book.settling.consume() > 0, "and it follows them again afterwards"


async def test_beats_may_come_at_once(app: ASGIApp) -> None:
    answers = await asyncio.gather(*(ask(app, "POST", "/tick", BEARER) for _ in range(3)))
    assert [answer.status for answer in answers] == [200, 200, 200]


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer wrong", f"Basic {SECRET}", SECRET, "Bearer é"])
async def test_a_beat_without_the_secret_is_refused(app: ASGIApp, given: str) -> None:
    refused = await ask(app, "POST", "/tick", {"authorization": given, "accept": "text/html"})
    assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")


async def test_wrong_secrets_are_slowed_down(app: ASGIApp) -> None:
    statuses = [(await ask(app, "GET", "/tick", {"authorization": f"Bearer {n}"})).status for n in range(35)]
    assert set(statuses) == {401, 429}
    assert (await ask(app, "GET", "/tick", BEARER)).status == 200


@pytest.mark.parametrize(
    ("query", "field"),
    [("budget_ms=0", "budget_ms"), ("budget_ms=x", "budget_ms"), ("budget_ms=9999999999", "budget_ms"), ("n=1", "n")],
)
async def test_a_parameter_that_cannot_be_used_is_named(app: ASGIApp, query: str, field: str) -> None:
    answer = await ask(app, "GET", f"/tick?{query}", BEARER)
    assert (answer.status, answer.problem["field"]) == (422, field)


async def test_without_a_secret_in_the_settings_there_is_no_such_page(opened: Pricebook) -> None:
    for headers in ({}, BEARER, {"authorization": "Bearer "}, {"authorization": "Bearer None"}):
        assert (await ask(create_app(opened).asgi, "GET", "/tick", headers)).status == 404


async def test_health_checks_answer_under_any_host_name_without_a_token(app: ASGIApp) -> None:
    for path, text in (("/health/live", b"live"), ("/health/ready", b"ready")):
        answer = await ask(app, "GET", path, host="10.0.0.7:8323")
        assert (answer.status, answer.body) == (200, text)


async def test_a_store_that_does_not_answer_is_not_ready(book: Pricebook, app: ASGIApp, monkeypatch: pytest.MonkeyPatch) -> None:
    async def get(*_: object, **__: object) -> object:
        raise StoreUnavailable("the store is away")

    monkeypatch.setattr(type(book.db), "get", get)
    assert (await ask(app, "GET", "/health/ready")).status == 503
    assert (await ask(app, "GET", "/health/live")).status == 200
