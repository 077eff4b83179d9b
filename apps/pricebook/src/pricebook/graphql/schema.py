"""The schema: what can be asked for, and what can be done."""

from __future__ import annotations

import strawberry
from graphql import GraphQLSchema
from strawberry.schema.config import StrawberryConfig

from pricebook.graphql.audit.queries import AuditQueries
from pricebook.graphql.changes.mutations import Mutation
from pricebook.graphql.changes.queries import ChangeSetQueries
from pricebook.graphql.prices.queries import PriceQueries
from pricebook.graphql.scalars import SCALARS
from pricebook.graphql.stores import StoreQueries


@strawberry.type(
    description="What can be asked for. A field that fails is null, with an error, and leaves the others as they are."
)
class Query(PriceQueries, ChangeSetQueries, AuditQueries, StoreQueries):
    pass


def build_schema() -> GraphQLSchema:
    """Build the schema with Strawberry. The executor runs it on graphql-core's own terms."""
    return strawberry.Schema(Query, Mutation, config=StrawberryConfig(scalar_map=SCALARS))._schema
