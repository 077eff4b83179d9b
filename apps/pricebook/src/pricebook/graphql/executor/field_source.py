"""Where the value of a field comes from, as Strawberry declares it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphql import GraphQLField
from msgspec import Struct
from strawberry.schema.schema_converter import GraphQLCoreConverter
from strawberry.types.field import StrawberryField

from pricebook.graphql.batch import BATCHED, BatchedField


class Attribute(Struct, frozen=True):
    """An attribute of the node."""

    name: str


class BatchSource(Struct, frozen=True):
    """A read for all nodes of a list at once. `names` are those of the arguments in Python, by their names in the schema."""

    field: BatchedField
    names: Mapping[str, str]


class Resolver(Struct, frozen=True):
    """A function, which only root fields call here."""


Source = Attribute | BatchSource | Resolver


def source_of(definition: GraphQLField) -> Source:
    field = _declared(definition)
    if field is None:
        return Resolver()
    if field.is_basic_field:
        return Attribute(field.python_name)
    batched = field.metadata.get(BATCHED)
    if batched is None:
        return Resolver()
    return BatchSource(batched, {name: each.python_name for name, each in zip(definition.args, field.arguments, strict=True)})


def metadata_of(definition: GraphQLField) -> Mapping[Any, Any]:
    """Return what the declaration of a field says beside its type."""
    field = _declared(definition)
    return {} if field is None else field.metadata


def _declared(definition: GraphQLField) -> StrawberryField | None:
    field: Any = definition.extensions.get(GraphQLCoreConverter.DEFINITION_BACKREF)
    return field if isinstance(field, StrawberryField) else None
