"""`tickler table show` and `tickler table advise`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from table.guide_tables import guide_classes

from tickler.cli.advice_rendering import show_advice
from tickler.cli.schema_rendering import show_schema

from .preloaded import run_tickler

SHOP = guide_classes()["shop"]
MODEL = """
from datetime import datetime
from tickler.table import MISSING, Attr, Entity, Index, Key, Missing, Table, attr

shop = Table("shop")
number = 3

class Customer(Entity, table=shop):
    id: Attr[str] = attr()
    key = Key("CUSTOMER" / id, "PROFILE")

class Order(Entity, table=shop):
    customer: Attr[str] = attr()
    id: Attr[str] = attr()
    status: Attr[str] = attr(default="new")
    deleted_at: Attr[datetime | Missing] = attr(default=MISSING, deleted=True)
    key = Key("CUSTOMER" / customer, "ORDER" / id)
    fresh = Index("gsi1", "NEW_ORDER", id, when=status == "new")
"""
WRITE = """
import sys
from model import Order, shop

with shop.connect_sync(sys.argv[1], create=True) as db:
    db.put_many([Order(customer=f"c{n}", id=f"{n:04}", status="new" if n < int(sys.argv[2]) else "old") for n in range(200)])
"""
SHOWN = """\
shop: 2 entities, 1 index

entity    table  gsi1
Customer  key    -
Order     key    fresh

key           in     partition key        sort key    while
Customer.key  table  CUSTOMER#{id}        PROFILE     always
Order.key     table  CUSTOMER#{customer}  ORDER#{id}  always
Order.fresh   gsi1   NEW_ORDER            {id}        status is 'new'

attribute         type                makes             decides  role
Customer.id       str                 key pk
Order.customer    str                 key pk
Order.id          str                 key sk, fresh sk
Order.status      str                                   fresh
Order.deleted_at  datetime | Missing                             deleted

for example   partition key  sort key
Customer.key  CUSTOMER#c1    PROFILE
Order.key     CUSTOMER#c1    ORDER#o1
Order.fresh   NEW_ORDER      o1

shared partition  in     by
CUSTOMER#…        table  Customer.key, Order.key

