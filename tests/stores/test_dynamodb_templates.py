"""Compares the output of `tickler migrate --print-…` with the table that the store creates and the requests of its processes."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from tickler import At, Cron, IndexRow, InvalidInput, ManualClock, Schedule, Tickler, connect
from tickler.aws.address import Address
from tickler.dynamo.client import Client
from tickler.index.advance import ROW_FORMAT
from tickler.model.fire import Settlement
from tickler.model.policy import Policy
from tickler.model.schedule import Id
from tickler.stores.dynamodb import DynamodbStore
from tickler.stores.dynamodb.layout import LISTED, head_key
from tickler.stores.dynamodb.maintenance.templates import COMMANDS, render
from tickler.stores.dynamodb.schema import TTL, table_definition

TABLE = "schedules"
ARN = f"arn:aws:dynamodb:*:*:table/{TABLE}"
FORMS = ["cloudformation", "terraform", "iam"]
NOW_MS = 1_921_406_400_000
HOUR_MS = 3_600_000
HOURLY = Cron("0 * * * *")

Use = tuple[str, str]  # an action, and what it is done to: `table` or the name of an index


class Loader(yaml.SafeLoader):
    """Reads CloudFormation's YAML, and evaluates its functions for a table of that name."""


Loader.add_constructor("!Ref", lambda _, node: {"TableName": TABLE}.get(node.value, node.value))
Loader.add_constructor("!GetAtt", lambda _, node: {"Table.Arn": ARN}.get(node.value, node.value))
Loader.add_constructor("!Sub", lambda _, node: node.value.replace("${Table.Arn}", ARN))


def cloudformation(table: str = TABLE) -> dict[str, Any]:
    template: dict[str, Any] = yaml.load(render("cloudformation", table), Loader)
    return template


def policies() -> dict[str, Any]:
    printed = json.loads(render("iam", TABLE))
    return {"worker": printed["worker"], "api": printed["api"]}


def allowed(role: str) -> set[Use]:
    return {
        (action.removeprefix("dynamodb:"), resource.removeprefix(ARN).removeprefix("/index/") or "table")
        for statement in policies()[role]["Statement"]
        for action in statement["Action"]
        for resource in statement["Resource"]
    }


def blocks(text: str, head: str) -> list[str]:
    """Return the bodies of Terraform's blocks with that head."""
    return [found[2] for found in re.finditer(rf"^( *){re.escape(head)} \{{\n(.*?)^\1\}}$", text, re.MULTILINE | re.DOTALL)]


def arguments(body: str) -> dict[str, Any]:
    """Return the arguments of a block that have literal values."""
    return {name: json.loads(value) for name, value in re.findall(r'^ *(\w+) += (".*"|\[".*\]|true)$', body, re.MULTILINE)}


# What is printed.


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_at_its_top_to_run_migrate_and_what_commands_need(form: str) -> None:
    top = "\n".join(render(form, TABLE).splitlines()[:9])
    assert f"run `tickler migrate --store dynamodb://{TABLE}` once" in top
    for command, actions in COMMANDS.items():
        assert f"{command}: {', '.join(f'dynamodb:{action}' for action in actions)}" in top


def test_there_is_no_sql_form() -> None:
    with pytest.raises(InvalidInput, match=r"dynamodb://schedules cannot be defined in sql: use --print-cloudformation"):
        render("sql", TABLE)


def test_cloudformation_has_the_table_that_the_store_would_make() -> None:
    table = cloudformation()["Resources"]["Table"]
    beyond = {
        "StreamSpecification": {"StreamViewType": "NEW_AND_OLD_IMAGES"},
        "TimeToLiveSpecification": {"AttributeName": TTL, "Enabled": True},
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
        "DeletionProtectionEnabled": True,
    }
    assert table["Type"] == "AWS::DynamoDB::Table"
    assert table["Properties"] == table_definition(TABLE) | beyond


