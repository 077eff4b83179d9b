"""Conditions in words, and as Python."""

from __future__ import annotations

from datetime import UTC, date, datetime
from enum import Enum
from typing import Any, Literal

import pytest

from tickler.table import MISSING, Attr, Condition, Entity, Key, Missing, Part, Table, attr
from tickler.table.schema.predicate_text import condition_text
from tickler.table.schema.source_text import condition_source


class Colour(Enum):
    RED = "red"


class Address(Part):
    city: Attr[str]


class Order(Entity, table=Table("orders")):
    id: Attr[str] = attr()
    status: Attr[Literal["pending", "shipped", "lost"]] = attr(default="pending")
    reports: Attr[int] = attr(default=0)
    open: Attr[bool] = attr(default=False)
    note: Attr[str | Missing | None] = attr(default=MISSING)
    tags: Attr[set[str]] = attr(default=set())
    day: Attr[date | Missing] = attr(default=MISSING)
    at: Attr[datetime | Missing] = attr(default=MISSING)
    colour: Attr[Colour] = attr(default=Colour.RED)
    address: Attr[Address | Missing] = attr(default=MISSING)
    prices: Attr[dict[str, int]] = attr(default={})
    key = Key("ORDER" / id, "X")


NEW_YEAR = datetime(2031, 1, 1, tzinfo=UTC)
SAMPLES: list[tuple[Condition[Order], str, str]] = [
    (Order.status == "pending", "status is 'pending'", 'Order.status == "pending"'),
    (Order.status != "pending", "status is not 'pending'", 'Order.status != "pending"'),
    (Order.reports > 2, "reports is more than 2", "Order.reports > 2"),
    (Order.reports >= 2, "reports is at least 2", "Order.reports >= 2"),
    (Order.reports < 2, "reports is less than 2", "Order.reports < 2"),
    (Order.reports <= 2, "reports is at most 2", "Order.reports <= 2"),
    (~(Order.reports > 2), "reports is not more than 2", "~(Order.reports > 2)"),
    (Order.open == True, "open is True", "Order.open == True"),  # noqa: E712
    (Order.note == None, "note is None", "Order.note == None"),  # noqa: E711
    (Order.note.exists(), "note is present", "Order.note.exists()"),
    (Order.note.missing(), "note is missing", "Order.note.missing()"),
    (Order.id.starts_with("A'"), 'id starts with "A\'"', 'Order.id.starts_with("A\'")'),
    (~Order.id.starts_with("A"), "id does not start with 'A'", '~Order.id.starts_with("A")'),
    (Order.tags.contains("urgent"), "tags contains 'urgent'", 'Order.tags.contains("urgent")'),
    (Order.status.one_of(["pending", "lost"]), "status is 'pending' or 'lost'", 'Order.status.one_of(["pending", "lost"])'),
    (Order.at > NEW_YEAR, "at is after 2031-01-01T00:00:00Z", "Order.at > datetime(2031, 1, 1, tzinfo=UTC)"),
    (Order.day <= date(2031, 1, 1), "day is at or before 2031-01-01", "Order.day <= date(2031, 1, 1)"),
    (Order.colour == Colour.RED, "colour is 'red'", "Order.colour == Colour.RED"),
    (Order.address[Address.city] == "Bonn", "address.city is 'Bonn'", 'Order.address[Address.city] == "Bonn"'),
    (Order.prices["eur"].exists(), "prices['eur'] is present", 'Order.prices["eur"].exists()'),
    (
        (Order.reports > 2) & (Order.open == False) & Order.note.missing(),  # noqa: E712
        "reports is more than 2 and open is False and note is missing",
        "((Order.reports > 2) & (Order.open == False)) & Order.note.missing()",
    ),
    (
        (Order.reports > 2) & ((Order.status == "lost") | Order.note.exists()),
        "reports is more than 2 and (status is 'lost' or note is present)",
        '(Order.reports > 2) & ((Order.status == "lost") | Order.note.exists())',
    ),
    (
        ~((Order.reports > 2) | Order.note.exists()),
        "not (reports is more than 2 or note is present)",
        "~((Order.reports > 2) | Order.note.exists())",
    ),
]


@pytest.mark.parametrize(("condition", "words", "source"), SAMPLES, ids=[words for _, words, _ in SAMPLES])
def test_a_condition_is_said_in_words_and_written_as_python(condition: Condition[Order], words: str, source: str) -> None:
    assert condition_text(condition) == words
    assert condition_source(condition, "Order") == source


@pytest.mark.parametrize(("condition", "words", "source"), SAMPLES, ids=[words for _, words, _ in SAMPLES])
def test_what_is_written_can_be_pasted(condition: Condition[Order], words: str, source: str) -> None:
    names: dict[str, Any] = {"Order": Order, "Address": Address, "Colour": Colour, "datetime": datetime, "date": date, "UTC": UTC}
    assert repr(eval(source, names)) == repr(condition)
