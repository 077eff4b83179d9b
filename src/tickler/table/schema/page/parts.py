"""What several sections of the page show: keys, places, shares, and counts."""

from __future__ import annotations

from collections.abc import Sequence

from tickler.table.schema.page.markup import Markup, joined, tag
from tickler.table.schema.schema import KeyComponent, KeySchema, Schema

COLOURS = 8  # of indexes, before they repeat


def place_name(gsi: str | None) -> str:
    return "table" if gsi is None else gsi


def colour(schema: Schema, gsi: str | None) -> str:
    """Return the class that gives the table, or an index, its colour."""
    return "c0" if gsi is None else f"c{1 + schema.gsis.index(gsi) % COLOURS}"


def place(schema: Schema, gsi: str | None) -> Markup:
    return tag("span", place_name(gsi), class_=f"place {colour(schema, gsi)}")


def half(label: str, components: Sequence[KeyComponent]) -> Markup:
    """Show a partition key or a sort key: constants and attributes, told apart."""
    shown: list[str] = []
    for component in components:
        if shown:
            shown.append(tag("span", "#", class_="sep"))
        if component.attribute is None:
            shown.append(tag("span", component.text or "∅", class_="constant"))
        else:
            order = " ↓" if component.descending else ""
            shown.append(tag("span", f"{component.text}{order}", class_="attribute"))
    return tag("span", tag("abbr", label, title=LABELS[label]), tag("code", *shown), class_="half")


LABELS = {"pk": "partition key", "sk": "sort key"}


def both_halves(key: KeySchema) -> Markup:
    return tag("div", half("pk", key.partition), half("sk", key.sort), class_="key")


def while_text(key: KeySchema) -> str:
    return "always" if key.when is None else f"while {key.when}"


def share(part: int, whole: int) -> str:
    """Return a share in percent, with one digit where it is small."""
    if not whole:
        return "0%"
    percent = 100 * part / whole
    return f"{percent:.0f}%" if percent >= 10 or not part else "< 0.1%" if percent < 0.1 else f"{percent:.1f}%"


def bar(part: int, whole: int) -> Markup:
    """Show a share as a bar. The text beside it says the same."""
    width = 0 if not whole else max(1 if part else 0, round(100 * part / whole))
    return tag("span", tag("span", style=f"width:{width}%"), class_="bar", aria_hidden="true")


def count(number: int, what: str, exact: bool = True) -> str:
    return f"{'' if exact else 'about '}{number:,} {what}{'' if number == 1 else 's'}"


def section(id: str, title: str, intro: str, *children: str) -> Markup:
    return tag("section", tag("h2", title), joined(tag("p", intro, class_="intro") if intro else ""), *children, id=id)
