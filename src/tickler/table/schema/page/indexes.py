"""The table and each index: who is in it while what, example keys, shared partitions, and how full it is."""

from __future__ import annotations

from tickler.table.measurement import Fill, Measurement
from tickler.table.schema.page.markup import Markup, joined, tag
from tickler.table.schema.page.parts import bar, colour, count, place, section, share, while_text
from tickler.table.schema.predicate_text import list_text
from tickler.table.schema.schema import KeySchema, Schema


def indexes(schema: Schema, measured: Measurement | None) -> Markup:
    cards = [_index(schema, gsi, measured) for gsi in (None, *schema.gsis)]
    intro = "Keys as the table writes them, with made-up values. Items that no condition selects are absent from an index."
    return section("indexes", "Inside each index", intro, tag("div", *cards, class_="cards"))


def _index(schema: Schema, gsi: str | None, measured: Measurement | None) -> Markup:
    keys = schema.keys_in(gsi)
    fill = None if measured is None else measured.table if gsi is None else measured.indexes[gsi]
    rows = [_key(schema, key, fill, measured) for key in keys]
    shared = [
        tag(
            "p",
            tag("code", each.pattern),
            f" is shared by {list_text(each.keys)}: one query reads them together.",
            class_="shared",
        )
        for each in schema.shared
        if each.gsi == gsi
    ]
    return tag(
        "article",
        tag("h3", place(schema, gsi), joined(_total(gsi, fill, measured))),
        *rows,
        *shared,
        joined(_largest(fill)),
        class_=f"card index {colour(schema, gsi)}",
    )


def _total(gsi: str | None, fill: Fill | None, measured: Measurement | None) -> Markup:
    if fill is None or measured is None:
        return Markup()
    of_table = "" if gsi is None else f", {share(fill.total, measured.table.total)} of the table's"
    return tag("span", f"{count(fill.total, 'item', fill.exact)}{of_table}", class_="hint")


def _key(schema: Schema, key: KeySchema, fill: Fill | None, measured: Measurement | None) -> Markup:
    (stored_as,) = (entity.stored_as for entity in schema.entities if entity.name == key.entity)
    filled = Markup()
    if fill is not None and measured is not None and key.gsi is not None:
        inside, whole = fill.items.get(stored_as, 0), measured.table.items.get(stored_as, 0)
        said = (
            f"{inside:,} of {count(whole, 'item', fill.exact and measured.table.exact)} of {key.entity}, {share(inside, whole)}"
        )
        filled = tag("div", bar(inside, whole), tag("span", said, class_="hint"), class_="measured")
    return tag(
        "div",
        tag("div", tag("b", key.full_name), tag("span", f" {while_text(key)}" if key.gsi else "", class_="while")),
        tag("div", tag("code", key.example[0]), tag("code", key.example[1]), class_="examples"),
        filled,
        class_="entry",
    )


def _largest(fill: Fill | None) -> Markup:
    if fill is None or fill.largest is None:
        return Markup()
    said = f" has {count(fill.largest.items, 'item', fill.exact)}, {share(fill.largest.items, fill.total)} of all here"
    return tag("p", "The largest partition, ", tag("code", fill.largest.key), f",{said}.", class_="hint")
