"""Entities against indexes: which items write which key."""

from __future__ import annotations

from tickler.table.measurement import Measurement
from tickler.table.schema.page.markup import Markup, tag
from tickler.table.schema.page.parts import both_halves, colour, count, place, place_name, section, share, while_text
from tickler.table.schema.schema import EntitySchema, Schema


def matrix(schema: Schema, measured: Measurement | None) -> Markup:
    places = (None, *schema.gsis)
    heads = [tag("th", _head(schema, gsi, measured), scope="col", class_=colour(schema, gsi)) for gsi in places]
    rows = [tag("tr", _row_head(entity, measured), *(_cell(schema, entity, gsi) for gsi in places)) for entity in schema.entities]
    table = tag(
        "table",
        tag("thead", tag("tr", tag("th", "entity", scope="col", class_="corner"), *heads)),
        tag("tbody", *rows),
        class_="matrix",
    )
    intro = "Each row is an entity, each column a place where its items have a key. An empty cell writes nothing there."
    scrolled = tag("div", table, class_="scroll", tabindex="0", role="region", aria_label="Entities and indexes")
    return section("matrix", "Which items write which key", intro, scrolled)


def _head(schema: Schema, gsi: str | None, measured: Measurement | None) -> Markup:
    if measured is None:
        return place(schema, gsi)
    fill = measured.table if gsi is None else measured.indexes[gsi]
    of_table = "" if gsi is None else f" · {share(fill.total, measured.table.total)}"
    said = f"{count(fill.total, 'item', fill.exact)}{of_table}"
    return Markup(place(schema, gsi) + tag("span", said, class_="fill"))


def _row_head(entity: EntitySchema, measured: Measurement | None) -> Markup:
    link = tag("a", entity.name, href=f"#entity-{entity.name}")
    if measured is None:
        return tag("th", link, scope="row")
    items = measured.table.items.get(entity.stored_as, 0)
    return tag("th", link, tag("span", count(items, "item", measured.table.exact), class_="fill"), scope="row")


def _cell(schema: Schema, entity: EntitySchema, gsi: str | None) -> Markup:
    keys = entity.keys_in(gsi)
    name = place_name(gsi)
    if not keys:
        return tag("td", tag("span", f"not in {name}", class_="none"), class_="empty", data_place=name)
    shown = [
        tag(
            "div",
            tag("span", key.name, class_="name"),
            both_halves(key),
            "" if gsi is None else tag("span", while_text(key), class_="while"),
        )
        for key in keys
    ]
    return tag("td", *shown, class_=colour(schema, gsi), data_place=name)
