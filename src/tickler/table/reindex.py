"""Reindexes a table in steps, and goes on where an earlier run was interrupted."""

from __future__ import annotations

import hashlib

import msgspec

from tickler.database.progress import OnProgress
from tickler.table.definition import TableDefinition
from tickler.table.engines.engine import Engine
from tickler.table.engines.metadata import EntryWrite
from tickler.table.index_texts import index_texts, save_index_texts

_KEY = "reindex"


class Progress(msgspec.Struct, frozen=True):
    """How far a reindex has come. It counts only for the definitions for which it was made."""

    definitions: str
    position: str | None = None
    seen: int = 0
    changed: int = 0


async def reindex(table: TableDefinition, engine: Engine, on_progress: OnProgress) -> int:
    """Write the keys of all items as they are defined now. Returns how many items had other keys."""
    texts = index_texts(table)
    definitions = hashlib.sha256(msgspec.json.encode(texts, order="sorted")).hexdigest()
    progress = await _interrupted(engine, definitions)
    while True:
        step = await engine.reindex_some(progress.position)
        progress = Progress(definitions, step.position, progress.seen + step.seen, progress.changed + step.changed)
        if step.position is not None:
            await engine.metadata.write([EntryWrite(_KEY, msgspec.json.encode(progress))])
        on_progress("indexing", progress.seen, None)
        if step.position is None:
            break
    await save_index_texts(engine.metadata, texts)
    await engine.metadata.write([EntryWrite(_KEY, None)])
    return progress.changed


async def _interrupted(engine: Engine, definitions: str) -> Progress:
    for entry in await engine.metadata.read(_KEY):
        stored = msgspec.json.decode(entry.value, type=Progress)
        if stored.definitions == definitions:
            return stored
    return Progress(definitions)
