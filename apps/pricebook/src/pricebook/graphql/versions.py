"""Which answers stay the same as long as the prices of some stores do, so that tills need not read them again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import msgspec
from graphql.execution.values import get_argument_values

from pricebook.access.price_reader import PriceReader
from pricebook.graphql.executor.executor import Prepared
from pricebook.graphql.executor.field_source import BatchSource, metadata_of
from pricebook.graphql.executor.plan import FieldPlan, Selection

VERSIONED_BY = "pricebook.versioned_by"
"""Key in the metadata of a root field, for the argument that names the store: the field shows only what counts there now."""


def stores_of(prepared: Prepared) -> list[str] | None:
    """Return the stores whose prices are all that an answer depends on; None if it shows anything else."""
    stores = []
    for field in prepared.planned.plan.root.fields:
        if field.definition is None and not field.is_introspection:
            continue  # __typename
        argument = None if field.definition is None else metadata_of(field.definition).get(VERSIONED_BY)
        if field.definition is None or argument is None or any(_names_instant(each) for each in _within(field)):
            return None
        stores.append(str(get_argument_values(field.definition, field.nodes[0], dict(prepared.values))[argument]))
    return list(dict.fromkeys(stores)) or None


async def etag_of(prepared: Prepared, stores: Sequence[str], prices: PriceReader) -> str:
    """Return a weak ETag of an answer. Its cursors change from one answer to the next, and the prices do not."""
    versions = [(store, await prices.version(store)) for store in stores]
    identity = (prepared.document.text, prepared.operation_name, prepared.variables, versions)
    return f'W/"{hashlib.blake2b(msgspec.json.encode(identity), digest_size=16).hexdigest()}"'


def _within(field: FieldPlan) -> Iterator[FieldPlan]:
    selections: list[Selection] = list(field.selections)
    while selections:
        for each in selections.pop().fields:
            yield each
            selections += each.selections


def _names_instant(field: FieldPlan) -> bool:
    """Tell whether a field shows prices of another instant, which may change while those of now do not."""
    return isinstance(field.source, BatchSource) and bool(field.nodes[0].arguments)
