"""`find`: which call answers a wish, and why none can."""

from __future__ import annotations

import ast
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from table.guide_tables import guide_classes

from tickler.errors import InvalidInput
from tickler.table import MISSING, Condition, Table
from tickler.table.measurement import Fill, Measurement
from tickler.table.schema.finding import Answer
from tickler.table.schema.wish import answer

GUIDE = guide_classes()
SHOP, Order, Comment, Article, Customer = (GUIDE[name] for name in ("shop", "Order", "Comment", "Article", "Customer"))
SITE = GUIDE["site"]
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
ANSWERED: list[tuple[Table, Any, str, str]] = [
    (SHOP, Order.status == "pending", "Order.pending lists exactly these", "Order.pending()"),
    (SHOP, Order.deleted_at.exists(), "Order.trash lists exactly these, for one customer at a time", "Order.trash(customer)"),
    (SHOP, (Order.customer == "c1") & Order.deleted_at.exists(), "Order.trash lists exactly these", 'Order.trash("c1")'),
    (SHOP, Order.customer == "c1", "Order.key lists exactly these", 'Order.key("c1")'),
    (
        SHOP,
        (Order.status == "pending") & (Order.items > 1),
        "Order.pending has all of these and others, which `where=` leaves out",
        'Order.pending(), where=(Order.status == "pending") & (Order.items > 1)',
    ),
    (
        SHOP,
        (Order.customer == "c1") & Order.deleted_at.missing(),
        "Order.key has all of these and others, which `where=` leaves out",
        'Order.key("c1"), where=(Order.customer == "c1") & Order.deleted_at.missing()',
    ),
    (
        SHOP,
        (Order.status == "pending") & (Order.placed_at >= NOON) & (Order.placed_at < NOON + timedelta(hours=9)),
        "Order.pending lists exactly these",
        "Order.pending().since(datetime(2026, 3, 2, 12, tzinfo=UTC)).before(datetime(2026, 3, 2, 21, tzinfo=UTC))",
    ),
    (
        SHOP,
        (Order.customer == "c2") & (Order.placed_at == NOON + timedelta(hours=20)) & Order.id.starts_with("o"),
        "Order.key lists exactly these",
        'Order.key("c2").under(datetime(2026, 3, 3, 8, tzinfo=UTC)).starting_with("o")',
    ),
    (
        SITE,
        (Comment.reports > 5) & (Comment.resolved == False),  # noqa: E712
        "Comment.flagged lists exactly these",
        "Comment.flagged().after(5)",
    ),
    (SITE, Article.featured == True, "Article.front_page lists exactly these", "Article.front_page()"),  # noqa: E712
]


@pytest.mark.parametrize(("table", "wish", "says", "asked"), ANSWERED, ids=[asked for *_, asked in ANSWERED])
def test_a_wish_is_answered_by_a_call(table: Table, wish: Condition[Any], says: str, asked: str) -> None:
    found = answer(table, wish)
    assert (found.says, found.call, found.remedy) == (says, f"await db.query({asked}, first=100)", None)
    assert table.advise(find=wish).is_fine


def orders() -> list[Any]:
    choices = product(["c1", "c2"], ["pending", "confirmed", "shipped"], [0, 1, 5], [MISSING, NOON])
    return [
        Order(
            customer=customer,
            id=f"o{n}",
            status=status,
            placed_at=NOON + timedelta(hours=n),
            items=items,
            address=GUIDE["Address"](city="Bonn"),
            deleted_at=deleted_at,
        )
        for n, (customer, status, items, deleted_at) in enumerate(choices)
    ]


async def test_a_call_finds_exactly_the_items_that_were_wished_for() -> None:
    lookup = SHOP.entities["Order"].lookup
    async with SHOP.connect("memory://") as db:
        await db.put_many(orders())
        for table, wish, _, asked in ANSWERED:
            if table is not SHOP or "(customer)" in asked:
                continue
            call = str(answer(SHOP, wish).call)
            page = await eval(compile(call, "a call", "eval", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), {**GUIDE, "db": db})
            wanted = {order.id for order in orders() if wish.evaluate(lookup(order))}
            assert {order.id for order in page.items} == wanted, call
            assert wanted


def test_no_sparse_index_lists_what_is_absent() -> None:
    found = answer(SHOP, Order.deleted_at.missing())
    assert found.call is None
    assert found.says == "no sparse index can list what lacks deleted_at: without it an item has no key to be found by"
    assert "await db.query(Order.key(customer), where=Order.deleted_at.missing(), first=100)" in str(found.remedy)
    assert not SHOP.advise(find=Order.deleted_at.missing()).is_fine


def test_how_many_are_absent_is_told_by_the_index_of_the_others() -> None:
    measured = Measurement(Fill({"Order": 6_000}), {"gsi1": Fill({}), "gsi2": Fill({"Order": 12})}, {})
    found = answer(SHOP, Order.deleted_at.missing(), measured)
    assert found.says.endswith("5,988 of 6,000 items lack it, 99.8%; Order.trash has the others")


def test_an_index_of_what_is_absent_answers_the_wish() -> None:
    names = guide_classes()
    exec(
        """
class Task(Entity, table=shop):
    id: Attr[str] = attr()
    done_at: Attr[datetime | Missing] = attr(default=MISSING)
    key = Key("TASK" / id, "TASK")
    open = Index("gsi1", "OPEN_TASK", id, when=done_at.missing())
""",
        names,
    )
    found = answer(names["shop"], names["Task"].done_at.missing())
    assert found.call == "await db.query(Task.open(), first=100)"


@pytest.mark.parametrize(
    ("table", "wish", "declared"),
    [
        (SHOP, Order.items > 3, 'wanted = Index("gsi3", "WANTED_ORDER", customer / placed_at / id, when=items > 3)'),
        (
            SHOP,
            (Order.status == "shipped") & (Order.items > 3),
            'wanted = Index("gsi1", "WANTED_ORDER", customer / placed_at / id, when=(status == "shipped") & (items > 3))',
        ),
        (SHOP, Customer.name == "Ada", 'wanted = Index("gsi1", "WANTED_CUSTOMER", id, when=name == "Ada")'),
        (SITE, Article.featured == False, 'wanted = Index("gsi1", "WANTED_ARTICLE", id, when=featured == False)'),  # noqa: E712
    ],
)
def test_what_no_index_has_gets_one_on_a_free_gsi(table: Table, wish: Any, declared: str) -> None:
    found = answer(table, wish)
    assert found.call is None
    assert f"declare `{declared}`" in str(found.remedy)


def test_a_wish_about_another_table_is_refused() -> None:
    with pytest.raises(InvalidInput, match="is not about an entity of the table 'shop'"):
        answer(SHOP, Comment.reports > 2)


def test_a_wish_with_a_value_of_another_type_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"Order\.items cannot be 'three'"):
        answer(SHOP, Order.items == "three")


def test_an_answer_says_what_was_wished() -> None:
    assert answer(SHOP, Order.status == "pending") == Answer(
        wish="Order items where status is 'pending'",
        says="Order.pending lists exactly these",
        call="await db.query(Order.pending(), first=100)",
    )
