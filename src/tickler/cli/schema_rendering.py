"""Shows the schema of a table in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tickler.cli.output import show_table, visible
from tickler.observe.human_format import count
from tickler.table.measurement import Fill, Measurement
from tickler.table.schema.schema import EntitySchema, KeySchema, Schema

NOWHERE = "-"
MATRIX_WIDTH = 34  # characters of a column with keys in it; a narrower terminal shows their names, and then the keys in a list


def show_schema(schema: Schema, measured: Measurement | None, source: str | None, console: Console | None = None) -> None:
    console = console or Console()
    console.out(visible(_summary(schema, measured, source)), highlight=False)
    places = (None, *schema.gsis)
    if console.is_terminal and console.width >= MATRIX_WIDTH * len(places):
        console.out()
        console.print(_matrix(schema))
    else:
        _list(console, ["entity", *map(_place, places)], [_matrix_row(entity, places) for entity in schema.entities])
        _list(console, ["key", "in", "partition key", "sort key", "while"], [_key_row(key) for key in _keys(schema)])
    attributes = [row for entity in schema.entities for row in _attribute_rows(entity)]
    _list(console, ["attribute", "type", "makes", "decides", "role"], attributes)
    _list(console, ["for example", "partition key", "sort key"], [[key.full_name, *key.example] for key in _keys(schema)])
    shared = [[each.pattern, _place(each.gsi), ", ".join(each.keys)] for each in schema.shared]
    _list(console, ["shared partition", "in", "by"], shared)
    if measured is not None:
        _list(console, ["in", "items", "of the table", "by entity", "largest partition"], _fill_rows(schema, measured))
    calls = [[each.call, _place(each.gsi), each.answer] for each in schema.access_patterns]
    _list(console, ["call", "in", "answers"], calls)


def _list(console: Console, columns: list[str], rows: list[list[str]]) -> None:
    if rows:
        console.out()
        show_table(columns, rows, console=console)


def _summary(schema: Schema, measured: Measurement | None, source: str | None) -> str:
    entities = f"{len(schema.entities)} {'entity' if len(schema.entities) == 1 else 'entities'}"
    indexes = f"{len(schema.gsis)} {'index' if len(schema.gsis) == 1 else 'indexes'}"
    said = f"{schema.table}: {entities}, {indexes}"
    return said if measured is None else f"{said}, {_items(measured.table)} in {source}"


def _matrix(schema: Schema) -> Table:
    places = (None, *schema.gsis)
    table = Table(box=box.ROUNDED, show_lines=True)
    for column in ("entity", *map(_place, places)):
        table.add_column(column, overflow="fold")
    for entity in schema.entities:
        table.add_row(Text(entity.name, "bold"), *(_cell(entity, gsi) for gsi in places))
    return table


def _matrix_row(entity: EntitySchema, places: Sequence[str | None]) -> list[str]:
    return [entity.name, *(", ".join(key.name for key in entity.keys_in(gsi)) or NOWHERE for gsi in places)]


def _cell(entity: EntitySchema, gsi: str | None) -> Text:
    keys = entity.keys_in(gsi)
    if not keys:
        return Text("· · ·", "dim")
    text = Text()
    for key in keys:
        text.append("\n\n" if text else "").append(key.name, "bold")
        text.append("\npk ", "dim").append(key.partition_text, "green").append("\nsk ", "dim").append(key.sort_text, "green")
        if key.when is not None:
            text.append(f"\nwhile {key.when}", "italic")
    return text


def _key_row(key: KeySchema) -> list[str]:
    return [key.full_name, _place(key.gsi), key.partition_text, key.sort_text, "always" if key.when is None else key.when]


def _attribute_rows(entity: EntitySchema) -> list[list[str]]:
    rows = []
    for attribute in entity.attributes:
        makes = [f"{key.name} {half}" for key in entity.keys for half in _halves(key, attribute.name)]
        decides = [key.name for key in entity.keys if attribute.name in key.deciding]
        kind = f"{attribute.type}{' | Missing' if attribute.optional else ''}"
        rows.append([f"{entity.name}.{attribute.name}", kind, ", ".join(makes), ", ".join(decides), attribute.role or ""])
    return rows


def _halves(key: KeySchema, attribute: str) -> list[str]:
    return [name for name, half in (("pk", key.partition), ("sk", key.sort)) if attribute in {part.attribute for part in half}]


def _fill_rows(schema: Schema, measured: Measurement) -> list[list[str]]:
    rows = [["table", _items(measured.table), "", _by_entity(measured.table, None), _largest(measured.table)]]
    for gsi in schema.gsis:
        fill = measured.indexes[gsi]
        share = _share(fill.total, measured.table.total)
        rows.append([gsi, _items(fill), share, _by_entity(fill, measured.table), _largest(fill)])
    return rows


def _by_entity(fill: Fill, whole: Fill | None) -> str:
    """Return the items of each entity, and which share of the entity's items they are."""
    shares = [
        f"{name} {items:,}{'' if whole is None else f' ({_share(items, whole.items.get(name, 0))})'}"
        for name, items in fill.items.items()
    ]
    return ", ".join(shares)


def _largest(fill: Fill) -> str:
    if fill.largest is None:
        return ""
    return f"{fill.largest.key} with {fill.largest.items:,} ({_share(fill.largest.items, fill.total)})"


def _items(fill: Fill) -> str:
    return f"{'' if fill.exact else 'about '}{count(fill.total, 'item')}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else ""


def _place(gsi: str | None) -> str:
    return "table" if gsi is None else gsi


def _keys(schema: Schema) -> list[KeySchema]:
    return [key for entity in schema.entities for key in entity.keys]
