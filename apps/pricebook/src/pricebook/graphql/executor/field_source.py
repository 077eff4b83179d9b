"""Where the value of a field comes from, as Strawberry declares it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from graphql import GraphQLField, GraphQLNonNull, GraphQLResolveInfo, GraphQLScalarType
from msgspec import Struct
from strawberry import Info
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


class DirectCall(Struct, frozen=True, eq=False):
    """A function whose arguments are scalars, which Strawberry would look at one by one and leave as they are."""

    function: Callable[..., object]
    field: StrawberryField
    names: Mapping[str, str]  # of the arguments in Python, by their names in the schema
    info: str | None  # the name of the parameter

    def __call__(self, info: GraphQLResolveInfo, arguments: Mapping[str, object]) -> object:
        named = {self.names[name]: value for name, value in arguments.items()}
        if self.info is not None:
            named[self.info] = Info(_raw_info=info, _field=self.field)
        return self.function(**named)


class Resolver(Struct, frozen=True):
    """A function, which only root fields call here. Where it can be called directly, that is much faster."""

    direct: DirectCall | None = None


Source = Attribute | BatchSource | Resolver


def source_of(definition: GraphQLField) -> Source:
    field = _declared(definition)
    if field is None:
        return Resolver()
    if field.is_basic_field:
        return Attribute(field.python_name)
    batched = field.metadata.get(BATCHED)
    if batched is None:
        return Resolver(_direct_call(definition, field))
    return BatchSource(batched, _names(definition, field))


def metadata_of(definition: GraphQLField) -> Mapping[Any, Any]:
    """Return what the declaration of a field says beside its type."""
    field = _declared(definition)
    return {} if field is None else field.metadata


def _direct_call(definition: GraphQLField, field: StrawberryField) -> DirectCall | None:
    resolver = field.base_resolver
    if resolver is None or field.extensions or resolver.self_parameter or resolver.parent_parameter or resolver.root_parameter:
        return None
    for argument in definition.args.values():
        of_type = argument.type.of_type if isinstance(argument.type, GraphQLNonNull) else argument.type
        if not isinstance(of_type, GraphQLScalarType):
            return None
    info, function = resolver.info_parameter, resolver.wrapped_func
    if isinstance(function, staticmethod | classmethod):
        return None
    return DirectCall(function, field, _names(definition, field), None if info is None else info.name)


def _names(definition: GraphQLField, field: StrawberryField) -> dict[str, str]:
    return {name: each.python_name for name, each in zip(definition.args, field.arguments, strict=True)}


def _declared(definition: GraphQLField) -> StrawberryField | None:
    field: Any = definition.extensions.get(GraphQLCoreConverter.DEFINITION_BACKREF)
    return field if isinstance(field, StrawberryField) else None
