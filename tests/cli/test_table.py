"""`tickler table`: creates the tables of an application, and reindexes them."""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tickler.aws.address import Address
from tickler.database.store_url import parse_url
from tickler.dynamo.client import Client

from .preloaded import run_tickler

FIRST = """
from tickler.table import Attr, Entity, Index, Key, Table, attr

shop = Table("shop")
number = 3

class Order(Entity, table=shop):
    id: Attr[str] = attr()
    status: Attr[str] = attr(default="new")
    key = Key("ORDER" / id, "ORDER")
    fresh = Index("gsi1", "NEW", id, when=status == "new")
"""
SECOND = f"""{FIRST}
    by_status = Index("gsi2", "STATUS" / status, id)
"""
WRITE = """
import sys
from first import Order, shop

with shop.connect_sync(sys.argv[1]) as db:
    db.put_many([Order(id=f"{n:04}", status="new" if n % 2 else "old") for n in range(int(sys.argv[2]))])
"""
COUNT = """
import sys
from second import Order, shop

with shop.connect_sync(sys.argv[1], create=False) as db:
    print(db.count(Order.fresh()), db.count(Order.by_status("new")), db.count(Order.by_status("old")))
"""


@pytest.fixture(params=["sqlite", "postgres", "dynamodb"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_url")).replace("&create=1&shards=4", "")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where an application has two versions of its model."""
    (tmp_path / "first.py").write_text(FIRST, encoding="utf-8")
    (tmp_path / "second.py").write_text(SECOND, encoding="utf-8")
    return tmp_path


def program(code: str, *arguments: str, folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout.strip()


def test_create_makes_what_is_missing_and_says_so(folder: Path, url: str) -> None:
    shown = parse_url(url).text
    made = run_tickler("table", "create", "first:shop", "--store", url, folder=folder)
    assert (made.stderr, made.returncode, made.stdout) == ("", 0, f"shop: created the table, gsi1 in {shown}\n")
    again = run_tickler("table", "create", "first:shop", "--store", url, folder=folder)
    assert (again.returncode, again.stdout, again.stderr) == (0, f"shop is up to date in {shown}\n", "")
    more = run_tickler("table", "create", "second:shop", folder=folder, TICKLER_STORE=url)
    assert (more.returncode, more.stdout, more.stderr) == (0, f"shop: created gsi2 in {shown}\n", "")
    program(WRITE, url, "3", folder=folder)


def test_create_answers_in_json(folder: Path, url: str) -> None:
    made = run_tickler("table", "create", "first:shop", "--store", url, "--json", folder=folder)
    assert json.loads(made.stdout) == {
        "table": "shop",
        "store": parse_url(url).text,
        "created": ["the table", "gsi1"],
        "outdated": [],
    }
    again = run_tickler("table", "create", "first:shop", "--store", url, "--json", folder=folder)
    assert json.loads(again.stdout)["created"] == []


@pytest.mark.adds_index
def test_an_index_that_is_added_later_is_filled_by_reindex(folder: Path, url: str) -> None:
    run_tickler("table", "create", "first:shop", "--store", url, folder=folder)
    program(WRITE, url, "51", folder=folder)
    refused = run_tickler("table", "reindex", "second:shop", "--store", url, folder=folder)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "gsi2" in refused.stderr
    assert "`tickler table create`" in refused.stderr

    added = run_tickler("table", "create", "second:shop", "--store", url, folder=folder)
    assert (added.returncode, added.stdout) == (0, f"shop: created gsi2 in {parse_url(url).text}\n")
    assert added.stderr == (
        "tickler: shop has items that were written before Order/gsi2 was defined like this: "
        "run `tickler table reindex second:shop`\n"
    )
    answer = run_tickler("table", "create", "second:shop", "--store", url, "--json", folder=folder)
    assert json.loads(answer.stdout)["outdated"] == ["Order/gsi2"]

    filled = run_tickler("table", "reindex", "second:shop", "--store", url, folder=folder)
    assert (filled.returncode, filled.stdout, filled.stderr) == (0, "shop: 51 items had other keys\n", "")
    assert program(COUNT, url, folder=folder) == "25 25 26"
    again = run_tickler("table", "reindex", "second:shop", "--store", url, "--json", folder=folder)
    assert json.loads(again.stdout) == {"table": "shop", "changed": 0}
    done = run_tickler("table", "create", "second:shop", "--store", url, folder=folder)
    assert (done.stdout, done.stderr) == (f"shop is up to date in {parse_url(url).text}\n", "")


def test_reindex_makes_no_table(folder: Path, url: str) -> None:
    refused = run_tickler("table", "reindex", "first:shop", "--store", url, folder=folder)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "there is no table" in refused.stderr
    assert "`tickler table create`" in refused.stderr
    assert not list(folder.glob("*.db"))


def test_a_table_of_somebody_else_is_refused_and_left_alone(folder: Path) -> None:
    connection = sqlite3.connect(folder / "theirs.db")
    connection.execute("CREATE TABLE shop (id INTEGER PRIMARY KEY, name TEXT)")
    for what in ("create", "reindex"):
        refused = run_tickler("table", what, "first:shop", "--store", "sqlite:///theirs.db", folder=folder)
        assert refused.returncode == 1
        assert "the table 'shop' is not of this toolkit: it has no column 'body'" in refused.stderr
    assert [row[1] for row in connection.execute("PRAGMA table_info(shop)")] == ["id", "name"]
    connection.close()


class TestCloudFormation:
    async def test_it_describes_the_table_that_create_makes(self, folder: Path, dynamodb_url: str) -> None:
        url = dynamodb_url.replace("&create=1&shards=4", "")
        printed = run_tickler("table", "create", "second:shop", "--store", url, "--print-cloudformation", folder=folder)
        assert (printed.returncode, printed.stderr) == (0, "")
        template = yaml.safe_load(printed.stdout)["Resources"]["Table"]
        properties = template["Properties"]
        assert template["Type"] == "AWS::DynamoDB::Table"
        name = url.removeprefix("dynamodb://").partition("?")[0]
        assert properties["TableName"] == name

        made = run_tickler("table", "create", "second:shop", "--store", url, folder=folder)
        assert "created the table" in made.stdout, "printing has made nothing"
        found, expiry = await described(name, url.partition("endpoint=")[2])
        assert properties["KeySchema"] == found["KeySchema"]
        assert by_name(properties["AttributeDefinitions"]) == by_name(found["AttributeDefinitions"])
        assert properties["BillingMode"] == found["BillingModeSummary"]["BillingMode"]
        for wanted, index in zip(
            by_name(properties["GlobalSecondaryIndexes"]), by_name(found["GlobalSecondaryIndexes"]), strict=True
        ):
            assert wanted == {key: index[key] for key in ("IndexName", "KeySchema", "Projection")}
        assert properties["TimeToLiveSpecification"] == {"AttributeName": expiry["AttributeName"], "Enabled": True}

    @pytest.mark.parametrize("store", [[], ["--store", "sqlite:///shop.db"], ["--store", "postgresql://somewhere/shop"]])
    def test_on_any_other_store_it_has_the_tables_own_name(self, folder: Path, store: list[str]) -> None:
        printed = run_tickler("table", "create", "first:shop", "--print-cloudformation", *store, folder=folder)
        assert yaml.safe_load(printed.stdout)["Resources"]["Table"]["Properties"]["TableName"] == "shop"
        assert not list(folder.glob("*.db"))
        answer = run_tickler("table", "create", "first:shop", "--print-cloudformation", *store, "--json", folder=folder)
        assert json.loads(answer.stdout) == {"cloudformation": printed.stdout}

    @pytest.mark.parametrize("name", ["123", "1e3", "0x1F", "null", "Yes", "off", "2026-03-02", "-.-", "a.b-c_d"])
    def test_a_name_stays_text_in_yaml(self, folder: Path, name: str) -> None:
        printed = run_tickler(
            "table", "create", "first:shop", "--print-cloudformation", "--store", f"dynamodb://{name}", folder=folder
        )
        assert yaml.safe_load(printed.stdout)["Resources"]["Table"]["Properties"]["TableName"] == name

    def test_a_name_that_dynamodb_refuses_is_refused(self, folder: Path) -> None:
        refused = run_tickler("table", "create", "first:shop", "--print-cloudformation", "--store", "dynamodb://a", folder=folder)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "3 to 255 letters" in refused.stderr


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("nowhere:shop", "table nowhere:shop: No module named 'nowhere': name a table as in shop.model:table"),
        ("first:cart", "table first:cart: module 'first' has no attribute 'cart': name a table as in shop.model:table"),
        ("first", "table first: has no name behind a colon: name a table as in shop.model:table"),
        ("../first:shop", "table ../first:shop: '../first' is not a module name: name a table as in shop.model:table"),
        ("first:Order", "first:Order is not a Table but a class: name a table as in shop.model:table"),
        ("first:number", "first:number is not a Table but a int: name a table as in shop.model:table"),
    ],
)
@pytest.mark.parametrize("command", ["create", "reindex"])
def test_what_is_not_a_table_is_an_error_of_one_line(folder: Path, command: str, named: str, said: str) -> None:
    refused = run_tickler("table", command, named, "--store", "sqlite:///shop.db", folder=folder)
    assert (refused.returncode, refused.stdout, refused.stderr) == (1, "", f"tickler: {said}\n")
    assert not list(folder.glob("*.db"))


@pytest.mark.parametrize("command", ["create", "reindex"])
def test_without_a_store_the_error_names_both_ways_to_give_one(folder: Path, command: str) -> None:
    refused = run_tickler("table", command, "first:shop", folder=folder)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--store" in refused.stderr
    assert "TICKLER_STORE" in refused.stderr


@pytest.mark.parametrize(
    ("store", "said"),
    [
        ("nonsense://here", "has an unknown scheme: use one of"),
        ("sqlite:///no/such/folder/shop.db", "there is no folder"),
        ("sqlite:///shop.db?colour=blue", "unknown parameter 'colour'"),
    ],
)
def test_an_error_of_the_store_is_one_line(folder: Path, store: str, said: str) -> None:
    refused = run_tickler(*shlex.split("table create first:shop --store"), store, folder=folder)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert said in refused.stderr
    assert refused.stderr.count("\n") == 1


def by_name(each: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(each, key=lambda one: str(one.get("IndexName", one.get("AttributeName"))))


async def described(table: str, endpoint: str) -> tuple[dict[str, Any], dict[str, Any]]:
    client = Client(Address(region="eu-west-1", endpoint=endpoint))
    await client.open()
    try:
        found = await client.call("DescribeTable", {"TableName": table})
        expiry = await client.call("DescribeTimeToLive", {"TableName": table})
        return found["Table"], expiry["TimeToLiveDescription"]
    finally:
        await client.close()
