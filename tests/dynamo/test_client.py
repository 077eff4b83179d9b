"""Single requests and their faults: which are retried, what is counted, and what the errors say."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dynamo.pauses import Pauses
from dynamo.scripted_service import Answer, ScriptedService, refusal
from dynamodb_proxy import FaultProxy
from dynamodb_server import DynamodbServer
from tickler.aws.address import Address
from tickler.dynamo.client import FIRST_PAUSE_S, MAX_PAUSE_S, Client, pause
from tickler.dynamo.codec import Item
from tickler.dynamo.failures import ConditionFailed, RequestRefused, TransactionCancelled
from tickler.errors import StoreUnavailable

LOST = {"ServerDisconnectedError", "ClientOSError"}  # an end of the connection, as it is seen from here
HTML = b"<html><body><h1>503 Service Unavailable</h1></body></html>"


@asynccontextmanager
async def asking(endpoint: str, *, timeout_s: float = 10.0, attempts: int = 3, connections: int = 32) -> AsyncIterator[Client]:
    address = Address(region="eu-west-1", endpoint=endpoint, timeout_s=timeout_s, attempts=attempts, connections=connections)
    client = Client(address)
    await client.open()
    try:
        yield client
    finally:
        await client.close()


def an_item(key: str, **attributes: str) -> Item:
    return {name: {"S": value} for name, value in {"pk": key, **attributes}.items()}


def put_new(table: str, item: Item) -> dict[str, object]:
    return {
        "TableName": table,
        "Item": item,
        "ConditionExpression": "attribute_not_exists(pk)",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


async def get(client: Client, table: str, key: str) -> Item | None:
    answer = await client.call("GetItem", {"TableName": table, "Key": an_item(key), "ConsistentRead": True})
    item: Item | None = answer.get("Item")
    return item


class TestWhatIsRepeated:
    @pytest.mark.parametrize(
        ("fault", "codes"),
        [
            ("throttle", {"ProvisionedThroughputExceeded"}),
            ("error_500", {"InternalServerError"}),
            ("reset_before", LOST),
            ("reset_after", LOST),
        ],
    )
    async def test_a_request_is_repeated_until_it_is_answered(
        self, fault: str, codes: set[str], client: Client, direct: Client, proxy: FaultProxy, pauses: Pauses, table: str
    ) -> None:
        setattr(proxy, fault, 1.0)
        pauses.during(2, lambda: setattr(proxy, fault, 0.0))
        await client.call("PutItem", {"TableName": table, "Item": an_item("a")})
        assert await get(direct, table, "a") == an_item("a")
        assert proxy.served == {fault: 2}
        assert pauses.attempts == [1, 2]
        assert client.usage.requests == {"PutItem": 3}
        assert client.usage.retries.total() == 2
        assert client.usage.retries.keys() <= codes

    async def test_a_write_whose_answer_was_lost_was_done_and_its_repetition_finds_that(
        self, client: Client, proxy: FaultProxy, pauses: Pauses, table: str
    ) -> None:
        proxy.reset_after = 1.0
        pauses.during(1, lambda: setattr(proxy, "reset_after", 0.0))
        with pytest.raises(ConditionFailed) as failed:
            await client.call("PutItem", put_new(table, an_item("a", by="me")))
        assert failed.value.item == an_item("a", by="me"), "by which a writer recognises its own"
        assert proxy.served == {"reset_after": 1}
        assert proxy.requests == {"PutItem": 2}

    async def test_an_answer_that_is_late_is_not_waited_for(self, proxy: FaultProxy, pauses: Pauses, table: str) -> None:
        proxy.delay_s = 5.0
        async with asking(proxy.endpoint, timeout_s=0.2, attempts=2) as client:
            with pytest.raises(StoreUnavailable, match=r"GetItem failed after 2 attempts: no response within 0\.2 s: check"):
                await get(client, table, "a")
            assert client.usage.requests == {"GetItem": 2}
            assert client.usage.retries == {"TimeoutError": 1}
        assert proxy.served["delay_s"] >= 1

    @pytest.mark.usefixtures("pauses")
    async def test_a_page_of_a_load_balancer_is_a_failure_like_any_other(self, service: ScriptedService) -> None:
        service.answers = [Answer(503, HTML), Answer(502, b""), Answer(200, b'{"TableNames": []}')]
        async with asking(service.endpoint) as client:
            assert await client.call("ListTables", {}) == {"TableNames": []}
            assert client.usage.retries == {"InternalServer": 2}
        assert len(service.asked) == 3

    @pytest.mark.usefixtures("pauses")
    async def test_a_failure_of_the_service_is_repeated_by_whatever_name_it_goes(self, service: ScriptedService) -> None:
        service.answers = [refusal("NameOfTomorrowException", "again", 500)]
        async with asking(service.endpoint) as client:
            await client.call("ListTables", {})
            assert client.usage.retries == {"InternalServer": 1}
        assert len(service.asked) == 2

    @pytest.mark.usefixtures("pauses")
    @pytest.mark.parametrize("body", [HTML, b'{"Item": {"pk"', b"[]", b""], ids=["a page", "half of one", "a list", "nothing"])
    async def test_a_200_that_is_no_answer_of_dynamodb_is_not_taken_for_one(self, body: bytes, service: ScriptedService) -> None:
        service.answers = [Answer(200, body), Answer(200, b'{"TableNames": []}')]
        async with asking(service.endpoint) as client:
            assert await client.call("ListTables", {}) == {"TableNames": []}
            assert client.usage.retries == {"InternalServer": 1}

    @pytest.mark.usefixtures("pauses")
    @pytest.mark.parametrize(
        "name",
        [
            "ProvisionedThroughputExceededException",
            "RequestLimitExceeded",
            "ThrottlingException",
            "LimitExceededException",
            "TransactionConflictException",
            "TransactionInProgressException",
            "ReplicatedWriteConflictException",
            "InternalServerError",
            "ServiceUnavailable",
            "RequestTimeoutException",
        ],
    )
    async def test_what_the_service_says_to_repeat_is_repeated(self, name: str, service: ScriptedService) -> None:
        service.answers = [refusal(name, "again")]
        async with asking(service.endpoint) as client:
            await client.call("GetItem", {})
            assert client.usage.retries.total() == 1
        assert len(service.asked) == 2


class TestGivingUp:
    @pytest.mark.parametrize(
        ("fault", "why"),
        [
            ("throttle", r"throttled \(ProvisionedThroughputExceeded\): raise the table's capacity"),
            ("error_500", r"the proxy failed this request \(InternalServerError\): try again"),
            ("reset_before", r"no response \(.*\): check the endpoint and the network"),
        ],
        ids=["throttle", "error_500", "reset_before"],
    )
    async def test_it_says_what_was_asked_how_often_and_what_to_do(
        self, fault: str, why: str, client: Client, proxy: FaultProxy, pauses: Pauses, table: str
    ) -> None:
        setattr(proxy, fault, 1.0)
        with pytest.raises(StoreUnavailable, match=rf"^{proxy.endpoint}: PutItem failed after 4 attempts: {why}"):
            await client.call("PutItem", {"TableName": table, "Item": an_item("a")})
        assert proxy.served == {fault: 4}
        assert proxy.requests == {}
        assert pauses.attempts == [1, 2, 3], "nobody waits after the last attempt"
        assert client.usage.retries.total() == 3

    @pytest.mark.usefixtures("pauses", "aws")
    async def test_where_nobody_listens_it_says_so(self) -> None:
        async with ScriptedService() as gone:
            endpoint = gone.endpoint
        async with asking(endpoint, attempts=2) as client:
            with pytest.raises(
                StoreUnavailable, match=r"ListTables failed after 2 attempts: no response \(ClientConnectorError: .*check the"
            ):
                await client.call("ListTables", {})

    @pytest.mark.usefixtures("pauses")
    async def test_a_load_balancer_is_quoted(self, service: ScriptedService) -> None:
        service.answers = [Answer(503, HTML)] * 2
        async with asking(service.endpoint, attempts=2) as client:
            with pytest.raises(
                StoreUnavailable, match=r"attempts: <html><body><h1>503 Service Unavailable.*\(InternalServer\): try again"
            ):
                await client.call("ListTables", {})


class TestWhatIsNotRepeated:
    async def test_a_request_that_is_wrong_is_refused_at_once(
        self, client: Client, proxy: FaultProxy, pauses: Pauses, table: str
    ) -> None:
        with pytest.raises(
            RequestRefused, match=r"(required keys was not given a value|Missing the key pk in the item) \(Validation\)$"
        ) as refused:
            await client.call("PutItem", {"TableName": table, "Item": {"other": {"S": "a"}}})
        assert refused.value.code == "Validation"
        assert proxy.requests == {"PutItem": 1}
        assert pauses.attempts == []
        assert client.usage.retries == {}

    async def test_a_table_that_is_not_there_is_said_to_be_so(self, client: Client, proxy: FaultProxy) -> None:
        with pytest.raises(RequestRefused) as refused:
            await client.call("DescribeTable", {"TableName": "no_such_table"})
        assert refused.value.code == "ResourceNotFound"
        assert proxy.requests == {"DescribeTable": 1}

    async def test_a_condition_that_failed_carries_what_is_there(self, client: Client, proxy: FaultProxy, table: str) -> None:
        there = an_item("a", by="them")
        await client.call("PutItem", put_new(table, there))
        with pytest.raises(ConditionFailed) as failed:
            await client.call("PutItem", put_new(table, an_item("a", by="me")))
        assert (failed.value.code, failed.value.item) == ("ConditionalCheckFailed", there)
        assert proxy.requests == {"PutItem": 2}

    async def test_a_condition_that_failed_on_nothing_carries_nothing(self, client: Client, table: str) -> None:
        request = {"TableName": table, "Key": an_item("a"), "ConditionExpression": "attribute_exists(pk)"}
        with pytest.raises(ConditionFailed) as failed:
            await client.call("DeleteItem", {**request, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"})
        assert failed.value.item is None

    async def test_a_cancelled_transaction_carries_a_reason_for_each_part(
        self, client: Client, proxy: FaultProxy, table: str
    ) -> None:
        there = an_item("b", by="them")
        await client.call("PutItem", put_new(table, there))
        parts = [{"Put": put_new(table, an_item(key, by="me"))} for key in ("a", "b")]
        with pytest.raises(TransactionCancelled) as cancelled:
            await client.call("TransactWriteItems", {"TransactItems": parts})
        assert cancelled.value.reasons == [(None, None), ("ConditionalCheckFailed", there)]
        assert cancelled.value.code == "TransactionCanceled"
        assert proxy.requests["TransactWriteItems"] == 1
        assert await get(client, table, "a") is None

    @pytest.mark.usefixtures("pauses")
    @pytest.mark.parametrize("status", [301, 302, 307, 308])
    async def test_a_redirect_is_not_followed(self, status: int, service: ScriptedService) -> None:
        service.answers = [Answer(status, b"moved", {"Location": f"{service.endpoint}/elsewhere"})]
        async with asking(service.endpoint) as client:
            with pytest.raises(RequestRefused, match=rf"moved \(HTTP {status}\)$"):
                await client.call("ListTables", {})
        assert [asked.path for asked in service.asked] == ["/"]

    @pytest.mark.usefixtures("pauses")
    async def test_a_page_that_refuses_is_quoted(self, service: ScriptedService) -> None:
        service.answers = [Answer(403, b"<html>blocked by the firewall</html>")]
        async with asking(service.endpoint) as client:
            with pytest.raises(RequestRefused, match=r"<html>blocked by the firewall</html> \(HTTP 403\)$"):
                await client.call("ListTables", {})
        assert len(service.asked) == 1


class TestWhatIsCounted:
    @pytest.fixture(autouse=True)
    def _judge(self, dynamodb_server: DynamodbServer) -> None:
        if not dynamodb_server.is_judge:
            pytest.skip(f"NOT TESTED: {dynamodb_server.engine} does not count units as DynamoDB does")

    @pytest.mark.parametrize(
        ("operation", "request_body", "read", "written"),
        [
            ("GetItem", {"Key": an_item("a")}, 0.5, 0.0),
            ("GetItem", {"Key": an_item("a"), "ConsistentRead": True}, 1.0, 0.0),
            ("GetItem", {"Key": an_item("long"), "ConsistentRead": True}, 2.0, 0.0),
            ("Scan", {"ConsistentRead": True}, 2.0, 0.0),
            ("PutItem", {"Item": an_item("new")}, 0.0, 1.0),
            ("PutItem", {"Item": an_item("new", text="x" * 2000)}, 0.0, 2.0),
            ("DeleteItem", {"Key": an_item("a")}, 0.0, 1.0),
        ],
    )
    async def test_units_are_counted_as_they_are_reported(
        self,
        operation: str,
        request_body: dict[str, object],
        read: float,
        written: float,
        client: Client,
        direct: Client,
        table: str,
    ) -> None:
        for item in (an_item("a"), an_item("long", text="x" * 5000)):
            await direct.call("PutItem", {"TableName": table, "Item": item})
        await client.call(operation, {"TableName": table, **request_body})
        assert (client.usage.read_units, client.usage.write_units) == (read, written)

    async def test_units_of_several_tables_and_of_batches_are_added(self, client: Client, table: str) -> None:
        puts = [{"PutRequest": {"Item": an_item(key)}} for key in "abc"]
        await client.call("BatchWriteItem", {"RequestItems": {table: puts}})
        assert client.usage.write_units == 3.0
        await client.call("TransactWriteItems", {"TransactItems": [{"Put": {"TableName": table, "Item": an_item("d")}}]})
        assert client.usage.write_units == 5.0, "a transaction costs double"
        await client.call(
            "BatchGetItem", {"RequestItems": {table: {"Keys": [an_item("a"), an_item("b")], "ConsistentRead": True}}}
        )
        assert (client.usage.read_units, client.usage.write_units) == (2.0, 5.0)

    @pytest.mark.parametrize("operation", ["ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction"])
    async def test_statements_ask_what_they_cost(self, operation: str, service: ScriptedService) -> None:
        service.answers = [Answer(200, b'{"ConsumedCapacity": [{"TableName": "t", "CapacityUnits": 4.0}]}')]
        async with asking(service.endpoint) as client:
            await client.call(operation, {})
            assert client.usage.write_units == 4.0
        assert service.asked[0].body == b'{"ReturnConsumedCapacity":"TOTAL"}'

    async def test_what_costs_nothing_does_not_ask(self, client: Client, proxy: FaultProxy, table: str) -> None:
        proxy.log_bodies = True
        await client.call("DescribeTable", {"TableName": table})
        assert proxy.bodies == [("DescribeTable", {"TableName": table})]
        assert (client.usage.read_units, client.usage.write_units) == (0.0, 0.0)

    async def test_a_request_that_was_repeated_counts_each_time_and_costs_once(
        self, client: Client, proxy: FaultProxy, pauses: Pauses, table: str
    ) -> None:
        proxy.throttle = 1.0
        pauses.during(1, lambda: setattr(proxy, "throttle", 0.0))
        await client.call("PutItem", {"TableName": table, "Item": an_item("a")})
        assert proxy.served == {"throttle": 1}
        assert client.usage.requests == {"PutItem": 2}
        assert client.usage.write_units == 1.0


class TestTheClock:
    async def test_the_time_there_is_known_from_its_answers(self, client: Client, table: str) -> None:
        assert client.server_now_ms is None
        await get(client, table, "a")
        assert client.server_now_ms is not None
        assert abs(client.server_now_ms - time.time() * 1000) < 2000

    async def test_the_time_there_is_known_from_a_refusal_too(self, service: ScriptedService) -> None:
        service.answers = [Answer(400, b"{}", {"Date": "Thu, 15 Mar 2012 23:56:23 GMT"})]
        async with asking(service.endpoint) as client:
            with pytest.raises(RequestRefused):
                await client.call("ListTables", {})
            assert client.server_now_ms == 1_331_855_783_500


class TestOpeningAndClosing:
    async def test_a_client_that_is_closed_or_not_open_yet_says_so_and_asks_nothing(self, service: ScriptedService) -> None:
        client = Client(Address(region="eu-west-1", endpoint=service.endpoint))
        with pytest.raises(StoreUnavailable, match="this client is closed: use it inside `async with`"):
            await client.call("ListTables", {})
        await client.open()
        await client.close()
        with pytest.raises(StoreUnavailable, match="this client is closed"):
            await client.call("ListTables", {})
        assert service.asked == []

    async def test_a_client_is_opened_and_closed_any_number_of_times(self, service: ScriptedService) -> None:
        client = Client(Address(region="eu-west-1", endpoint=service.endpoint))
        for _ in range(2):
            await client.open()
            await client.open()
            await client.call("ListTables", {})
            await client.close()
            await client.close()
        assert len(service.asked) == 2

    async def test_nothing_is_left_after_closing(self, service: ScriptedService) -> None:
        tasks, threads = asyncio.all_tasks(), set(threading.enumerate())
        async with asking(service.endpoint) as client:
            await asyncio.gather(*(client.call("ListTables", {}) for _ in range(5)))
            assert service.connections > 0
        async with asyncio.timeout(5):
            await service.nobody_connected.wait()
        assert set(threading.enumerate()) == threads
        assert {task for task in asyncio.all_tasks() - tasks if "RequestHandler" not in repr(task)} == set()

    @pytest.mark.usefixtures("pauses")
    async def test_a_request_under_way_when_the_client_closes_is_told(self, service: ScriptedService) -> None:
        arrived, never = asyncio.Event(), asyncio.Event()

        async def hold() -> None:
            arrived.set()
            await never.wait()

        service.answers = [Answer(before=hold)]
        async with asking(service.endpoint) as client:
            under_way = asyncio.create_task(client.call("ListTables", {}))
            await arrived.wait()
        with pytest.raises(StoreUnavailable, match="this client is closed"):
            await under_way
        never.set()

    @pytest.mark.usefixtures("pauses")
    async def test_requests_wait_for_a_connection_longer_than_for_a_server_to_accept_one(
        self, service: ScriptedService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        go = asyncio.Event()
        service.answers = [Answer(before=go.wait)]
        monkeypatch.setattr("tickler.dynamo.client.CONNECT_TIMEOUT_S", 0.25)
        asyncio.get_running_loop().call_later(0.5, go.set)
        async with asking(service.endpoint, connections=1) as client:
            await asyncio.gather(*(client.call("ListTables", {}) for _ in range(3)))
            assert (len(service.asked), service.connections) == (3, 1)
            assert client.usage.retries == {}


class TestPauses:
    @pytest.fixture
    def slept(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        slept: list[float] = []

        async def sleep(delay_s: float) -> None:
            slept.append(delay_s)

        monkeypatch.setattr("tickler.dynamo.client.asyncio.sleep", sleep)
        return slept

    async def test_a_pause_is_anywhere_between_nothing_and_its_ceiling(self, slept: list[float]) -> None:
        for _ in range(500):
            await pause(3)
        ceiling = FIRST_PAUSE_S * 4
        assert all(0 <= each <= ceiling for each in slept)
        assert min(slept) < ceiling * 0.1
        assert max(slept) > ceiling * 0.9

    async def test_the_ceiling_doubles_with_each_attempt_up_to_the_longest(
        self, slept: list[float], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tickler.dynamo.client.random.uniform", lambda least, most: most)
        for attempt in range(1, 10):
            await pause(attempt)
        assert slept == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, MAX_PAUSE_S, MAX_PAUSE_S]
