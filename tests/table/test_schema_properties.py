"""Random tables: their schemas are true, and what the advisor proves or answers is right for random items."""

from __future__ import annotations

import ast
import asyncio
import os
from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from table.random_entities import Inner, condition_of, conditions, definitions, entity_of, values

from tickler.clock import ManualClock
from tickler.table import Table
from tickler.table.measurement import Measurement
from tickler.table.schema.finding import Answer
from tickler.table.schema.membership import is_never_absent
from tickler.table.schema.page import html_page
from tickler.table.schema.source_text import condition_source
from tickler.table.schema.wish import answer
from tickler.testing.table_fixtures import NOW

SOAK = os.environ.get("TICKLER_SOAK") == "1"
examples = settings(
    max_examples=1_000 if SOAK else 60,
    derandomize=not SOAK,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
items = st.lists(values, min_size=1, max_size=12)


def table_of(described: Any) -> tuple[Table, list[Any]]:
    table = Table("random")
    return table, [entity_of(table, name, each) for name, each in zip(("One", "Two"), described, strict=False)]


def items_of(classes: list[Any], drawn: list[dict[str, Any]]) -> list[Any]:
    return [cls(id=f"i{n}", **each) for cls in classes for n, each in enumerate(drawn)]


@examples
@given(definitions)
def test_every_table_has_a_schema_a_page_and_advice(described: Any) -> None:
    table, _ = table_of(described)
    schema = table.describe()
    assert len(schema.keys_in(None)) == len(table.entities)
    assert "</html>" in html_page(schema)
    rated = [finding.check for finding in table.advise(writes_per_second=5_000).findings]
    constant = [key for gsi in schema.gsis for key in schema.keys_in(gsi) if len(key.partition) == 1]
    assert rated.count("hot partition") == len(constant)
    for definition in table.entities.values():
        for index in definition.indexes:
            shown = next(each for each in schema.keys_in(index.gsi) if f"{each.entity}.{each.name}" == index.name)
            index.pk.parse(shown.example[0])
            index.sk.parse(shown.example[1])


@examples
@given(definitions, items)
def test_what_is_said_never_to_be_absent_never_is_and_what_could_share_never_meets(described: Any, drawn: Any) -> None:
    table, classes = table_of(described)
    for item in items_of(classes, drawn):
        definition = table.definition_of(item)
        lookup = definition.lookup(item)
        for index in definition.indexes:
            if is_never_absent(index):
                assert isinstance(index.position(lookup), tuple)
    shareable = [finding.about.split(" and ") for finding in table.advise().findings if finding.check == "could share"]
    for group in shareable:
        for item in items_of(classes, drawn):
            definition = table.definition_of(item)
            keys = [definition.slot_key(gsi, definition.lookup(item)) for gsi in group]
            assert len([key for key in keys if key is not None]) <= 1


@examples
@given(conditions)
def test_every_condition_can_be_pasted(described: Any) -> None:
    _, (cls,) = table_of([[]])
    wish = condition_of(described, {name: getattr(cls, name) for name in cls.__paths__})
    names = {"One": cls, "Inner": Inner, "Decimal": Decimal}
    assert repr(eval(condition_source(wish, "One"), names)) == repr(wish)


@examples
@given(definitions, items, conditions, st.booleans())
def test_a_call_that_answers_a_wish_finds_exactly_the_wanted_items(described: Any, drawn: Any, wished: Any, near: bool) -> None:
    table, (cls, *_) = table_of(described)
    wish = condition_of(wished, {name: getattr(cls, name) for name in cls.__paths__})
    of_indexes = [index.membership() for index in table.entities["One"].indexes]
    if near and of_indexes:  # a wish that an index may answer
        wish &= of_indexes[0]
    found = answer(table, wish)
    if found.call is not None and "at a time" not in found.says:
        stored = items_of([cls], drawn)
        lookup = table.entities["One"].lookup
        assert asyncio.run(ids_found(table, stored, found)) == {each.id for each in stored if wish.evaluate(lookup(each))}


async def ids_found(table: Table, stored: list[Any], found: Answer) -> set[str]:
    names = {type(stored[0]).__name__: type(stored[0]), "Inner": Inner, "Decimal": Decimal}
    async with table.connect("memory://", clock=ManualClock(NOW)) as db:
        await db.put_many(stored)
        call = compile(str(found.call), "a call", "eval", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        page = await eval(call, {**names, "db": db})
        return {item.id for item in page.items}


@examples
@given(definitions, items)
def test_measurements_agree_with_the_keys_of_the_items(described: Any, drawn: Any) -> None:
    table, classes = table_of(described)
    stored = items_of(classes, drawn)
    measured = asyncio.run(measured_on(table, stored, "memory://"))
    assert asyncio.run(measured_on(table, stored, "sqlite://")) == measured
    for gsi in table.gsis:
        inside = [each for each in stored if table.definition_of(each).slot_key(gsi, table.definition_of(each).lookup(each))]
        assert measured.indexes[gsi].total == len(inside)
    assert measured.table.total == len(stored)


async def measured_on(table: Table, stored: list[Any], url: str) -> Measurement:
    async with table.connect(url, clock=ManualClock(NOW)) as db:
        await db.put_many(stored)
        return await db.measure()