def test_cloudformation_keeps_the_table_when_the_stack_goes() -> None:
    table = cloudformation()["Resources"]["Table"]
    assert (table["DeletionPolicy"], table["UpdateReplacePolicy"]) == ("Retain", "Retain")


def test_cloudformation_tells_what_it_made() -> None:
    outputs = {name: output["Value"] for name, output in cloudformation()["Outputs"].items()}
    assert outputs == {
        "TableName": "Table",
        "TableArn": ARN,
        "StreamArn": "Table.StreamArn",
        "WorkerPolicyArn": "WorkerPolicy",
        "ApiPolicyArn": "ApiPolicy",
    }


@pytest.mark.parametrize("name", ["schedules", "my.table_2-b", "123", "1.5", "1e5", "0x10", "true", "off", "null", "2010-09-09"])
def test_cloudformation_reads_any_name_of_a_table_as_text(name: str) -> None:
    assert cloudformation(name)["Parameters"]["TableName"] == {"Type": "String", "Default": name}


def test_terraform_has_the_table_that_the_store_would_make() -> None:
    (table,) = blocks(render("terraform", TABLE), 'resource "aws_dynamodb_table" "tickler"')
    definition = table_definition(TABLE)
    own = arguments(table.partition("\n\n")[0])
    assert own == {
        "billing_mode": definition["BillingMode"],
        "hash_key": "pk",
        "range_key": "sk",
        "stream_enabled": True,
        "stream_view_type": "NEW_AND_OLD_IMAGES",
        "deletion_protection_enabled": True,
    }
    attributes = [arguments(body) for body in blocks(table, "attribute")]
    assert [(each["name"], each["type"]) for each in attributes] == [
        (each["AttributeName"], each["AttributeType"]) for each in definition["AttributeDefinitions"]
    ]
    assert [arguments(body) for body in blocks(table, "global_secondary_index")] == [
        _terraform_index(index) for index in definition["GlobalSecondaryIndexes"]
    ]
    assert [arguments(body) for body in blocks(table, "ttl")] == [{"attribute_name": TTL, "enabled": True}]
    assert [arguments(body) for body in blocks(table, "point_in_time_recovery")] == [{"enabled": True}]
    assert [arguments(body) for body in blocks(table, "lifecycle")] == [{"prevent_destroy": True}]


def _terraform_index(index: Mapping[str, Any]) -> dict[str, Any]:
    (partition, sort), projection = index["KeySchema"], index["Projection"]
    wanted = {
        "name": index["IndexName"],
        "hash_key": partition["AttributeName"],
        "range_key": sort["AttributeName"],
        "projection_type": projection["ProjectionType"],
        "non_key_attributes": projection.get("NonKeyAttributes"),
    }
    return {name: value for name, value in wanted.items() if value is not None}


def test_terraform_defines_every_key_once_and_nothing_else() -> None:
    """Terraform refuses a table whose attributes are not just its keys."""
    text = render("terraform", TABLE)
    keys = set(re.findall(r'(?:hash|range)_key += "(\w+)"', text))
    assert sorted(arguments(body)["name"] for body in blocks(text, "attribute")) == sorted(keys)


# Policies.


@pytest.mark.parametrize("role", ["worker", "api"])
def test_a_policy_names_its_actions_and_has_no_scan(role: str) -> None:
    actions = [action for statement in policies()[role]["Statement"] for action in statement["Action"]]
    assert all(re.fullmatch(r"dynamodb:[A-Za-z]+", action) for action in actions)
    assert "dynamodb:Scan" not in actions
    assert all(statement["Effect"] == "Allow" for statement in policies()[role]["Statement"])


