"""Limits of what a query may look like, checked before it is validated: some rules take time that grows with its square."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    InlineFragmentNode,
    OperationDefinitionNode,
    OperationType,
    SelectionNode,
    SelectionSetNode,
)
from msgspec import Struct

from pricebook.graphql.codes import refusal


class Limits(Struct, frozen=True):
    """What one query may have. What a fragment has counts as often as the fragment is used."""

    characters: int = 20_000
    tokens: int = 1_000
    depth: int = 12  # of fields in fields, without the introspection
    aliases: int = 50
    fields: int = 500
    repeats: int = 20  # of one name in one set of fields
    mutations: int = 4
    cost: int = 50_000  # see cost.py
    introspection: bool = True


class _Shape(Struct):
    """What a set of fields adds up to."""

    depth: int = 0
    fields: int = 0
    aliases: int = 0
    names: Counter[str] = Counter()  # of this level only
    most_repeats: int = 0  # at any level
    introspects: bool = False
    has_aliased_introspection: bool = False

    def add(self, other: _Shape) -> None:
        """Add the fields of a fragment to this level."""
        self.depth = max(self.depth, other.depth)
        self.fields += other.fields
        self.aliases += other.aliases
        self.names.update(other.names)
        self._add_flags(other)

    def add_field(self, node: FieldNode, inside: _Shape) -> None:
        self.fields += 1 + inside.fields
        self.aliases += inside.aliases + (node.alias is not None)
        self.names[node.alias.value if node.alias else node.name.value] += 1
        self._add_flags(inside)
        if node.name.value in ("__schema", "__type"):
            self.introspects = True
            self.has_aliased_introspection |= inside.aliases > 0
            self.depth = max(self.depth, 1)
        else:
            self.depth = max(self.depth, 1 + inside.depth)

    def _add_flags(self, other: _Shape) -> None:
        self.most_repeats = max(self.most_repeats, other.most_repeats)
        self.introspects |= other.introspects
        self.has_aliased_introspection |= other.has_aliased_introspection


class _Measure:
    """Measures the sets of fields of a document, each fragment once."""

    def __init__(self, document: DocumentNode) -> None:
        self._fragments = {each.name.value: each for each in document.definitions if isinstance(each, FragmentDefinitionNode)}
        self._measured: dict[str, _Shape] = {}

    def shape(self, selection_set: SelectionSetNode | None) -> _Shape:
        shape = _Shape(names=Counter())
        for node in () if selection_set is None else selection_set.selections:
            self._add(shape, node)
        shape.most_repeats = max(shape.most_repeats, max(shape.names.values(), default=0))
        return shape

    def _add(self, shape: _Shape, node: SelectionNode) -> None:
        if isinstance(node, FieldNode):
            shape.add_field(node, self.shape(node.selection_set))
        elif isinstance(node, InlineFragmentNode):
            shape.add(self.shape(node.selection_set))
        elif isinstance(node, FragmentSpreadNode):
            shape.add(self._fragment(node.name.value))

    def _fragment(self, name: str) -> _Shape:
        """Return the shape of a fragment. One that does not exist or contains itself is refused by the validation."""
        if name not in self._measured:
            self._measured[name] = _Shape(names=Counter())
            if name in self._fragments:
                self._measured[name] = self.shape(self._fragments[name].selection_set)
        return self._measured[name]


def exceeded_limits(document: DocumentNode, limits: Limits) -> Iterator[GraphQLError]:
    """Return what is too much in a document."""
    measure = _Measure(document)
    for operation in document.definitions:
        if isinstance(operation, OperationDefinitionNode):
            yield from _exceeded(operation, measure.shape(operation.selection_set), limits)


def _exceeded(operation: OperationDefinitionNode, shape: _Shape, limits: Limits) -> Iterator[GraphQLError]:
    if shape.depth > limits.depth:
        yield refusal("TOO_DEEP", f"fields are nested {shape.depth} deep: {limits.depth} is the most", operation)
    if shape.aliases > limits.aliases:
        yield refusal("TOO_MANY_ALIASES", f"there are {shape.aliases} aliases: {limits.aliases} is the most", operation)
    if shape.fields > limits.fields:
        yield refusal("TOO_MANY_FIELDS", f"there are {shape.fields} fields: {limits.fields} is the most", operation)
    if shape.most_repeats > limits.repeats:
        text = f"a field is there {shape.most_repeats} times: {limits.repeats} is the most; once is enough"
        yield refusal("TOO_MANY_FIELDS", text, operation)
    if operation.operation is OperationType.MUTATION and shape.names.total() > limits.mutations:
        text = f"there are {shape.names.total()} mutations: {limits.mutations} is the most in one request"
        yield refusal("TOO_MANY_MUTATIONS", text, operation)
    if shape.introspects and not limits.introspection:
        yield refusal("INTROSPECTION_DISABLED", "the schema cannot be asked for here: see the documentation", operation)
    if shape.has_aliased_introspection:
        yield refusal("TOO_MANY_ALIASES", "fields of the introspection cannot have aliases: ask for each once", operation)
