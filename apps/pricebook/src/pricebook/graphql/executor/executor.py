"""Runs operations with compiled functions, and with graphql-core what those cannot do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from graphql import (
    ExecutionResult,
    GraphQLError,
    GraphQLResolveInfo,
    GraphQLSchema,
    OperationType,
    is_non_null_type,
    located_error,
)
from graphql.execution.values import get_argument_values, get_variable_values
from graphql.pyutils import Path, is_awaitable
from msgspec import Struct
from msgspec.structs import replace

from pricebook.graphql.cost import Cost
from pricebook.graphql.executor.bounded_cache import BoundedCache
from pricebook.graphql.executor.code import Compiled, compile_plan
from pricebook.graphql.executor.documents import Document
from pricebook.graphql.executor.field_source import BatchSource, Resolver
from pricebook.graphql.executor.plan import FieldPlan, Plan, Planner
from pricebook.graphql.executor.reference import ReferenceRun, RootResult, run_reference
from pricebook.graphql.executor.slow_runs import SlowRuns
from pricebook.graphql.executor.surprise import Surprise

MAX_FUNCTIONS = 500


class Planned(Struct, frozen=True, eq=False):
    """A plan, what it costs, and its functions, if it can have any."""

    plan: Plan
    cost: Cost
    compiled: Compiled | None
    roots: Sequence[FieldPlan]  # those that have resolvers

    @classmethod
    def of(cls, plan: Plan) -> Planned:
        compiled = None
        if plan.obstacle is None:
            try:
                compiled = compile_plan(plan)
            except Exception as error:  # such as a query that is nested deeper than code may be
                plan = replace(plan, obstacle=f"no function: {type(error).__name__}")
        return cls(plan, Cost(plan), compiled, [field for field in plan.root.fields if field.definition is not None])


class Prepared(Struct, frozen=True, eq=False):
    """An operation that can be run. `variables` are those that were sent; `values` have the types that it declares."""

    document: Document
    operation_name: str | None
    variables: Mapping[str, Any]
    values: Mapping[str, Any]
    planned: Planned

    @property
    def cost(self) -> int:
        return self.planned.cost.of(self.values)

    @property
    def is_query(self) -> bool:
        return self.planned.plan.operation.operation is OperationType.QUERY

    def reference_run(self, context: object) -> ReferenceRun:
        return ReferenceRun(self.document, self.operation_name, self.variables, context)


class Executor:
    """Plans and compiles each query once for each set of its flags. Mutations are run by graphql-core, one after the other."""

    def __init__(self, schema: GraphQLSchema, slow_runs: SlowRuns | None = None) -> None:
        self._schema = schema
        self.slow_runs = slow_runs or SlowRuns()
        self._known: BoundedCache[tuple[Document, str | None, tuple[object, ...]], Planned] = BoundedCache(MAX_FUNCTIONS)

    def prepare(self, document: Document, name: str | None, variables: Mapping[str, Any]) -> Prepared | list[GraphQLError]:
        """Return the operation with its plan, or what is wrong with its variables."""
        operation = document.operation(name)
        values = get_variable_values(self._schema, operation.node.variable_definitions, dict(variables), max_errors=20)
        if isinstance(values, list):
            return values
        flags = {flag: values.get(flag) for flag in operation.flags}
        key = (document, name, tuple(flags.values()))
        planned = self._known.get(key)
        if planned is None:
            planned = Planned.of(Planner(self._schema, document.fragments, flags).plan(operation.node))
            self._known.put(key, planned)
        return Prepared(document, name, variables, values, planned)

    async def run(self, prepared: Prepared, context: object) -> ExecutionResult:
        """Run an operation. The data is made of records, or of dicts where graphql-core ran it; both are the same as JSON."""
        compiled, roots = prepared.planned.compiled, prepared.planned.roots
        if not prepared.is_query:
            return await run_reference(self._schema, prepared.reference_run(context))
        if compiled is None:
            return await self._run_slowly(prepared, context, prepared.planned.plan.obstacle or "")
        results = await self._resolve(prepared, roots, context)
        done = await self._complete(compiled, prepared, results, context)
        if isinstance(done, ExecutionResult):
            return done
        by_key = {field.key: result for field, result in zip(roots, results, strict=True)}
        return await self._run_slowly(prepared, context, done, by_key)

    async def _complete(
        self, compiled: Compiled, prepared: Prepared, results: Sequence[RootResult], context: object
    ) -> ExecutionResult | str:
        """Return the answer, or why the functions cannot make it."""
        values: list[object] = []
        errors: list[GraphQLError] = []
        try:
            for field, result in zip(prepared.planned.roots, results, strict=True):
                values.append(result.value)
                if result.error is not None:
                    errors.append(_field_error(field, result.error))
            batches = None
            if compiled.prefetch is not None:
                batches = await compiled.prefetch(_fetch(compiled, prepared.values, context), *values)
            data: Any = compiled.run(*values, batches)
        except Surprise as surprise:
            return str(surprise)
        except Exception as error:  # whatever it is, graphql-core says what becomes of it
            return type(error).__name__
        errors.sort(key=lambda error: (error.locations or [], error.path or [], error.message))
        return ExecutionResult(data, errors or None)

    async def _run_slowly(
        self, prepared: Prepared, context: object, reason: str, results: Mapping[str, RootResult] | None = None
    ) -> ExecutionResult:
        self.slow_runs.count(reason, prepared.document.text)
        return await run_reference(self._schema, prepared.reference_run(context), results)

    async def _resolve(self, prepared: Prepared, roots: Sequence[FieldPlan], context: object) -> list[RootResult]:
        """Call the resolvers of the root fields, all at the same time."""
        begun = [self._begin(prepared, field, context) for field in roots]
        if len(begun) == 1:
            return [await _settled(begun[0])]
        return list(await asyncio.gather(*(_settled(each) for each in begun)))

    def _begin(self, prepared: Prepared, field: FieldPlan, context: object) -> object:
        definition, nodes = field.definition, list(field.nodes)
        assert definition is not None
        assert definition.resolve is not None
        try:
            arguments = get_argument_values(definition, nodes[0], dict(prepared.values))
            info = GraphQLResolveInfo(
                field_name=field.name,
                field_nodes=nodes,
                return_type=definition.type,
                parent_type=field.parent,
                path=Path(None, field.key, field.parent.name),
                schema=self._schema,
                fragments=dict(prepared.document.fragments),
                root_value=None,
                operation=prepared.planned.plan.operation,
                variable_values=dict(prepared.values),
                context=context,
                is_awaitable=is_awaitable,
            )
            if isinstance(field.source, Resolver) and field.source.direct is not None:
                return field.source.direct(info, arguments)
            return definition.resolve(None, info, **arguments)
        except Exception as error:
            return error


async def _settled(result: Any) -> RootResult:
    try:
        value = await result if is_awaitable(result) else result
    except Exception as error:
        return RootResult(None, error)
    return RootResult(None, value) if isinstance(value, Exception) else RootResult(value)


def _field_error(field: FieldPlan, error: Exception) -> GraphQLError:
    assert field.definition is not None
    if is_non_null_type(field.definition.type):
        raise Surprise(f"{field.parent.name}.{field.name} failed and cannot be null")
    return located_error(error, field.nodes, [field.key])


def _fetch(
    compiled: Compiled, values: Mapping[str, Any], context: Any
) -> Callable[[int, Sequence[object]], Awaitable[list[Any]]]:
    async def fetch(number: int, nodes: Sequence[object]) -> list[Any]:
        field = compiled.sites[number].field
        assert field.definition is not None
        assert isinstance(field.source, BatchSource)
        arguments = get_argument_values(field.definition, field.nodes[0], dict(values))
        named = {field.source.names[name]: value for name, value in arguments.items()}
        keys = [field.source.field.key(node, context, **named) for node in nodes]
        found: list[Any] = await context.batch(field.source.field).many(keys)
        return found

    return fetch