@pytest.mark.parametrize("role", ["worker", "api"])
def test_all_forms_have_the_same_policies(role: str) -> None:
    resource = cloudformation()["Resources"][f"{role.title()}Policy"]
    assert resource["Type"] == "AWS::IAM::ManagedPolicy"
    assert resource["Properties"]["PolicyDocument"] == policies()[role]
    text = render("terraform", TABLE)
    (document,) = blocks(text, f'data "aws_iam_policy_document" "tickler_{role}"')
    found = [
        {
            "Sid": arguments(body)["sid"],
            "Effect": "Allow",
            "Action": re.findall(r'"(dynamodb:\w+)"', body),
            "Resource": [f"{ARN}{index}" for index in re.findall(r"aws_dynamodb_table\.tickler\.arn}?(/index/\w+|)", body)],
        }
        for body in blocks(document, "statement")
    ]
    assert found == policies()[role]["Statement"]
    assert (
        f"policy      = data.aws_iam_policy_document.tickler_{role}.json"
        in blocks(text, f'resource "aws_iam_policy" "tickler_{role}"')[0]
    )


def uses(operation: str, request: Mapping[str, Any]) -> Iterator[Use]:
    """Yield the permissions that a request needs. Each statement needs the one of its own action, however it is sent."""
    if operation == "BatchExecuteStatement":
        for statement in request["Statements"]:
            verb = statement["Statement"].split()[0].title()
            yield f"PartiQL{verb}", "table"
    elif operation == "TransactWriteItems":
        for part in request["TransactItems"]:
            yield f"{next(iter(part))}Item", "table"
    else:
        yield operation, request.get("IndexName", "table")


@pytest.fixture
def table(dynamodb_url: str) -> str:
    return urlsplit(dynamodb_url).netloc


@pytest.fixture
async def hand(dynamodb_endpoint: str) -> AsyncIterator[Client]:
    """A client that writes past the store, and whose requests are not recorded."""
    client = Client(Address(region="eu-west-1", endpoint=dynamodb_endpoint))
    await client.open()
    yield client
    await client.close()


@pytest.fixture
def used(hand: Client, monkeypatch: pytest.MonkeyPatch) -> set[Use]:
    """The permissions used since this was last cleared."""
    recorded: set[Use] = set()
    call = Client.call

    async def recording(self: Client, operation: str, request: Mapping[str, object]) -> dict[str, Any]:
        if self is not hand:
            recorded.update(uses(operation, request))
        return await call(self, operation, request)

    monkeypatch.setattr(Client, "call", recording)
    return recorded


async def overwrite(hand: Client, table: str, key: str, name: str, value: Mapping[str, str]) -> None:
    request = {
        "TableName": table,
        "Key": head_key(Id("u1", key)),
        "UpdateExpression": "SET #name = :value",
        "ExpressionAttributeNames": {"#name": name},
        "ExpressionAttributeValues": {":value": value},
    }
    await hand.call("UpdateItem", request)


def schedule(key: str, **fields: object) -> Schedule:
    return Schedule(owner="u1", key=key, when=HOURLY, **fields)  # type: ignore[arg-type]  # any field of a schedule


def row(key: str) -> IndexRow:
    return IndexRow("u1", key, HOURLY, NOW_MS - 1)


async def keep_records(t: Tickler) -> None:
    await t.records.put("robot", "host:1", {"beats": 1}, expires_at=NOW_MS + 5000)
    await t.records.put("robot", "host:1", {"beats": 2})
    await t.records.get("robot", "host:1")
    await t.records.list("robot")
    assert await t.records.delete("robot", "host:1")


def delivered(key: str, **fields: object) -> Schedule:
    """A schedule with a target, of an owner that nothing else here uses."""
    return Schedule(owner="u2", key=key, when=HOURLY, target="https://example.org", **fields)  # type: ignore[arg-type]  # as above


