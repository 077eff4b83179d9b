"""Answers GraphQL requests, over whatever they come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from graphql import GraphQLError, GraphQLSchema
from msgspec import UNSET, Struct, UnsetType

from pricebook.graphql.codes import refusal
from pricebook.graphql.context import RequestContext
from pricebook.graphql.errors import formatted
from pricebook.graphql.executor.documents import Documents
from pricebook.graphql.executor.executor import Executor, Prepared
from pricebook.graphql.limits import Limits

_encode = msgspec.json.Encoder().encode


class GraphqlRequest(Struct, frozen=True, rename="camel"):
    """What a client sends. The names are those of GraphQL over HTTP; what else is there is ignored."""

    query: str
    variables: dict[str, Any] | None = None
    operation_name: str | None = None


class GraphqlAnswer(Struct, frozen=True):
    """An answer as JSON. A request that was refused has no data, and was not run."""

    body: bytes
    is_refused: bool = False


class QueryCost(Struct, frozen=True, rename="camel"):
    requested_query_cost: int
    maximum_available: int


class _Extensions(Struct, frozen=True):
    cost: QueryCost


class _Answer(Struct, frozen=True, omit_defaults=True):
    data: Any = UNSET
    errors: Sequence[Mapping[str, Any]] | UnsetType = UNSET
    extensions: _Extensions | UnsetType = UNSET


class Graphql:
    """Checks, runs and answers queries of a schema within limits."""

    def __init__(self, schema: GraphQLSchema, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.executor = Executor(schema)
        self._documents = Documents(schema, self.limits)

    def prepare(self, request: GraphqlRequest) -> Prepared | GraphqlAnswer:
        """Return what can be run, or why the request is refused."""
        document = self._documents.get(request.query)
        if isinstance(document, list):
            return refused(document)
        try:
            prepared = self.executor.prepare(document, request.operation_name, request.variables or {})
        except GraphQLError as error:
            return refused([error])
        if isinstance(prepared, list):
            return refused([_with_variable_code(error) for error in prepared])
        return self._refused_cost(prepared) or prepared

    async def run(self, prepared: Prepared, context: RequestContext) -> GraphqlAnswer:
        result = await self.executor.run(prepared, context)
        errors = UNSET if result.errors is None else formatted(result.errors)
        return GraphqlAnswer(_encode(_Answer(result.data, errors, self._extensions(prepared.cost))))

    async def answer(self, request: GraphqlRequest, context: RequestContext) -> GraphqlAnswer:
        prepared = self.prepare(request)
        return prepared if isinstance(prepared, GraphqlAnswer) else await self.run(prepared, context)

    def _refused_cost(self, prepared: Prepared) -> GraphqlAnswer | None:
        cost = prepared.cost
        if cost <= self.limits.cost:
            return None
        remedy = "ask for smaller pages or fewer fields"
        error = refusal("COST_EXCEEDED", f"the query costs {cost:,}, and {self.limits.cost:,} is the most: {remedy}")
        return refused([error], self._extensions(cost))

    def _extensions(self, cost: int) -> _Extensions:
        return _Extensions(QueryCost(cost, self.limits.cost))


def refused(errors: Sequence[GraphQLError], extensions: _Extensions | UnsetType = UNSET) -> GraphqlAnswer:
    return GraphqlAnswer(_encode(_Answer(UNSET, formatted(errors), extensions)), is_refused=True)


def _with_variable_code(error: GraphQLError) -> GraphQLError:
    error.extensions = {"code": "BAD_VARIABLES"}
    return error