call                                                                    in     answers
await db.get(Customer.key.id(id))                                       table  the Customer with this id
await db.get(Order.key.id(customer, id))                                table  the Order with this customer and id
await db.query(Order.key(customer), first=100)                          table  Order items of one customer, by id
await db.query(Order.fresh(), first=100)                                gsi1   Order items while status is 'new', by id
await db.count(Order.fresh())                                           gsi1   the number of Order items while status is 'new'
await db.query(Customer.key(customer), Order.key(customer), first=100)  table  Customer and Order items of one customer, in one read
"""  # noqa: E501  # as it is printed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    return tmp_path


@pytest.fixture(params=["sqlite", "postgres", "dynamodb"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_url")).replace("&create=1&shards=4", "")


def write(folder: Path, url: str, fresh: int) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    subprocess.run([sys.executable, "-c", WRITE, url, str(fresh)], env=environment, check=True, timeout=60)


def test_show_prints_who_writes_which_key(folder: Path) -> None:
    done = run_tickler("table", "show", "model:shop", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == SHOWN


def test_show_answers_in_json(folder: Path) -> None:
    answer = json.loads(run_tickler("table", "show", "model:shop", "--json", folder=folder).stdout)
    assert answer["measured"] is None
    assert [entity["name"] for entity in answer["schema"]["entities"]] == ["Customer", "Order"]
    (fresh,) = [key for entity in answer["schema"]["entities"] for key in entity["keys"] if key["name"] == "fresh"]
    assert (fresh["gsi"], fresh["when"], fresh["example"]) == ("gsi1", "status is 'new'", ["NEW_ORDER", "o1"])


def test_show_says_how_full_a_table_is(folder: Path, url: str) -> None:
    write(folder, url, 10)
    shown = run_tickler("table", "show", "model:shop", "--store", url, folder=folder)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "shop: 2 entities, 1 index, 200 items in " in shown.stdout
    lines = shown.stdout.splitlines()
    assert "gsi1   10 items   5.0%          Order 10 (5.0%)  NEW_ORDER with 10 (100.0%)" in lines
    answer = json.loads(run_tickler("table", "show", "model:shop", "--store", url, "--json", folder=folder).stdout)
    assert answer["measured"]["table"]["items"] == {"Order": 200}
    assert answer["measured"]["indexes"]["gsi1"] == {
        "items": {"Order": 10},
        "largest": {"key": "NEW_ORDER", "items": 10},
        "exact": True,
    }


def test_show_reads_a_store_only_where_it_is_named(folder: Path) -> None:
    done = run_tickler("table", "show", "model:shop", folder=folder, TICKLER_STORE="sqlite:///nowhere.db")
    assert (done.returncode, done.stdout) == (0, SHOWN)


@pytest.mark.parametrize("command", ["show", "advise"])
def test_a_table_that_is_not_there_is_not_made(folder: Path, command: str) -> None:
    refused = run_tickler("table", command, "model:shop", "--store", "sqlite:///shop.db", folder=folder)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "there is no table 'shop': run `tickler table create`" in refused.stderr
    assert not list(folder.glob("*.db"))


@pytest.mark.parametrize("command", ["show", "advise"])
def test_a_table_without_entities_is_refused(folder: Path, command: str) -> None:
    (folder / "empty.py").write_text("from tickler.table import Table\nshop = Table('shop')\n", encoding="utf-8")
    refused = run_tickler("table", command, "empty:shop", folder=folder)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == "tickler: empty:shop has no entities: name the module that defines them, or import it there\n"


class TestOnATerminal:
    def screen(self, width: int) -> Console:
        return Console(file=StringIO(), force_terminal=True, width=width, color_system=None)

    def shown(self, console: Console) -> str:
        assert isinstance(console.file, StringIO)
        return console.file.getvalue()

    def test_a_wide_one_has_the_keys_in_the_matrix(self) -> None:
        console = self.screen(140)
        show_schema(SHOP.describe(), None, None, console)
        shown = self.shown(console)
        assert "│ sk ORDER#{placed_at}#{id} │ sk {placed_at}#{id}       │ sk {deleted_at}#{id}        │" in shown
        assert "│ Customer │ key                       │ · · ·                     │ · · ·                       │" in shown
        assert "partition key" in shown.partition("for example")[2]
        assert "Order.pending  gsi1" not in shown

    def test_a_narrow_one_fits(self) -> None:
        console = self.screen(60)
        show_schema(SHOP.describe(), None, None, console)
        shown = self.shown(console)
        assert "│" not in shown
        assert "Order.pending" in shown
        assert max(map(len, shown.splitlines())) <= 60

    def test_findings_are_in_a_table_that_fits(self) -> None:
        console = self.screen(80)
        show_advice(SHOP.advise(writes_per_second=3_500), console)
        shown = self.shown(console)
        assert "→ split it into 4 shards" in shown
        assert max(map(len, shown.splitlines())) <= 80


class TestHtml:
    def test_a_page_is_written_and_written_again(self, folder: Path) -> None:
        for _ in range(2):
            done = run_tickler("table", "show", "model:shop", "--html", "shop.html", folder=folder)
            assert (done.returncode, done.stdout, done.stderr) == (0, "shop.html written\n", "")
        page = (folder / "shop.html").read_text(encoding="utf-8")
        assert page.startswith("<!doctype html>")
        assert page.rstrip().endswith("</html>")
        answer = run_tickler("table", "show", "model:shop", "--html", "shop.html", "--json", folder=folder)
        assert json.loads(answer.stdout) == {"html": "shop.html"}

    def test_a_file_that_is_something_else_is_left_alone(self, folder: Path) -> None:
        refused = run_tickler("table", "show", "model:shop", "--html", "model.py", folder=folder)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "model.py already exists" in refused.stderr
        assert (folder / "model.py").read_text(encoding="utf-8") == MODEL

    def test_a_file_that_cannot_be_written_is_named(self, folder: Path) -> None:
        refused = run_tickler("table", "show", "model:shop", "--html", "no/such/folder.html", folder=folder)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert refused.stderr == (
            "tickler: no/such/folder.html cannot be written: No such file or directory: name another file\n"
        )


class TestAdvise:
    def test_a_good_table_gets_no_remarks(self, folder: Path) -> None:
        done = run_tickler("table", "advise", "model:shop", folder=folder)
        assert (done.returncode, done.stdout, done.stderr) == (0, "no remarks\n", "")

    def test_an_index_with_too_many_items_is_a_warning(self, folder: Path, url: str) -> None:
        write(folder, url, 150)
        done = run_tickler("table", "advise", "model:shop", "--store", url, folder=folder)
        assert done.returncode == 1
        assert "not sparse" in done.stdout
        assert "150 of 200 Order items, 75%" in done.stdout

    def test_a_rate_that_is_too_high_is_a_warning_with_the_shards_to_use(self, folder: Path) -> None:
        done = run_tickler("table", "advise", "model:shop", "--writes-per-second", "3500", "--json", folder=folder)
        assert done.returncode == 1
        (finding,) = json.loads(done.stdout)["findings"]
        assert (finding["check"], finding["about"]) == ("hot partition", "Order.fresh")
        assert "4 shards" in finding["remedy"]

    def test_a_wish_is_answered(self, folder: Path) -> None:
        done = run_tickler("table", "advise", "model:shop", "--find", "Order.status == 'new'", folder=folder)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == (
            "Order items where status is 'new': Order.fresh lists exactly these\n  await db.query(Order.fresh(), first=100)\n\n"
            "no remarks\n"
        )

    def test_a_wish_for_what_is_absent_cannot_be_answered(self, folder: Path) -> None:
        done = run_tickler("table", "advise", "model:shop", "--find", "Order.deleted_at.missing()", folder=folder)
        assert done.returncode == 1
        assert "no sparse index can list what lacks deleted_at" in done.stdout

    @pytest.mark.parametrize(
        ("wish", "said"),
        [
            ("Basket.id == '1'", "--find Basket.id == '1': name 'Basket' is not defined: write a condition"),
            ("Order.status ==", "--find Order.status ==: invalid syntax"),
            ("number", "--find number: that is a int: write a condition as in Order.status == 'pending'"),
            ("Order.status == 'a' and Order.id == 'b'", "combine conditions with &, | and ~"),
            ("Order.status == 3", "Order.status cannot be 3"),
        ],
    )
    def test_a_wish_that_is_no_condition_is_an_error_of_one_line(self, folder: Path, wish: str, said: str) -> None:
        refused = run_tickler("table", "advise", "model:shop", "--find", wish, folder=folder)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert said in refused.stderr
        assert refused.stderr.count("\n") == 1
