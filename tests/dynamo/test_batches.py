"""Many items in few requests: each statement has its own outcome, in order, whatever happens to the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from random import Random

import pytest

from dynamo.pauses import Pauses
from dynamodb_proxy import FaultProxy
from tickler.aws.address import Address
from tickler.dynamo.batches import MAX_CONCURRENT, Outcome, execute_many, get_many, run_concurrently, write_many
from tickler.dynamo.client import Client
from tickler.dynamo.codec import Item
from tickler.dynamo.statements import Condition, Statement, delete, insert, update
from tickler.errors import StoreUnavailable

DONE = Outcome(None, None)


def key(number: int) -> Item:
    return {"pk": {"S": f"key {number:04}"}}


def an_item(number: int, by: str = "me") -> Item:
    return {**key(number), "by": {"S": by}}


def by(who: str) -> Condition:
    return {"by": {"S": who}}


def inserts(table: str, count: int) -> list[Statement]:
    return [insert(table, an_item(number)) for number in range(count)]


def puts(count: int, by: str = "me") -> list[dict[str, object]]:
    return [{"PutRequest": {"Item": an_item(number, by)}} for number in range(count)]


async def everything(client: Client, table: str) -> list[Item]:
    items: list[Item] = (await client.call("Scan", {"TableName": table, "ConsistentRead": True}))["Items"]
    return in_order(items)


def in_order(items: list[Item]) -> list[Item]:
    return sorted(items, key=lambda item: str(item["pk"]["S"]))


def sizes(proxy: FaultProxy, operation: str) -> list[int]:
    """Return the number of items or statements in each request."""
    counted = []
    for asked, body in proxy.bodies:
        if asked == operation == "BatchExecuteStatement":
            counted.append(len(body["Statements"]))
        elif asked == operation:
            (of_table,) = body["RequestItems"].values()
            counted.append(len(of_table["Keys"] if isinstance(of_table, dict) else of_table))
    return sorted(counted)


@pytest.fixture
def proxy(proxy: FaultProxy) -> FaultProxy:
    proxy.log_bodies = True
    return proxy


@pytest.fixture
async def impatient(proxy: FaultProxy) -> AsyncIterator[Client]:
    """A client that makes one attempt."""
    client = Client(Address(region="eu-west-1", endpoint=proxy.endpoint, attempts=1))
    await client.open()
    yield client
    await client.close()


class TestExecuteMany:
    async def test_outcomes_come_in_the_order_of_the_statements_over_several_requests(
        self, client: Client, direct: Client, proxy: FaultProxy, table: str
    ) -> None:
        await write_many(direct, table, [{"PutRequest": {"Item": an_item(number, "them")}} for number in range(0, 60, 7)])
        outcomes = await execute_many(client, inserts(table, 60))
        assert [outcome.code for outcome in outcomes if isinstance(outcome, Outcome)] == [
            "DuplicateItem" if number % 7 == 0 else None for number in range(60)
        ]
        assert sizes(proxy, "BatchExecuteStatement") == [10, 25, 25]
        assert [item["by"]["S"] for item in await everything(direct, table)] == [
            "them" if number % 7 == 0 else "me" for number in range(60)
        ]

    async def test_a_lost_condition_carries_what_is_there(self, client: Client, direct: Client, table: str) -> None:
        await write_many(direct, table, [*puts(2, "me"), {"PutRequest": {"Item": an_item(2, "them")}}])
        won, gone, lost = await execute_many(
            client,
            [
                update(table, key(0), {"n": {"N": "1"}}, by("me")),
                update(table, key(9), {"n": {"N": "1"}}, by("me")),
                delete(table, key(2), by("me")),
            ],
        )
        assert won == DONE
        assert gone == Outcome("ConditionalCheckFailed", None)
        assert lost == Outcome("ConditionalCheckFailed", an_item(2, "them"))
        assert isinstance(gone, Outcome)
        assert isinstance(lost, Outcome)
        assert (gone.lost, lost.lost, lost.done) == (True, True, False)
        assert await everything(direct, table) == [{**an_item(0), "n": {"N": "1"}}, an_item(1), an_item(2, "them")]

    async def test_an_update_may_ask_for_the_item_as_it_was(self, client: Client, direct: Client, table: str) -> None:
        await write_many(direct, table, puts(1))
        (outcome,) = await execute_many(client, [update(table, key(0), {"n": {"N": "1"}}, by("me"), ["by"], old=True)])
        assert outcome == Outcome(None, an_item(0))
        assert await everything(direct, table) == [{**key(0), "n": {"N": "1"}}]

    async def test_an_attribute_that_must_be_missing_is_a_condition_too(self, client: Client, direct: Client, table: str) -> None:
        await write_many(direct, table, puts(1))
        statements = [update(table, key(0), {"n": {"N": "1"}}, {"by": None}), delete(table, key(0), {"n": None})]
        (lost,) = await execute_many(client, statements[:1])
        (won,) = await execute_many(client, statements[1:])
        assert (lost, won) == (Outcome("ConditionalCheckFailed", an_item(0)), DONE)
        assert await everything(direct, table) == []

    async def test_a_statement_that_is_wrong_fails_alone(self, client: Client, direct: Client, table: str) -> None:
        statements = [*inserts(table, 2), insert(table, {"other": {"S": "a"}})]
        assert [outcome == DONE for outcome in await execute_many(client, statements)] == [True, True, False]
        assert len(await everything(direct, table)) == 2

    async def test_statements_that_are_throttled_are_repeated_and_only_those(
        self, client: Client, direct: Client, proxy: FaultProxy, pauses: Pauses, table: str
    ) -> None:
        proxy.throttle_statements = 0.5
        pauses.during(2, lambda: setattr(proxy, "throttle_statements", 0.0))
        assert await execute_many(client, inserts(table, 25)) == [DONE] * 25
        first, *_ = asked = sizes(proxy, "BatchExecuteStatement")[::-1]
        assert first == 25
        assert sum(asked) == 25 + proxy.served["throttle_statements"], "nothing that was done is done again"
        assert client.usage.retries == {"ThrottlingError": proxy.served["throttle_statements"]}
        assert proxy.served["throttle_statements"] > 0
        assert await everything(direct, table) == [an_item(number) for number in range(25)]

    async def test_a_statement_that_is_always_throttled_says_so_at_last(
        self, client: Client, direct: Client, proxy: FaultProxy, pauses: Pauses, table: str
    ) -> None:
        proxy.throttle_statements = 1.0
        assert await execute_many(client, inserts(table, 2)) == [Outcome("ThrottlingError", None)] * 2
        assert pauses.attempts == [1, 2, 3]
        assert proxy.served["throttle_statements"] == 4 * 2
        assert client.usage.retries == {"ThrottlingError": 3 * 2}
        assert await everything(direct, table) == []

    async def test_a_request_that_fails_does_not_hide_the_outcomes_of_the_others(
        self, impatient: Client, direct: Client, proxy: FaultProxy, table: str
    ) -> None:
        proxy.reset_before = 0.5
        outcomes = await execute_many(impatient, inserts(table, 20 * 25))
        lost = proxy.served["reset_before"]
        assert 0 < lost < 20, "some, not all"
        assert sum(isinstance(outcome, StoreUnavailable) for outcome in outcomes) == lost * 25
        done = [an_item(number) for number, outcome in enumerate(outcomes) if outcome == DONE]
        assert await everything(direct, table) == done
        assert len(done) == (20 - lost) * 25

    async def test_a_repetition_that_fails_does_not_hide_what_was_done_before_it(
        self, client: Client, direct: Client, proxy: FaultProxy, pauses: Pauses, table: str
    ) -> None:
        proxy.throttle_statements = 0.5
        pauses.during(1, lambda: setattr(proxy, "reset_before", 1.0))
        outcomes = await execute_many(client, inserts(table, 25))
        done = [an_item(number) for number, outcome in enumerate(outcomes) if outcome == DONE]
        assert 0 < proxy.served["throttle_statements"] < 25, "some, not all"
        assert proxy.served["reset_before"] == 4
        assert len(done) == 25 - proxy.served["throttle_statements"]
        assert await everything(direct, table) == done
        assert all(isinstance(outcome, StoreUnavailable) for outcome in outcomes if outcome != DONE)

    async def test_what_cannot_even_be_sent_fails_its_own_request(self, client: Client, direct: Client, table: str) -> None:
        cannot_be_sent = Statement("INSERT", [{"S": object()}])
        outcomes = await execute_many(client, [*inserts(table, 24), cannot_be_sent, insert(table, an_item(99))])
        assert [type(outcome) for outcome in outcomes] == [TypeError] * 25 + [Outcome]
        assert await everything(direct, table) == [an_item(99)]

    async def test_an_answer_that_was_lost_is_found_in_the_items(
        self, client: Client, proxy: FaultProxy, pauses: Pauses, table: str
    ) -> None:
        proxy.reset_after = 1.0
        pauses.during(1, lambda: setattr(proxy, "reset_after", 0.0))
        assert await execute_many(client, inserts(table, 3)) == [Outcome("DuplicateItem", None)] * 3
        proxy.reset_after = 1.0
        pauses.during(2, lambda: setattr(proxy, "reset_after", 0.0))
        claim = [update(table, key(number), {"by": {"S": "claimer"}}, by("me")) for number in range(3)]
        outcomes = await execute_many(client, claim)
        assert outcomes == [Outcome("ConditionalCheckFailed", an_item(number, "claimer")) for number in range(3)]
        assert proxy.served == {"reset_after": 2}

    async def test_where_nothing_is_asked_nothing_is_sent(self, client: Client, proxy: FaultProxy, table: str) -> None:
        assert await execute_many(client, []) == []
        assert await get_many(client, table, []) == []
        await write_many(client, table, [])
        assert proxy.bodies == []
        assert client.usage.requests == {}


class TestGetMany:
    async def test_more_than_a_hundred_are_read_in_several_requests_and_missing_ones_are_not_among_them(
        self, client: Client, direct: Client, proxy: FaultProxy, table: str
    ) -> None:
        await write_many(direct, table, puts(230))
        found = await get_many(client, table, [key(number) for number in range(240)][::-1])
        assert in_order(found) == [an_item(number) for number in range(230)]
        assert sizes(proxy, "BatchGetItem") == [40, 100, 100]

    async def test_keys_that_were_left_are_asked_for_again_and_only_those(
        self, client: Client, direct: Client, proxy: FaultProxy, pauses: Pauses, table: str
    ) -> None:
        await write_many(direct, table, puts(30))
        proxy.unprocessed = 0.5
        pauses.during(3, lambda: setattr(proxy, "unprocessed", 0.0))
        found = await get_many(client, table, [key(number) for number in range(30)])
        assert in_order(found) == [an_item(number) for number in range(30)]
        assert proxy.served["unprocessed"] > 0
        assert sum(sizes(proxy, "BatchGetItem")) == 30 + proxy.served["unprocessed"]
        assert client.usage.retries == {"UnprocessedKeys": len(pauses.attempts)}
        repeated = [body["RequestItems"][table] for asked, body in proxy.bodies if asked == "BatchGetItem"]
        assert all(each["ConsistentRead"] for each in repeated)

    async def test_keys_that_are_always_left_are_not_found_missing(
        self, client: Client, direct: Client, proxy: FaultProxy, pauses: Pauses, table: str
    ) -> None:
        await write_many(direct, table, puts(2))
        proxy.unprocessed = 1.0
        with pytest.raises(StoreUnavailable, match=rf"DynamoDB left reads of {table} unprocessed 4 times: .* repeat the call$"):
            await get_many(client, table, [key(0), key(1)])
        assert proxy.served["unprocessed"] == 4 * 2
        assert pauses.attempts == [1, 2, 3]

    async def test_a_request_that_fails_fails_the_whole(
        self, impatient: Client, direct: Client, proxy: FaultProxy, table: str
    ) -> None:
        await write_many(direct, table, puts(1))
        proxy.reset_before = 0.5
        with pytest.raises(StoreUnavailable):
            await get_many(impatient, table, [key(number) for number in range(2000)])
        assert 0 < proxy.served["reset_before"] < 20, "some, not all"


class TestWriteMany:
    async def test_items_are_put_and_deleted_25_at_a_time(
        self, client: Client, direct: Client, proxy: FaultProxy, table: str
    ) -> None:
        await write_many(client, table, puts(60))
        assert await everything(direct, table) == [an_item(number) for number in range(60)]
        await write_many(client, table, [{"DeleteRequest": {"Key": key(number)}} for number in range(30)])
        assert await everything(direct, table) == [an_item(number) for number in range(30, 60)]
        assert sizes(proxy, "BatchWriteItem") == [5, 10, 25, 25, 25]

    async def test_items_that_were_left_are_written_again_and_only_those(
        self, client: Client, direct: Client, proxy: FaultProxy, pauses: Pauses, table: str
    ) -> None:
        proxy.unprocessed = 0.5
        pauses.during(3, lambda: setattr(proxy, "unprocessed", 0.0))
        await write_many(client, table, puts(25))
        assert await everything(direct, table) == [an_item(number) for number in range(25)]
        assert proxy.served["unprocessed"] > 0
        assert sum(sizes(proxy, "BatchWriteItem")) == 25 + proxy.served["unprocessed"]
        assert client.usage.retries == {"UnprocessedItems": len(pauses.attempts)}

    async def test_items_that_are_always_left_are_said_to_be(
        self, client: Client, direct: Client, proxy: FaultProxy, pauses: Pauses, table: str
    ) -> None:
        proxy.unprocessed = 1.0
        with pytest.raises(
            StoreUnavailable, match=rf"DynamoDB left 3 writes to {table} unprocessed 4 times: .* repeat the call$"
        ):
            await write_many(client, table, puts(3))
        assert proxy.served["unprocessed"] == 4 * 3
        assert pauses.attempts == [1, 2, 3]
        assert await everything(direct, table) == []


class TestInTurns:
    async def test_results_come_in_order_with_what_was_raised_in_its_place(self) -> None:
        async def work(number: int) -> int:
            for _ in range(30 - number):  # the last are done first
                await asyncio.sleep(0)
            if number % 5 == 0:
                raise StoreUnavailable(f"{number}")
            return number * 10

        results = await run_concurrently(range(30), work)
        assert [str(each) if isinstance(each, Exception) else each for each in results] == [
            f"{number}" if number % 5 == 0 else number * 10 for number in range(30)
        ]

    async def test_only_so_many_are_under_way_at_once(self) -> None:
        under_way: set[int] = set()
        most = 0

        async def work(number: int) -> None:
            nonlocal most
            under_way.add(number)
            most = max(most, len(under_way))
            for _ in range(Random(number).randrange(5)):
                await asyncio.sleep(0)
            under_way.remove(number)

        await run_concurrently(range(50), work)
        assert most == MAX_CONCURRENT

    async def test_a_cancellation_is_not_taken_for_a_result(self) -> None:
        started, never = asyncio.Event(), asyncio.Event()

        async def work(number: int) -> None:
            started.set()
            await never.wait()

        waiting = asyncio.create_task(run_concurrently(range(3), work))
        await started.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