async def deliver(t: Tickler) -> None:
    """Do what a worker does: claim, retry, mark dead, wake waiting fires."""
    now_ms = NOW_MS + 3 * HOUR_MS
    assert await t.fires.claim(now_ms, worker="w", except_owners=["u2"]) == []
    fires = {claim.schedule.key: claim.fire for claim in await t.fires.claim(now_ms, worker="w")}
    first, second = fires["digest"], fires["catches-up"]
    assert first is not None
    assert second is not None
    assert await t.fires.extend([first, second], now_ms + 60_000) == []
    settlements = [
        Settlement(Id("u2", "digest"), first, "retry", None, now_ms),
        Settlement(Id("u2", "catches-up"), second, "dead", None),
    ]
    assert await t.fires.settle(settlements) == []
    claims = await t.fires.lease(now_ms, worker="w")
    assert sorted(claim.schedule.key for claim in claims) == ["catches-up", "digest"]
    done = [Settlement(claim.schedule.id, claim.fire, "done", None, delete_schedule=True) for claim in claims]
    assert await t.fires.settle(done) == []


async def look_after(t: Tickler, fire_id: str) -> None:
    """Do what people do with fires."""
    assert [fire.id for fire in (await t.fires.list(state="dead")).items] == [fire_id]
    assert (await t.fires.list(owner="u2", key="fails")).items == []
    await t.fires.retry(fire_id)
    assert await t.fires.get(fire_id) is not None
    await t.fires.cancel(fire_id)
    assert len((await t.fires.history("u2", "fails")).items) == 2
    await t.trigger("u2", "fails")
    assert await t.schedules.delete("u2", "fails")


async def test_a_worker_is_allowed_what_it_asks_for_and_nothing_else(
    dynamodb_url: str, table: str, hand: Client, used: set[Use]
) -> None:
    clock = ManualClock(NOW_MS)
    async with connect(dynamodb_url, create=True, clock=clock) as t:
        await t.index.upsert_many([row("bad"), row("newer"), row("elsewhere"), row("plain")])
        await t.schedules.put(Schedule(owner="u1", key="once", when=At("2030-11-20T12:00:01Z"), payload="x" * 2000))
        await t.schedules.put_many([delivered("digest"), delivered("catches-up", policy=Policy(missed="all", overlap="wait"))])
        await t.records.put("robot", "gone", {}, expires_at=NOW_MS + 1)
    await overwrite(hand, table, "bad", "when_text", {"S": "never"})
    await overwrite(hand, table, "newer", "format", {"N": str(ROW_FORMAT + 1)})
    await overwrite(hand, table, "elsewhere", "tz", {"S": "Mars/Olympus_Mons"})
    clock.advance(1)
    used.clear()
    async with connect(dynamodb_url, create=False, clock=clock) as t:
        assert {claimed.key for claimed in await t.index.claim_due(t.now_ms())} == {"once", "plain"}
        assert {aside.key for aside in await t.index.set_aside()} == {"bad", "elsewhere"}
        await t.index.count_set_aside()
        await overwrite(hand, table, "bad", "when_text", {"S": str(HOURLY)})
        assert await t.index.restore() == 1
        await t.index.next_due()
        await t.index.count()
        await t.index.upsert_many([row("plain"), row("another")])
        await t.index.remove("u1", "plain")
        await t.schedules.get("u1", "once")
        assert await t.schedules.delete("u1", "once")
        await deliver(t)
        await keep_records(t)
        assert await t.records.prune() == 1
    assert used == allowed("worker")


