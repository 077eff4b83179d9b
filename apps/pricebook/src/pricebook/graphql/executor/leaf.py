"""How compiled functions check leaves, the values that have no fields: what passes a check goes into the answer as it is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from math import isfinite
from typing import Any

from graphql import (
    GraphQLBoolean,
    GraphQLFloat,
    GraphQLID,
    GraphQLInt,
    GraphQLNamedType,
    GraphQLString,
    Undefined,
)

from pricebook.graphql.executor.surprise import Surprise
from pricebook.graphql.scalars import SCALARS, Day, Instant, MinorUnits
from pricebook.money import MAX_MINOR

TEXTS = {GraphQLString.name, GraphQLID.name}
"""Types whose values are texts. A function checks all of them of an object at once."""

_CHECKS = {
    GraphQLInt.name: "type({0}) is int and -2147483648 <= {0} <= 2147483647",
    GraphQLFloat.name: "type({0}) is float and isfinite({0})",
    GraphQLBoolean.name: "{0} is True or {0} is False",
    SCALARS[MinorUnits].name: f"type({{0}}) is int and {-MAX_MINOR} <= {{0}} <= {MAX_MINOR}",
    # msgspec writes these as the scalars do.
    SCALARS[Instant].name: "type({0}) is datetime and {0}.tzinfo is UTC",
    SCALARS[Day].name: "type({0}) is date",
}
NAMES: dict[str, object] = {"date": date, "datetime": datetime, "UTC": UTC, "isfinite": isfinite}
"""What the checks use."""


def check_of(type_: GraphQLNamedType, variable: str) -> str:
    """Return the condition under which a value needs no serializing; of unknown types every value does."""
    return _CHECKS.get(type_.name, "False").format(variable)


def serialized(serialize: Callable[[Any], object], value: object) -> object:
    """Serialize a value as graphql-core does, unless that would be an error."""
    if value is None or value is Undefined or isinstance(value, Exception):
        raise Surprise("a leaf has no value")
    result = serialize(value)
    if result is None or result is Undefined:
        raise Surprise("a leaf was serialized to nothing")
    return result
