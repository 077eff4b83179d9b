"""The schema: queries, and the mutations of whoever has them."""

from __future__ import annotations

import strawberry
from graphql import GraphQLSchema
from strawberry.schema.config import StrawberryConfig

from pricebook.graphql.queries import Query
from pricebook.graphql.scalars import SCALARS


def build_schema(mutation: type | None = None) -> GraphQLSchema:
    """Build the schema with Strawberry. The executor runs it on graphql-core's own terms."""
    return strawberry.Schema(Query, mutation, config=StrawberryConfig(scalar_map=SCALARS))._schema
