"""The definitions of indexes as text, by which a table knows whether its items were written by the same ones."""

from __future__ import annotations

from tickler.table.definition import TableDefinition

IndexTexts = dict[str, dict[str, str]]  # by entity and index of the table


def index_texts(table: TableDefinition) -> IndexTexts:
    """Return how each entity defines its keys in each index of the table."""
    return {
        definition.name: {
            gsi: "; ".join(
                f"{index.pk!r}, {index.sk!r}" + ("" if index.when is None else f", when {index.when!r}")
                for index in definition.slots.get(gsi, ())
            )
            for gsi in table.gsis
        }
        for definition in table.entities.values()
    }


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
