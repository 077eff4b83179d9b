"""`tickler doctor`, run as people run it: on a store of Tickler's, and on a DynamoDB table of theirs."""

from __future__ import annotations

import functools
import itertools
import os
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import boto3
import msgspec
import pytest

import tickler
from dynamodb_server import DynamodbServer
from tickler import Cron, IndexRow
from tickler.dynamodb import DynamoIndex
from tickler.observe import Diagnosis
from tickler.observe.doctor import PASSED_MESSAGES
from tickler.observe.scan_findings import Scan

from .preloaded import run_tickler

REGION = "eu-west-1"
INDEX = "scheduleStatus-nextRunAt-index"
NOW_MS = 1_921_406_400_000
TIMEOUT_S = 30.0

KEYED = [{"AttributeName": "scheduleStatus", "KeyType": "HASH"}, {"AttributeName": "nextRunAt", "KeyType": "RANGE"}]
TYPES = [
    {"AttributeName": "productId", "AttributeType": "S"},
    {"AttributeName": "scheduleStatus", "AttributeType": "S"},
    {"AttributeName": "nextRunAt", "AttributeType": "N"},
]

_numbers = itertools.count()


class OldTable:
    """One that was there before its index: it has items that DynamoDB would now refuse to write."""

    def __init__(self, server: DynamodbServer) -> None:
        self.name = f"products-{os.getpid()}-{next(_numbers)}"
        self.url = f"dynamodb://{self.name}?region={REGION}&endpoint={server.endpoint}"
        self.boto: Any = boto3.client("dynamodb", region_name=REGION, endpoint_url=server.endpoint)
        self.boto.create_table(
            TableName=self.name,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=TYPES[:1],
            KeySchema=[{"AttributeName": "productId", "KeyType": "HASH"}],
        )

    def put(self, product: str, **attributes: dict[str, Any]) -> None:
        self.boto.put_item(TableName=self.name, Item={"productId": {"S": product}, **attributes})

    def put_many(self, products: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """Named after what they are, and numbered."""
        items = [{"productId": {"S": f"{name}{n}"}, **attributes} for n, (name, attributes) in enumerate(products)]
        for start in range(0, len(items), 25):
            requests = [{"PutRequest": {"Item": item}} for item in items[start : start + 25]]
            self.boto.batch_write_item(RequestItems={self.name: requests})

    def add_index(self) -> None:
        index = {"IndexName": INDEX, "KeySchema": KEYED, "Projection": {"ProjectionType": "ALL"}}
        self.boto.update_table(TableName=self.name, AttributeDefinitions=TYPES, GlobalSecondaryIndexUpdates=[{"Create": index}])

    def wait_for_index(self) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while self._index_status() != "ACTIVE":
            assert time.monotonic() < deadline, "the index was not filled in time"
            time.sleep(0.05)

    def indexed(self) -> list[str]:
        """What the query of the story finds."""
        found = self.boto.query(
            TableName=self.name,
            IndexName=INDEX,
            KeyConditionExpression="scheduleStatus = :active AND nextRunAt <= :now",
            ExpressionAttributeValues={":active": {"S": "active"}, ":now": {"N": str(NOW_MS)}},
        )
        return sorted(item["productId"]["S"] for item in found["Items"])

    def _index_status(self) -> str:
        (index,) = self.boto.describe_table(TableName=self.name)["Table"]["GlobalSecondaryIndexes"]
        return str(index["IndexStatus"])


@pytest.fixture
def table(dynamodb_server: DynamodbServer) -> Iterator[OldTable]:
    table = OldTable(dynamodb_server)
    yield table
    table.boto.delete_table(TableName=table.name)


def scanned(table: OldTable, folder: Path) -> Scan:
    """As programs are told."""
    done = run_tickler("doctor", "--scan", "--json", "--store", table.url, folder=folder)
    assert (done.returncode, done.stderr) == (1, "")
    scan = msgspec.json.decode(done.stdout, type=Scan)
    assert not scan.healthy
    return scan


REMOVE = """--update-expression 'REMOVE #a' --expression-attribute-names '{"#a": "%s"}'"""
ACTIVE = {"S": "active"}
DUE = {"N": str(NOW_MS)}


@pytest.mark.adds_index
def test_items_that_no_index_finds_are_named_with_their_attribute_and_the_remedy(
    table: OldTable, dynamodb_server: DynamodbServer, tmp_path: Path
) -> None:
    table.put("good", scheduleStatus=ACTIVE, nextRunAt=DUE)
    table.put("text", scheduleStatus=ACTIVE, nextRunAt={"S": "2030-11-20T12:00:00Z"})
    table.put("half", scheduleStatus=ACTIVE)
    table.put("empty", scheduleStatus={"S": ""}, nextRunAt=DUE)
    table.put("paused", nextRunAt=DUE)
    table.put("neither")
    table.add_index()
    table.wait_for_index()
    # DynamoDB leaves an item of another type out of a new index, and so does ministack; DynamoDB Local 3.3 puts text into it.
    assert table.indexed() == (["good", "text"] if dynamodb_server.is_judge else ["good"])

    done = run_tickler("doctor", "--scan", "--store", table.url, folder=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    header, *lines = done.stdout.splitlines()
    assert header.lower().split() == ["severity", "check", "count", "says", "example", "remedy"]
    removing = f'aws dynamodb update-item --table-name {table.name} --key \'{{"productId": {{"S": "%s"}}}}\''
    assert sorted(re.split("  +", line)[2:] for line in lines) == [
        ["1", f"1 item is left out of an index: {says}", f"productId='{product}'", f"{remedy}: `{removing % product} {rest}`"]
        for says, product, remedy, rest in (
            (
                f"nextRunAt is missing, but scheduleStatus is set, so {INDEX} leaves the item out",
                "half",
                "write both, or neither",
                REMOVE % "scheduleStatus",
            ),
            (
                f"nextRunAt is text, but the key of {INDEX} is a number",
                "text",
                "write it again as a number, or remove it",
                REMOVE % "nextRunAt",
            ),
            (
                f"scheduleStatus is empty, so {INDEX} leaves the item out",
                "empty",
                "set it, or remove it",
                REMOVE % "scheduleStatus",
            ),
        )
    ]
    assert all(line.startswith("critical  unfound ") for line in lines)


@pytest.mark.adds_index
def test_nulls_and_flags_in_the_place_of_keys_are_named(table: OldTable, dynamodb_server: DynamodbServer, tmp_path: Path) -> None:
    """A null is what the bug of the story would have written, had it written anything."""
    table.put("good", scheduleStatus=ACTIVE, nextRunAt=DUE)
    table.put("null", scheduleStatus=ACTIVE, nextRunAt={"NULL": True})
    table.put("flag", scheduleStatus={"BOOL": True}, nextRunAt=DUE)
    table.add_index()
    if not dynamodb_server.is_judge:  # DynamoDB Local 3.3 never ends filling an index over these
        table.wait_for_index()
        assert table.indexed() == ["good"]
    scan = scanned(table, tmp_path)
    assert sorted((finding.example, finding.says) for finding in scan.findings) == [
        (
            "productId='flag'",
            f"1 item is left out of an index: scheduleStatus is true or false, but the key of {INDEX} is text",
        ),
        ("productId='null'", f"1 item is left out of an index: nextRunAt is a null, but the key of {INDEX} is a number"),
    ]
    assert {(finding.check, finding.severity) for finding in scan.findings} == {("unfound", "critical")}


@pytest.mark.adds_index
def test_a_table_in_which_every_item_fits_has_nothing_wrong(table: OldTable, tmp_path: Path) -> None:
    table.put("good", scheduleStatus=ACTIVE, nextRunAt=DUE)
    table.put("paused")
    table.add_index()
    table.wait_for_index()
    assert table.indexed() == ["good"]
    done = run_tickler("doctor", "--scan", "--store", table.url, folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "no problems found\n", "")


@pytest.mark.adds_index
async def test_an_item_that_a_claim_has_set_aside_is_named_once_and_with_the_reason(
    table: OldTable, dynamodb_server: DynamodbServer, tmp_path: Path
) -> None:
    table.put("[/bold]", scheduleStatus=ACTIVE, nextRunAt=DUE, schedule={"S": "[red]nonsense"})
    table.add_index()
    table.wait_for_index()
    async with DynamoIndex(
        table.name, key="productId", when="schedule", region=REGION, endpoint=dynamodb_server.endpoint
    ) as index:
        assert await index.claim_due(NOW_MS) == []
    done = run_tickler("doctor", "--scan", "--store", table.url, folder=tmp_path, COLUMNS="20")
    assert done.returncode == 1
    _, line = done.stdout.splitlines()
    assert line.startswith("warning   set-aside  1      1 item cannot be read and was set aside  ")
    assert "  productId='[/bold]': ticklerError has the reason why the item left the index: " in line
    assert "[red]nonsense" in line
    assert line.endswith("  fix that, and upsert the item")


@pytest.mark.adds_index
def test_a_table_of_many_items_is_read_to_its_end(table: OldTable, tmp_path: Path) -> None:
    """A page of a scan is a megabyte."""
    for n in range(4):
        table.put(f"large{n}", text={"S": "x" * 390_000})
    for n in range(101):
        table.put(f"half{n}", scheduleStatus=ACTIVE)
    table.add_index()
    table.wait_for_index()
    done = run_tickler("doctor", "--scan", "--store", table.url, folder=tmp_path)
    assert done.returncode == 1
    _, found, _, *named, last = done.stdout.splitlines()
    assert found.startswith("critical  unfound  101    101 items are left out of an index: nextRunAt is missing, but ")
    assert (len(named), last) == (100, "and 1 more: use --json to list all")
    assert all(re.match(r"productId='half\d+': nextRunAt is missing, but scheduleStatus is set, so ", line) for line in named)
    scan = scanned(table, tmp_path)
    assert [finding.count for finding in scan.findings] == [101]
    assert {misfit.item for misfit in scan.misfits} == {f"productId='half{n}'" for n in range(101)}


def test_a_table_that_is_not_there_is_an_error_in_one_line(table: OldTable, tmp_path: Path) -> None:
    url = table.url.replace(table.name, "no-such-table")
    done = run_tickler("doctor", "--scan", "--store", url, folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no-such-table" in done.stderr
    assert done.stderr.count("\n") == 1


async def test_a_dynamodb_store_of_ticklers_has_nothing_that_no_index_finds(dynamodb_url: str, tmp_path: Path) -> None:
    async with tickler.connect(dynamodb_url) as t:
        await t.index.upsert(IndexRow("u1", "row", Cron("0 * * * *"), NOW_MS))
        await t.schedules.put(tickler.Schedule(owner="u1", key="schedule", when=Cron("0 * * * *")))
        await t.schedules.put(tickler.Schedule(owner="u1", key="paused", when=Cron("0 * * * *"), enabled=False))
    for scan in ([], ["--scan"]):
        done = run_tickler("doctor", *scan, "--store", dynamodb_url, folder=tmp_path)
        assert (done.returncode, done.stdout.splitlines()[-1], done.stderr) == (0, "no problems found", "")


@pytest.mark.adds_index
def test_an_index_that_holds_most_of_a_table_is_named_and_one_that_is_made_to_is_not(table: OldTable, tmp_path: Path) -> None:
    """The bug of the story: what is inactive says so, instead of saying nothing."""
    table.put_many(
        [("due" if n < 400 else "idle", {"scheduleStatus": ACTIVE, "nextRunAt": DUE} if n < 400 else {}) for n in range(999)]
    )
    table.add_index()
    table.wait_for_index()
    scan = functools.partial(run_tickler, "doctor", "--scan", "--store", table.url, folder=tmp_path)
    assert scan().returncode == 0, "of fewer than a thousand, nobody saves anything"
    table.put("more", scheduleStatus={"S": "inactive"}, nextRunAt=DUE)
    assert scan().returncode == 1
    (finding,) = scanned(table, tmp_path).findings
    assert (finding.check, finding.severity, finding.count) == ("not-sparse", "warning", 401)
    assert finding.says == (
        f"scheduleStatus is on 40% of all 1,000 items: if {INDEX} is the index of a DynamoIndex, it is not sparse"
    )
    assert finding.example is not None
    assert finding.example.endswith(("scheduleStatus='inactive'", "scheduleStatus='active'"))
    assert finding.remedy == (
        "remove scheduleStatus from items that are not active (a value such as 'inactive' is indexed, too): "
        f"`aws dynamodb update-item --table-name {table.name} --key KEY {REMOVE % 'scheduleStatus'}`"
    )


async def with_rows_set_aside(folder: Path, number: int) -> None:
    async with tickler.connect(f"sqlite:///{folder}/t.db") as t:
        await t.index.upsert_many([IndexRow("u1", f"bad{n:03}", Cron("0 * * * *"), NOW_MS) for n in range(number)])
        await t.index.upsert(IndexRow("u1", "good", Cron("0 * * * *"), NOW_MS))
        with sqlite3.connect(folder / "t.db") as connection:
            connection.execute("UPDATE tickler_index SET when_text = 'nonsense' WHERE key LIKE 'bad%'")
        connection.close()
        assert [row.key for row in await t.index.claim_due(NOW_MS, 1000)] == ["good"]


@pytest.mark.parametrize("scan", [[], ["--scan"]])
def test_a_healthy_store_has_nothing_wrong(tmp_path: Path, scan: list[str]) -> None:
    run_tickler("migrate", "--store", "sqlite:///t.db", folder=tmp_path)
    done = run_tickler("doctor", *scan, "--store", "sqlite:///t.db", folder=tmp_path)
    *passed, last = done.stdout.splitlines()
    assert (done.returncode, last, done.stderr) == (0, "no problems found", "")
    checks = [] if scan else [line.split()[1] for line in passed if line.startswith("ok ")]
    assert checks == ([] if scan else list(PASSED_MESSAGES)), "all of them are named"


async def test_what_is_wrong_is_a_line_with_its_example_and_its_remedy_however_narrow_the_terminal_is(tmp_path: Path) -> None:
    await with_rows_set_aside(tmp_path, 3)
    done = run_tickler("doctor", "--store", "sqlite:///t.db", folder=tmp_path, COLUMNS="20")
    assert (done.returncode, done.stderr) == (1, "")
    header, line, *passed = done.stdout.splitlines()
    assert {each.split()[0] for each in passed} == {"ok"}
    assert "set-aside" not in "".join(passed)
    assert header.lower().split() == ["severity", "check", "count", "says", "example", "remedy"]
    assert line.split()[:4] == ["warning", "set-aside", "3", "3"]
    assert "u1/bad000: 'nonsense' in UTC cannot be read: " in line
    assert line.endswith("  put it again")


async def test_on_a_terminal_it_is_a_table_with_colours(tmp_path: Path) -> None:
    await with_rows_set_aside(tmp_path, 3)
    done = run_tickler("doctor", "--store", "sqlite:///t.db", folder=tmp_path, COLUMNS="100", FORCE_COLOR="1", TERM="xterm")
    assert done.returncode == 1
    assert "\x1b[33mwarning" in done.stdout
    assert "example: u1/bad000: 'nonsense' in UTC" in done.stdout
    assert "→ put it again" in done.stdout
    assert "\x1b[32m✓ ok" in done.stdout


async def unindexed(folder: Path, number: int) -> None:
    """Schedules whose rows are gone, and one that is as it should be."""
    async with tickler.connect(f"sqlite:///{folder}/t.db") as t:
        await t.schedules.put_many([tickler.Schedule(owner="u1", key=f"k{n}", when="0 * * * *") for n in range(number)])
        with sqlite3.connect(folder / "t.db") as connection:
            connection.execute("DELETE FROM tickler_index")
        connection.close()
        await t.schedules.put(tickler.Schedule(owner="u1", key="well", when="0 * * * *"))


async def test_a_repair_mends_and_says_so_and_then_nothing_is_wrong(tmp_path: Path) -> None:
    await unindexed(tmp_path, 3)
    doctor = functools.partial(run_tickler, "doctor", "--store", "sqlite:///t.db", folder=tmp_path)
    assert doctor("--quick").returncode == 0
    found = doctor()
    assert found.returncode == 1
    assert re.search(r"^critical +unindexed +3 ", found.stdout, re.MULTILINE)
    assert "`tickler doctor --repair`" in found.stdout
    repaired = doctor("--repair")
    assert (repaired.returncode, repaired.stderr) == (0, "")
    assert re.search(r"^repaired +unindexed +3 ", repaired.stdout, re.MULTILINE)
    assert repaired.stdout.endswith("3 repaired; no problems left\n")
    again = doctor()
    assert (again.returncode, again.stdout.splitlines()[-1]) == (0, "no problems found")
    assert doctor("--repair").stdout.splitlines()[-1] == "nothing to repair"


async def test_a_repair_says_what_is_left(tmp_path: Path) -> None:
    await with_rows_set_aside(tmp_path, 2)
    await unindexed(tmp_path, 1)
    done = run_tickler("doctor", "--repair", "--store", "sqlite:///t.db", folder=tmp_path)
    assert done.returncode == 1
    assert done.stdout.endswith("1 repaired; left: set-aside\n")


async def test_programs_are_answered_in_json(tmp_path: Path) -> None:
    await unindexed(tmp_path, 2)
    doctor = functools.partial(run_tickler, "doctor", "--json", "--store", "sqlite:///t.db", folder=tmp_path)
    done = doctor()
    assert done.returncode == 1
    (line,) = done.stdout.splitlines()
    diagnosis = msgspec.json.decode(line, type=Diagnosis)
    (finding,) = diagnosis.findings
    assert (diagnosis.healthy, diagnosis.deep, finding.check, finding.count) == (False, True, "unindexed", 2)
    repaired = msgspec.json.decode(doctor("--repair").stdout)
    assert (repaired["healthy"], repaired["findings"][0]["repaired"], repaired["findings"][0]["left"]) == (True, 2, 0)
    assert msgspec.json.decode(doctor("--quick").stdout)["deep"] is False
    scan = msgspec.json.decode(doctor("--scan").stdout)
    assert scan.keys() == {*repaired.keys(), "misfits"}
    assert (scan["healthy"], scan["deep"], scan["findings"], scan["misfits"]) == (True, True, [], [])


async def test_what_is_only_worth_knowing_is_no_failure(tmp_path: Path) -> None:
    """Whoever is ticked from outside has no worker most of the time."""
    async with tickler.connect(f"sqlite:///{tmp_path}/t.db") as t:
        await t.schedules.put(tickler.Schedule(owner="u1", key="a", when="0 0 1 1 *", target=tickler.PythonTarget("echo")))
        await t.tick()
    done = run_tickler("doctor", "--store", "sqlite:///t.db", folder=tmp_path)
    assert done.returncode == 0
    assert "info      no-worker" in done.stdout


def test_a_scan_repairs_nothing(tmp_path: Path) -> None:
    done = run_tickler("doctor", "--scan", "--repair", "--store", "sqlite:///t.db", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--scan" in done.stderr


def test_a_store_without_tables_is_not_made_by_looking(tmp_path: Path) -> None:
    done = run_tickler("doctor", "--store", "sqlite:///t.db", folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
