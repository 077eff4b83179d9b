"""Pricebook as functions of AWS Lambda, called with events in their documented shapes."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import boto3
import pytest

from book import MARCH, staged
from pricebook.app import Pricebook, Settings
from pricebook.model import Head, Notice
from pricebook.serverless import handlers
from pricebook.serverless.functions import Functions
from pricebook.web.app import create_app
from tickler import ManualClock, new_key
from tickler.errors import InvalidInput, StoreUnavailable
from tickler.table import ItemId

TOMORROW = MARCH + timedelta(days=1)
KEY = "2026-03-02T00:00:00.000Z"
QUERY = '{ basePrices(store: "1") { nodes { product } } }'


class Context:
    """What Lambda passes beside the event, as far as it is read."""

    aws_request_id = "c6af9ac6-7b61-11e6-9a41-93e8deadbeef"

    def get_remaining_time_in_millis(self) -> int:
        return 12_000


@pytest.fixture
def functions(clock: ManualClock) -> Iterator[Functions]:
    opened = Functions(Settings(store="memory://", base_url="https://prices.example.com"), clock=clock)
    yield opened
    opened.close()


async def a_store(book: Pricebook) -> None:
    """Make a store with a price that counts, and another one from tomorrow on."""
    await book.switch.open_store("1")
    for minor, at in ((199, None), (299, TOMORROW)):
        number = await book.switch.open_edition("1", at)
        await book.switch.stage("1", number, staged({"P1": minor}))
        await book.switch.seal("1", number)


async def a_token(book: Pricebook) -> str:
    return (await create_app(book).tokens.issue("a till", ["read"]))[1]


def http_event(path: str, *, method: str = "GET", body: str | None = None, query: str = "", **headers: str) -> dict[str, Any]:
    """Return an event of an HTTP API of API Gateway, in payload format 2.0."""
    sent = {
        "accept": "*/*",
        "content-length": str(len(body or "")),
        "host": "prices.example.com",
        "user-agent": "curl/8.5.0",
        "x-amzn-trace-id": "Root=1-5e6722a7-cc56xmpl46db7ae02d4da47e",
        "x-forwarded-for": "203.0.113.7",
        "x-forwarded-port": "443",
        "x-forwarded-proto": "https",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        "headers": sent,
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "r3pmxmplak",
            "domainName": "prices.example.com",
            "domainPrefix": "prices",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "203.0.113.7",
                "userAgent": "curl/8.5.0",
            },
            "requestId": "JKJaXmPLvHcESHA=",
            "routeKey": "$default",
            "stage": "$default",
            "time": "10/Mar/2020:05:16:23 +0000",
            "timeEpoch": 1583817383220,
        },
        **({} if body is None else {"body": body}),
        "isBase64Encoded": False,
    }


def url_event(path: str, **options: Any) -> dict[str, Any]:
    """Return an event of the URL of a function: the body comes in base64."""
    event = http_event(path, **options)
    event["requestContext"] |= {
        "authentication": None,
        "authorizer": {},
        "domainName": "id.lambda-url.eu-west-1.on.aws",
        "domainPrefix": "id",
    }
    if "body" in event:
        event |= {"body": base64.b64encode(event["body"].encode()).decode(), "isBase64Encoded": True}
    return event


@pytest.mark.parametrize("event_of", [http_event, url_event])
def test_the_web_application_answers_a_query(functions: Functions, clock: ManualClock, event_of: Any) -> None:
    functions.run(a_store)
    clock.advance(3)
    bearer = f"Bearer {functions.run(a_token)}"
    body = json.dumps({"query": QUERY})
    for _ in range(2):
        event = event_of("/graphql", method="POST", body=body, authorization=bearer, content_type="application/json")
        answer = functions.web(event, Context())
        assert (answer["statusCode"], answer["isBase64Encoded"]) == (200, False)
        assert json.loads(answer["body"])["data"]["basePrices"]["nodes"] == [{"product": "P1"}]
        assert answer["headers"]["content-type"] == "application/json"
        assert answer["headers"]["x-request-id"]


def test_the_web_application_answers_a_query_by_address_and_whether_it_has_changed(
    functions: Functions, clock: ManualClock
) -> None:
    functions.run(a_store)
    clock.advance(3)
    bearer = f"Bearer {functions.run(a_token)}"
    query = "query=%7B%20basePrices(store%3A%20%221%22)%20%7B%20nodes%20%7B%20product%20%7D%20%7D%20%7D"
    first = functions.web(http_event("/graphql", query=query, authorization=bearer), Context())
    assert first["statusCode"] == 200
    again = functions.web(
        http_event("/graphql", query=query, authorization=bearer, if_none_match=first["headers"]["etag"]), Context()
    )
    assert (again["statusCode"], again["body"]) == (304, "")


def test_requests_are_protected_as_everywhere(functions: Functions) -> None:
    refused = functions.web(http_event("/graphql", method="POST", body="{}", content_type="application/json"), Context())
    assert refused["statusCode"] == 401
    foreign = functions.web(http_event("/graphql", host="elsewhere.example.com"), Context())
    assert foreign["statusCode"] in (400, 421)
    assert functions.web(http_event("/health/live"), Context())["statusCode"] == 200


def test_a_beat_delivers_what_is_due(functions: Functions, clock: ManualClock) -> None:
    functions.run(a_store)
    functions.run(lambda book: book.settling.consume())
    clock.set(TOMORROW + timedelta(minutes=1))
    scheduled = {
        "version": "0",
        "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa",
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": "123456789012",
        "time": "2026-03-02T00:01:00Z",
        "region": "eu-west-1",
        "resources": ["arn:aws:events:eu-west-1:123456789012:rule/tick"],
        "detail": {},
    }
    summary = functions.tick(scheduled, Context())
    assert (summary["delivered"], summary["failed"]) == (2, 0)  # the two schedules of the store
    json.dumps(summary)
    assert not functions.run(head_of).editions
    clock.advance(61)
    assert functions.tick(scheduled, Context())["delivered"] == 1, "the sweep"


def test_a_managed_schedule_settles_the_store_that_it_names(functions: Functions, clock: ManualClock) -> None:
    functions.run(a_store)
    clock.set(TOMORROW)
    assert functions.tick({"store": "1"}, Context()) == {"result": "settled 2 editions in 1 rows, and sent 0 events"}
    assert functions.tick({"store": "1"}, Context()) == {"result": "settled 0 editions in 0 rows, and sent 0 events"}


def test_a_stream_event_needs_a_table_on_dynamodb(functions: Functions) -> None:
    with pytest.raises(InvalidInput, match="consume_event is for tables on DynamoDB"):
        functions.stream({"Records": []}, Context())


def test_functions_read_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("STORE", "memory://"), ("URL", "https://prices.example.com")):
        monkeypatch.setenv(f"PRICEBOOK_{name}", value)
    monkeypatch.setenv("TICKLER_KEY", new_key())
    handlers._functions.cache_clear()
    assert handlers.web(http_event("/health/live"), Context())["statusCode"] == 200
    assert handlers.tick({}, Context())["failed"] == 0
    with pytest.raises(InvalidInput):
        handlers.stream({"Records": []}, Context())
    handlers._functions().close()
    handlers._functions.cache_clear()


class StreamedTable:
    """Reads items of a table on DynamoDB Local as its stream has them."""

    def __init__(self, url: str, endpoint: str) -> None:
        self.name = f"{url.removeprefix('dynamodb://').partition('?')[0]}_prices"
        self._client = boto3.client("dynamodb", region_name="eu-west-1", endpoint_url=endpoint)

    def image(self, id: ItemId[Any]) -> dict[str, Any]:
        found: dict[str, Any] = self._client.get_item(TableName=self.name, Key={"pk": {"S": id.pk}, "sk": {"S": id.sk}})["Item"]
        return found

    def record(self, number: int, old: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any]:
        """Return a record of an event, as Lambda gets it from a stream with both images."""
        shown = new or old or {}
        return {
            "eventID": f"c4ca4238a0b923820dcc509a6f7584{number:02}",
            "eventName": "REMOVE" if new is None else "INSERT" if old is None else "MODIFY",
            "eventVersion": "1.1",
            "eventSource": "aws:dynamodb",
            "awsRegion": "eu-west-1",
            "dynamodb": {
                "ApproximateCreationDateTime": 1772323200,
                "Keys": {"pk": shown["pk"], "sk": shown["sk"]},
                **({} if old is None else {"OldImage": old}),
                **({} if new is None else {"NewImage": new}),
                "SequenceNumber": f"{number:021}",
                "SizeBytes": 59,
                "StreamViewType": "NEW_AND_OLD_IMAGES",
            },
            "eventSourceARN": f"arn:aws:dynamodb:eu-west-1:123456789012:table/{self.name}/stream/2026-03-01T00:00:00.000",
        }

    def clean_up(self) -> None:
        self._client.delete_table(TableName=self.name)


def test_the_stream_of_the_table_makes_schedules_and_reports_what_it_could_not_do(
    clock: ManualClock, dynamodb_url: str, dynamodb_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tickler.table.streams.delivery.FIRST_PAUSE_S", 0.0)
    table = StreamedTable(dynamodb_url, dynamodb_endpoint)
    functions = Functions(Settings(store=dynamodb_url, table=table.name), clock=clock)
    try:
        functions.run(lambda book: book.switch.open_store("1", tz="Europe/Berlin"))
        empty = table.image(Head.key.id("1"))
        functions.run(a_change)
        sealed, notice = table.image(Head.key.id("1")), table.image(Notice.key.id("1", 1, "approved"))
        price = {"pk": {"S": "STORE#1"}, "sk": {"S": "ALL#Base#P1#"}, "entity": {"S": "Price"}}
        event = {"Records": [table.record(1, None, price), table.record(2, empty, sealed), table.record(3, None, notice)]}
        with monkeypatch.context() as broken:
            _break_writes(functions, broken)
            assert functions.stream(event, Context()) == {"batchItemFailures": [{"itemIdentifier": f"{2:021}"}]}
        assert functions.run(keys_of) == []
        for _ in range(2):  # Lambda may repeat what was done, too
            assert functions.stream({"Records": event["Records"][1:]}, Context()) == {"batchItemFailures": []}
            assert functions.run(keys_of) == [KEY.replace("03-02T00", "03-14T23")]
        assert functions.run(lambda book: book.db.get(Notice.key.id("1", 1, "approved"))) is None
    finally:
        functions.close()
        table.clean_up()


def _break_writes(functions: Functions, patch: pytest.MonkeyPatch) -> None:
    """Let DynamoDB throttle every write."""

    async def throttled(*args: Any, **kwargs: Any) -> Any:
        raise StoreUnavailable("throttled")

    async def engine(book: Pricebook) -> Any:
        return book.db.engine

    opened = functions.run(engine)
    patch.setattr(opened, "write", throttled)
    patch.setattr(opened.metadata, "write", throttled)


async def a_change(book: Pricebook) -> None:
    number = await book.switch.open_edition("1", date(2026, 3, 15))
    await book.switch.seal("1", number)


async def head_of(book: Pricebook) -> Head:
    head = await book.db.get(Head.key.id("1"))
    assert head is not None
    return head


async def keys_of(book: Pricebook) -> list[str]:
    return [schedule.key for schedule in (await book.t.schedules.list(owner="store/1")).items]
