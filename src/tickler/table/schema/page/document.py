"""The schema of a table as one page of HTML that needs nothing else: no network, no other file."""

from __future__ import annotations

import re
from importlib.resources import files

from tickler.table.measurement import Measurement
from tickler.table.schema.page.entities import entities
from tickler.table.schema.page.indexes import indexes
from tickler.table.schema.page.markup import Markup, tag
from tickler.table.schema.page.matrix import matrix
from tickler.table.schema.page.parts import count, place, section
from tickler.table.schema.schema import AccessPattern, Schema

GENERATOR = "tickler table show"
_ICON = Markup(
    '<svg viewBox="0 0 32 32" aria-hidden="true"><path d="M3 9h9l3 4h14v14H3z" class="folder"/>'
    '<path d="M16 15v5l4 3" class="hand"/></svg>'
)


def html_page(schema: Schema, measured: Measurement | None = None, source: str | None = None) -> str:
    """Return the page. `source` says in its head where the table was measured."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=GENERATOR),
        tag("title", f"{schema.table} · Tickler"),
        tag("style", Markup(_text("style.css"))),
    )
    body = tag(
        "body",
        tag("header", tag("span", _ICON, "Tickler", class_="brand"), _navigation(), class_="top"),
        tag(
            "main",
            tag("h1", "Table ", tag("code", schema.table)),
            tag("p", _summary(schema, measured, source), class_="summary"),
            matrix(schema, measured),
            entities(schema),
            indexes(schema, measured),
            _calls(schema),
        ),
        tag("footer", "Made by ", tag("code", GENERATOR), "."),
        tag("script", Markup(_text("lines.js"))),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _navigation() -> Markup:
    parts = [("matrix", "Keys"), ("entities", "Attributes"), ("indexes", "Indexes"), ("calls", "Calls")]
    return tag("nav", *(tag("a", name, href=f"#{id}") for id, name in parts), aria_label="Sections")


def _summary(schema: Schema, measured: Measurement | None, source: str | None) -> str:
    entities_text = f"{len(schema.entities)} {'entity' if len(schema.entities) == 1 else 'entities'}"
    indexes_text = f"{len(schema.gsis)} {'index' if len(schema.gsis) == 1 else 'indexes'}"
    if measured is None:
        return f"{entities_text}, {indexes_text}"
    where = "" if source is None else f" in {source}"
    how = "" if measured.exact else ", estimated by a sample"
    return f"{entities_text}, {indexes_text}, {count(measured.table.total, 'item', measured.table.exact)}{where}{how}"


def _calls(schema: Schema) -> Markup:
    groups: dict[tuple[str, ...], list[AccessPattern]] = {}
    for pattern in schema.access_patterns:
        groups.setdefault(pattern.entities, []).append(pattern)
    intro = (
        "Names of attributes stand for values. Where there is since, there are after, until, before and between, too; "
        "newest_first reads backwards."
    )
    return section("calls", "What can be asked", intro, *(_group(schema, *each) for each in groups.items()))


def _group(schema: Schema, entities: tuple[str, ...], patterns: list[AccessPattern]) -> Markup:
    rows = [
        tag("li", tag("pre", tag("code", *_breakable(each.call))), tag("span", place(schema, each.gsi), tag("span", each.answer)))
        for each in patterns
    ]
    return tag("article", tag("h3", ", ".join(entities)), tag("ul", *rows, class_="calls"), class_="card")


def _breakable(call: str) -> list[str]:
    """Let a narrow screen break a call behind brackets and before dots."""
    pieces = re.split(r"(?<=\()|(?=\.)", call)
    return [part for piece in pieces for part in (tag("wbr"), piece)][1:]


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
