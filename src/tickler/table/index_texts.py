"""The definitions of indexes as text, by which a table knows whether its items were written by the same ones."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import NODEFAULT

from tickler.table.condition import text_of
from tickler.table.declaration import MISSING
from tickler.table.definition import TableDefinition
from tickler.table.engines.metadata import EntryWrite, Metadata
from tickler.table.key import Index

IndexTexts = dict[str, dict[str, str]]  # by entity and index of the table
PREFIX = "indexes/"  # of an entity's entry in the metadata
EXPIRY = "expires_at"  # stands beside the indexes, because rows say when they expire as they say where they are indexed


def index_texts(table: TableDefinition) -> IndexTexts:
    """Return how each entity defines its keys in each index of the table."""
    return {
        definition.name: {
            **{gsi: "; ".join(map(_text, definition.slots.get(gsi, ()))) for gsi in table.gsis},
            EXPIRY: "" if definition.expires is None else definition.expires.name,
        }
        for definition in table.entities.values()
    }


def _text(index: Index[Any, Any]) -> str:
    when = "" if index.when is None else f", when {index.when!r}"
    return f"{index.pk!r}, {index.sk!r}{when}{_defaults(index)}"


def _defaults(index: Index[Any, Any]) -> str:
    """Return the defaults that decide where an item is that was stored without the attribute."""
    paths = [part.path for template in (index.pk, index.sk) for part in template.parts]
    paths += [leaf.path for leaf in index.when.leaves()] if index.when is not None else []
    found = {path.attribute.name: path.attribute.default for path in paths}
    texts = [f"{name}={text_of(value)}" for name, value in sorted(found.items()) if value not in (NODEFAULT, MISSING)]
    return f", by default {', '.join(texts)}" if texts else ""


def outdated(table: TableDefinition, stored: IndexTexts) -> list[str]:
    """Return the names of indexes that are defined otherwise than when items of their entity were written."""
    now = index_texts(table)
    return [
        f"{entity}/{gsi}"
        for entity, texts in now.items()
        if entity in stored
        for gsi, text in texts.items()
        if stored[entity].get(gsi, "") != text
    ]


async def read_index_texts(metadata: Metadata) -> IndexTexts:
    """Return the definitions of indexes by which the keys of stored items were written; empty for a new table."""
    entries = await metadata.read(PREFIX)
    return {entry.key.removeprefix(PREFIX): msgspec.json.decode(entry.value, type=dict[str, str]) for entry in entries}


async def save_index_texts(metadata: Metadata, texts: IndexTexts) -> None:
    """Record the definitions of some entities. Those of the others stay: another program may record them just now."""
    await metadata.write([EntryWrite(f"{PREFIX}{entity}", msgspec.json.encode(each)) for entity, each in texts.items()])
