"""Every request has an id, and nobody asks faster than the limit."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest
from web.asking import ask

from graphql_server import serving
from pricebook.editions.reading import Prices
from pricebook.web.app import create_app
from tickler import ManualClock

PRICES = '{ basePrices(store: "1") { nodes { product } } }'


async def test_every_answer_has_the_id_of_its_request_which_a_client_may_choose(clock: ManualClock) -> None:
    async with serving("memory://", clock) as server:
        refused = await server.post(PRICES)
        await server.sign_in("read")
        answered = [await server.post(PRICES) for _ in range(2)]
        ids = {got.headers["x-request-id"] for got in [refused, *answered]}
        assert len(ids) == 3
        assert all(re.fullmatch("[0-9a-f]{16}", id) for id in ids)
        assert (await server.post(PRICES, x_request_id="import-7.line_9")).headers["x-request-id"] == "import-7.line_9"


@pytest.mark.parametrize("id", ["", "x" * 65, "two words", "é", "a\tb"])
async def test_an_id_that_cannot_be_used_is_replaced(clock: ManualClock, id: str) -> None:
    async with serving("memory://", clock) as server:
        await server.sign_in("read")
        got = await server.post(PRICES, x_request_id=id)
        assert (got.status, len(got.headers["x-request-id"])) == (200, 16)


async def test_what_fails_is_logged_with_the_id_and_tells_the_client_nothing(
    clock: ManualClock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.ERROR, "pricebook")

    async def version(_: Prices, store: str) -> Any:
        raise RuntimeError(f"a secret of store {store}")

    monkeypatch.setattr(Prices, "version", version)
    async with serving("memory://", clock) as server:
        await server.book.a_store("1", {"P1": 1999})
        await server.sign_in("read")
        got = await server.get(PRICES, x_request_id="till-1")
        assert (got.status, got.problem["detail"]) == (500, "internal error: see the log of pricebook")
        assert "request till-1 failed" in caplog.text
        assert "a secret of store 1" in caplog.text


async def test_a_token_that_asks_too_fast_waits_while_others_are_answered(clock: ManualClock) -> None:
    async with serving("memory://", clock, rate=0.5) as server:
        await server.sign_in("read")
        first, second = await server.post("{ __typename }"), await server.post("{ __typename }")
        assert (first.status, second.status) == (200, 429)
        assert int(second.headers["retry-after"]) >= 1
        assert "slow down" in second.problem["detail"]
        await server.sign_in("read")
        assert (await server.post("{ __typename }")).status == 200


async def test_other_host_names_are_refused(clock: ManualClock) -> None:
    async with serving("memory://", clock) as server:
        refused = await ask(create_app(server.opened).asgi, "GET", "/graphql", host="prices.example")
        assert refused.status == 421
        assert "set PRICEBOOK_URL to the address that browsers use" in refused.body.decode()
