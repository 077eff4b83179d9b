"""Errors say what to do, and have codes for programs."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from made_prices import AT, MadePrices
from pricebook.errors import HasChanged, InvalidCursor, InvalidField, NotAllowed, NotFound, PriceConflict
from pricebook.graphql.errors import MAX_ERRORS
from query_client import QueryClient
from tickler.errors import InvalidCursor as InvalidTableCursor
from tickler.errors import InvalidInput, StoreUnavailable, TransactionConflict

QUERY = "{ prices(store: 1) { nodes { product } } }"


class Failing(MadePrices):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    async def of_store(self, *_: Any, **__: Any) -> Any:
        raise self.error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotFound("store"), "NOT_FOUND"),
        (NotAllowed("this is settled"), "NOT_ALLOWED"),
        (InvalidCursor("the cursor is too old: begin with the first page"), "INVALID_CURSOR"),
        (InvalidTableCursor("the cursor is not one of ours"), "INVALID_CURSOR"),
        (InvalidInput("product: is empty"), "INVALID_INPUT"),
        (PriceConflict("1", "P1", 7), "CONFLICT"),
        (HasChanged("change set c7", 5), "CONFLICT"),
        (TransactionConflict("somebody else changed this"), "CONFLICT"),
        (StoreUnavailable("the store does not answer"), "UNAVAILABLE"),
    ],
)
async def test_errors_of_the_domain_keep_their_message_and_have_a_code(error: Exception, code: str) -> None:
    assert await QueryClient(Failing(error)).error(QUERY) == (code, str(error))


async def test_an_invalid_field_is_named() -> None:
    answer = await QueryClient(Failing(InvalidField("type", "is unknown"))).ask(QUERY)
    assert answer["errors"][0]["extensions"] == {"code": "INVALID_INPUT", "field": "type"}


async def test_fields_have_the_names_of_the_schema() -> None:
    answer = await QueryClient(Failing(InvalidField("until_day", "is not after the beginning"))).ask(QUERY)
    assert answer["errors"][0]["extensions"]["field"] == "untilDay"
    assert answer["errors"][0]["message"] == "untilDay: is not after the beginning"


async def test_a_conflict_names_the_store_and_the_other_change_set_if_there_is_one() -> None:
    for other, named in (("c7", {"changeSet": "c7"}), (None, {})):
        answer = await QueryClient(Failing(PriceConflict("1", "P1", 7, other))).ask(QUERY)
        assert answer["errors"][0]["extensions"] == {"code": "CONFLICT", "store": "1", **named}


async def test_a_conflict_with_somebody_else_has_the_rev_to_read() -> None:
    answer = await QueryClient(Failing(HasChanged("change set c7", 5))).ask(QUERY)
    assert answer["errors"][0]["extensions"] == {"code": "CONFLICT", "rev": 5}


async def test_what_is_unexpected_goes_to_the_log_only(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "pricebook.graphql")
    error = await QueryClient(Failing(RuntimeError("the password is 1234"))).error(QUERY)
    assert error == ("INTERNAL", "internal error: see the log of pricebook")
    assert "1234" in caplog.text


@pytest.mark.parametrize(
    ("query", "variables", "code", "message"),
    [
        ("{", {}, "GRAPHQL_PARSE_FAILED", "Expected Name"),
        ("{ nothing }", {}, "GRAPHQL_VALIDATION_FAILED", "Cannot query field 'nothing'"),
        ("mutation { changeAll { x } }", {}, "GRAPHQL_VALIDATION_FAILED", "Cannot query field 'changeAll'"),
        ("subscription { prices }", {}, "GRAPHQL_VALIDATION_FAILED", "there are no subscriptions here"),
        ("query ($s: ID!) { prices(store: $s) { __typename } }", {}, "BAD_VARIABLES", "was not provided"),
        ("query ($n: Int) { prices(store: 1, first: $n) { __typename } }", {"n": "3"}, "BAD_VARIABLES", "cannot represent"),
        ("query A { __typename } query B { __typename }", {}, "BAD_REQUEST", "say which one with operationName"),
    ],
)
async def test_requests_that_cannot_be_run_are_refused_with_a_code(
    query: str, variables: dict[str, Any], code: str, message: str
) -> None:
    found, said = await QueryClient(MadePrices()).error(query, **variables)
    assert found == code
    assert message in said


async def test_an_operation_is_chosen_by_its_name() -> None:
    client = QueryClient(MadePrices())
    query = "query A { a: __typename } query B { b: __typename }"
    assert (await client.answer(query, name="B")).body.startswith(b'{"data":{"b":"Query"}')
    assert b"has no operation 'C'" in (await client.answer(query, name="C")).body


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
async def test_an_answer_has_only_so_many_errors(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "pricebook.graphql")
    query = '{ prices(store: 1) { nodes { asOf(at: "1999-01-01T00:00:00Z") { product } } } }'
    answer = await QueryClient(MadePrices(broken=1e-9, nodes=64), now=AT).ask(query)
    assert len(answer["errors"]) == MAX_ERRORS
