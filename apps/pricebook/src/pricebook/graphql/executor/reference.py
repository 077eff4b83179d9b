"""Runs a query in graphql-core, with what its root fields returned already."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import isawaitable
from typing import Any

from graphql import ExecutionResult, GraphQLResolveInfo, GraphQLSchema, execute
from msgspec import Struct

from pricebook.graphql.executor.documents import Document


class RootResult(Struct, frozen=True, eq=False):
    """What a root field returned, or raised."""

    value: object
    error: Exception | None = None


class ReferenceRun(Struct, frozen=True, eq=False):
    """A query with its variables as they were sent."""

    document: Document
    operation_name: str | None
    variables: Mapping[str, Any]
    context: object


async def run_reference(
    schema: GraphQLSchema, run: ReferenceRun, roots: Mapping[str, RootResult] | None = None
) -> ExecutionResult:
    """Run it. Root fields whose results are given are not resolved again."""
    result = execute(
        schema,
        run.document.node,
        context_value=run.context,
        variable_values=dict(run.variables),
        operation_name=run.operation_name,
        middleware=None if roots is None else [_replay(roots)],
    )
    return await result if isawaitable(result) else result


def _replay(roots: Mapping[str, RootResult]) -> Callable[..., object]:
    def resolve(next_: Callable[..., object], source: object, info: GraphQLResolveInfo, **arguments: object) -> object:
        if info.path.prev is not None or info.path.key not in roots:
            return next_(source, info, **arguments)
        result = roots[str(info.path.key)]
        if result.error is not None:
            raise result.error
        return result.value

    return resolve
