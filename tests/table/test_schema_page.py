"""The page of a schema: complete by itself, well-formed, and with every text escaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from table.goods import goods
from table.guide_tables import guide_classes

from tickler.table import Attr, Entity, Index, Key, Table, attr
from tickler.table.measurement import Fill, Measurement, Partition
from tickler.table.schema.page import html_page
from tickler.table.schema.page.markup import Markup, tag
from tickler.table.schema.page.parts import share
from tickler.testing.table_fixtures import TABLE

GUIDE = guide_classes()
SHOP = GUIDE["shop"]
MEASURED = Measurement(
    Fill({"Customer": 400, "Order": 6_000}, Partition("CUSTOMER#<c1>", 16)),
    {"gsi1": Fill({"Order": 120}, Partition("PENDING_ORDER", 120)), "gsi2": Fill({"Order": 30}, exact=False)},
    {"Customer": 30, "Order": 200},
)


class _Reader(HTMLParser):
    """Reads a page, and fails where elements do not close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs
        if tag not in ("meta", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.words.append(data)


def read(page: str) -> _Reader:
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def text(page: str) -> str:
    return re.sub(r"\s+", " ", "".join(read(page).words))


@pytest.mark.parametrize("table", [SHOP, GUIDE["site"], goods, TABLE], ids=lambda table: table.name)
def test_a_page_needs_nothing_else(table: Table) -> None:
    page = html_page(table.describe())
    reader = read(page)
    assert "://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "@import" not in page
    assert "url(" not in page
    links = [value for name, value in reader.attributes if name in ("src", "href")]
    assert all(value is not None and value.startswith("#") for value in links)
    ids = {value for name, value in reader.attributes if name == "id"}
    assert {str(value)[1:] for value in links} <= ids


def test_a_page_shows_keys_conditions_examples_and_calls() -> None:
    shown = text(html_page(SHOP.describe()))
    for part in ("PENDING_ORDER", "while status is 'pending'", "while deleted_at is present", "ORDER#2026-03-02T12:00:00#o1"):
        assert part in shown
    assert "CUSTOMER#… is shared by Customer.key and Order.key" in shown
    assert "await db.query(Order.pending().since(placed_at), first=100)" in shown
    assert shown.count("not in gsi1") == shown.count("not in gsi2") == 1


def test_a_page_says_how_full_a_measured_table_is() -> None:
    shown = text(html_page(SHOP.describe(), MEASURED, "dynamodb://shop"))
    assert "2 entities, 2 indexes, 6,400 items in dynamodb://shop, estimated by a sample" in shown
    assert "120 of 6,000 items of Order, 2.0%" in shown
    assert "30 of about 6,000 items of Order, 0.5%" in shown
    assert "The largest partition, CUSTOMER#<c1>, has 16 items, 0.2% of all here" in shown


def test_each_line_begins_at_an_attribute_of_the_same_entity() -> None:
    page = html_page(SHOP.describe())
    for card in page.split('<article class="card" id="entity-')[1:]:
        attributes = set(re.findall(r'data-attribute="(\w+)"', card))
        ends = {name for names in re.findall(r'data-from="([^"]+)"', card) for name in names.split()}
        assert ends
        assert ends <= attributes


def test_what_a_program_wrote_is_never_taken_for_html() -> None:
    table = Table("things")

    class Thing(Entity, table=table):
        id: Attr[str] = attr()
        note: Attr[str] = attr(default="<script>alert('&')</script>")
        key = Key("<b>" / id, "X")
        odd = Index("gsi1", "ODD", id, when=note == '"><img src=x>')

    page = html_page(table.describe())
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "<b>#" not in page
    assert "\"<script>alert('&')</script>\"" in text(page)


def test_markup_is_escaped_once() -> None:
    inner: Any = tag("b", "a < b", title='"quoted"')
    assert inner == '<b title="&quot;quoted&quot;">a &lt; b</b>'
    assert tag("p", inner, "&") == f"<p>{inner}&amp;</p>"
    assert tag("p", Markup("&amp;"), hidden=True, id=None, data_x="1") == '<p hidden data-x="1">&amp;</p>'


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [(0, 0, "0%"), (0, 9, "0%"), (1, 3, "33%"), (1, 100, "1.0%"), (1, 100_000, "< 0.1%"), (9, 9, "100%")],
)
def test_a_share_is_never_rounded_to_nothing(part: int, whole: int, shown: str) -> None:
    assert share(part, whole) == shown