async def test_an_api_process_is_allowed_what_it_asks_for_and_nothing_else(
    dynamodb_url: str, table: str, hand: Client, used: set[Use]
) -> None:
    clock = ManualClock(NOW_MS)
    async with connect(dynamodb_url, create=True, clock=clock) as t:
        await t.index.upsert(row("bad"))
        await overwrite(hand, table, "bad", "when_text", {"S": "never"})
        await t.index.claim_due(NOW_MS)
        assert await t.index.count_set_aside() == 1
        await overwrite(hand, table, "bad", "when_text", {"S": str(HOURLY)})
        await t.schedules.put(delivered("fails"))
        (claim,) = await t.fires.claim(NOW_MS + HOUR_MS, worker="w")
        dead = claim.fire
        assert dead is not None
        await t.fires.settle([Settlement(Id("u2", "fails"), dead, "dead", None)])
    used.clear()
    async with connect(dynamodb_url, create=False, clock=clock) as t:
        assert await t.index.count_set_aside() == 0
        for payload in (None, "x" * 2000, "y" * 2000, "z"):  # in the head, and in a body of its own
            await t.schedules.put(schedule("a", payload=payload))
        await t.schedules.update(schedule("a", payload="x" * 2000), version=4)
        await t.schedules.put_many([schedule("b"), schedule("c")])
        await t.schedules.pause("u1", "b")
        await t.schedules.resume("u1", "b")
        await t.schedules.declare("u1", [schedule("a"), schedule("b"), schedule("d", payload="x" * 2000)])
        await t.schedules.pause_all("u1")
        await t.schedules.get("u1", "d")
        assert len((await t.schedules.list(owner="u1")).items) == 3
        assert len((await t.schedules.list(state="paused")).items) == 3
        assert len((await t.schedules.list()).items) == 4
        assert await t.schedules.delete("u1", "d")
        assert await t.schedules.delete_all("u1") == 2
        await t.index.set_aside()
        await look_after(t, dead.id)
        await keep_records(t)
    assert used == allowed("api")


# Commands.


def needed(command: str) -> set[Use]:
    return {(action, "table") for action in COMMANDS[command]}


async def test_migrating_a_table_from_the_template_needs_the_fewest_permissions(
    dynamodb_url: str, table: str, hand: Client, used: set[Use]
) -> None:
    properties = cloudformation()["Resources"]["Table"]["Properties"] | {"TableName": table}
    ttl = properties.pop("TimeToLiveSpecification")
    properties["StreamSpecification"]["StreamEnabled"] = True
    del properties["PointInTimeRecoverySpecification"], properties["DeletionProtectionEnabled"]
    await hand.call("CreateTable", properties)
    await hand.call("UpdateTimeToLive", {"TableName": table, "TimeToLiveSpecification": ttl})
    await DynamodbStore(table, hand.address, label=table).migrate()
    assert used == needed("tickler migrate")
    async with connect(f"dynamodb://{table}?region=eu-west-1&endpoint={hand.endpoint}") as t:
        assert await t.index.count() == 0


@pytest.mark.adds_index
async def test_commands_ask_for_what_every_form_says(dynamodb_url: str, table: str, hand: Client, used: set[Use]) -> None:
    definition = table_definition(table)
    definition["GlobalSecondaryIndexes"] = [each for each in definition["GlobalSecondaryIndexes"] if each["IndexName"] != LISTED]
    definition["AttributeDefinitions"] = [each for each in definition["AttributeDefinitions"] if each["AttributeName"] != LISTED]
    await hand.call("CreateTable", definition)
    store = DynamodbStore(table, hand.address, label=table, shards=4, refresh_ms=1)
    await store.migrate()
    adding = needed("tickler migrate, where something is missing") - {("CreateTable", "table")}
    assert used == needed("tickler migrate") | adding
    async with connect(dynamodb_url, create=False, clock=ManualClock(NOW_MS)) as t:
        await t.index.upsert(row("a"))
    used.clear()
    await store.migrate()
    await store.reshard(8)
    assert used == needed("tickler migrate") | needed("tickler migrate --shards")
    used.clear()
    await store.migrate()
    await store.move_home("us-east-1")
    assert used == needed("tickler migrate") | needed("tickler migrate --home")
    used.clear()
    assert [item async for item in store.malformed_items()] == []
    assert used == needed("tickler doctor --scan")
    await hand.call("DeleteTable", {"TableName": table})
    used.clear()
    await store.migrate()
    making = needed("tickler migrate, where something is missing") - {("UpdateTable", "table")}
    assert used == needed("tickler migrate") | making
