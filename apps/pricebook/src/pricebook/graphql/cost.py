"""What an operation costs: the most values that its answer can have, and what it reads and writes.

A field counts one. A list counts as often as the page has nodes: `first` or `last` of the nearest connection above it, which
compound with those further up. Of several types that a value may be of, the dearest counts. The sizes of pages may be variables,
so the cost is computed for each request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graphql import GraphQLList, GraphQLNonNull, GraphQLOutputType, IntValueNode, OperationType, VariableNode

from pricebook.editions.pages import DEFAULT_PAGE, MAX_PAGE
from pricebook.graphql.executor.bounded_cache import BoundedCache
from pricebook.graphql.executor.field_source import Attribute, BatchSource
from pricebook.graphql.executor.plan import FieldPlan, Plan, Selection

READ = 100  # of the store
WRITE = 1_000  # of a mutation
INTROSPECTION = 10_000  # all of the schema takes as long as so many values
SLOW = 10  # values of queries that no function can be written for take longer
LIST = 10  # nodes of a list that is no page


class Cost:
    """Computes the cost of a plan for the sizes that its pages have."""

    def __init__(self, plan: Plan) -> None:
        self._root = plan.root
        self._resolver = WRITE if plan.operation.operation is OperationType.MUTATION else READ
        self._value = 1 if plan.obstacle is None else SLOW
        self._pages = list(_pages(plan.root))
        self._known: BoundedCache[tuple[int, ...], int] = BoundedCache(64)

    def of(self, variables: Mapping[str, Any]) -> int:
        sizes = tuple(page_size(page, variables) for page in self._pages)
        cost = self._known.get(sizes)
        if cost is None:
            by_page = dict(zip(map(id, self._pages), sizes, strict=True))
            cost = self._object([self._root], LIST, by_page)
            self._known.put(sizes, cost)
        return cost

    def _object(self, selections: Sequence[Selection], size: int, sizes: Mapping[int, int]) -> int:
        """Return the cost of an object that may be of any of these types, with lists of this size."""
        return max((sum(self._field(field, size, sizes) for field in each.fields) for each in selections), default=0)

    def _field(self, field: FieldPlan, size: int, sizes: Mapping[int, int]) -> int:
        if field.is_introspection:
            return INTROSPECTION
        if field.definition is None:
            return self._value
        size = sizes.get(id(field), size)
        if _is_list(field.definition.type):
            return self._read(field) + size * (self._value + self._object(field.selections, LIST, sizes))
        return self._read(field) + self._value + self._object(field.selections, size, sizes)

    def _read(self, field: FieldPlan) -> int:
        if isinstance(field.source, Attribute):
            return 0
        return field.source.field.cost if isinstance(field.source, BatchSource) else self._resolver


def page_size(field: FieldPlan, variables: Mapping[str, Any]) -> int:
    """Return how many nodes a page has at most. What no page may have is refused when it is read."""
    first, last = _argument(field, "first", variables), _argument(field, "last", variables)
    asked = last if first is None else first
    return DEFAULT_PAGE if asked is None else max(0, min(asked, MAX_PAGE))


def _argument(field: FieldPlan, name: str, variables: Mapping[str, Any]) -> int | None:
    for argument in field.nodes[0].arguments:
        if argument.name.value == name:
            if isinstance(argument.value, IntValueNode):
                return int(argument.value.value)
            if isinstance(argument.value, VariableNode):
                return variables.get(argument.value.name.value)
    return None


def _pages(selection: Selection) -> Iterator[FieldPlan]:
    for field in selection.fields:
        if field.definition is not None and {"first", "last"} <= field.definition.args.keys():
            yield field
        for each in field.selections:
            yield from _pages(each)


def _is_list(type_: GraphQLOutputType) -> bool:
    return isinstance(type_.of_type if isinstance(type_, GraphQLNonNull) else type_, GraphQLList)
