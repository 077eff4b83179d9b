"""Limits of what a query may look like, checked before it is validated: one rule takes time that grows with its square."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
from pricebook.graphql.overlaps import has_more_comparisons


class Limits(Struct, frozen=True):
    """What one query may have. What a fragment has counts as often as the fragment is used."""

    characters: int = 20_000
    tokens: int = 1_000
    depth: int = 12  # of fields in fields, without the introspection
    aliases: int = 50
    fields: int = 500
    document_nodes: int = 2_000  # fields and fragments of the whole document
    comparisons: int = 2_000  # of fields that have the same name: see overlaps.py
    operations: int = 20
    mutations: int = 4
    cost: int = 50_000  # see cost.py
    introspection: bool = True


class _Shape(Struct):
    """What a set of fields adds up to."""

    depth: int = 0
    nodes: int = 0  # fields and uses of fragments
    fields: int = 0
    aliases: int = 0
    own_fields: int = 0  # of this level only
    introspects: bool = False
    has_aliased_introspection: bool = False

    def add(self, other: _Shape) -> None:
        """Add the fields of a fragment to this level."""
        self.depth = max(self.depth, other.depth)
        self.nodes += 1 + other.nodes
        self.fields += other.fields
        self.aliases += other.aliases
        self.own_fields += other.own_fields
        self._add_flags(other)

    def add_field(self, node: FieldNode, inside: _Shape) -> None:
        self.nodes += 1 + inside.nodes
        self.fields += 1 + inside.fields
        self.aliases += inside.aliases + (node.alias is not None)
        self.own_fields += 1
        self._add_flags(inside)
        if node.name.value in ("__schema", "__type"):
            self.introspects = True
            self.has_aliased_introspection |= inside.aliases > 0
            self.depth = max(self.depth, 1)
        else:
            self.depth = max(self.depth, 1 + inside.depth)

    def _add_flags(self, other: _Shape) -> None:
        self.introspects |= other.introspects
        self.has_aliased_introspection |= other.has_aliased_introspection


class _Measure:
    """Measures the sets of fields of a document, each fragment once."""

    def __init__(self, document: DocumentNode) -> None:
        self._fragments = {each.name.value: each for each in document.definitions if isinstance(each, FragmentDefinitionNode)}
        self._measured: dict[str, _Shape] = {}
        self._open: set[str] = set()
        self.circular: str | None = None  # the name of a fragment that contains itself

    def shape(self, selection_set: SelectionSetNode | None) -> _Shape:
        shape = _Shape()
        for node in () if selection_set is None else selection_set.selections:
            self._add(shape, node)
        return shape

    def all_nodes(self, operations: Sequence[OperationDefinitionNode]) -> int:
        """Return how many nodes all definitions have, each with those of its fragments. Finds fragments in circles."""
        within = sum(self.shape(each.selection_set).nodes for each in operations)
        return within + sum(self._fragment(name).nodes for name in self._fragments)

    def _add(self, shape: _Shape, node: SelectionNode) -> None:
        if isinstance(node, FieldNode):
            shape.add_field(node, self.shape(node.selection_set))
        elif isinstance(node, InlineFragmentNode):
            shape.add(self.shape(node.selection_set))
        elif isinstance(node, FragmentSpreadNode):
            shape.add(self._fragment(node.name.value))

    def _fragment(self, name: str) -> _Shape:
        """Return the shape of a fragment. One that does not exist is refused by the validation."""
        if name in self._open:
            self.circular = name
        elif name not in self._measured:
            self._open.add(name)
            self._measured[name] = self.shape(self._fragments[name].selection_set if name in self._fragments else None)
            self._open.remove(name)
        return self._measured.get(name, _Shape())


def exceeded_limits(document: DocumentNode, limits: Limits) -> Iterator[GraphQLError]:
    """Return what is too much in a document. Fragments that nothing uses count, too: they are validated all the same."""
    operations = [each for each in document.definitions if isinstance(each, OperationDefinitionNode)]
    if len(operations) > limits.operations:
        yield refusal("TOO_MANY_OPERATIONS", f"there are {len(operations)} operations: {limits.operations} is the most")
        return
    measure = _Measure(document)
    nodes = measure.all_nodes(operations)
    if measure.circular is not None:
        yield refusal("GRAPHQL_VALIDATION_FAILED", f"the fragment {measure.circular!r} contains itself")
        return
    for operation in operations:
        yield from _exceeded(operation, measure.shape(operation.selection_set), limits)
    if nodes > limits.document_nodes:
        text = f"there are {_many(nodes)} fields and fragments in all: {limits.document_nodes} is the most"
        yield refusal("TOO_MANY_FIELDS", text)
    elif has_more_comparisons(document, limits.comparisons):
        yield refusal("TOO_MANY_FIELDS", "the same fields are there too often: once is enough")


def _exceeded(operation: OperationDefinitionNode, shape: _Shape, limits: Limits) -> Iterator[GraphQLError]:
    if shape.depth > limits.depth:
        yield refusal("TOO_DEEP", f"fields are nested {shape.depth} deep: {limits.depth} is the most", operation)
    if shape.aliases > limits.aliases:
        yield refusal("TOO_MANY_ALIASES", f"there are {_many(shape.aliases)} aliases: {limits.aliases} is the most", operation)
    if shape.fields > limits.fields:
        yield refusal("TOO_MANY_FIELDS", f"there are {_many(shape.fields)} fields: {limits.fields} is the most", operation)
    if operation.operation is OperationType.MUTATION and shape.own_fields > limits.mutations:
        text = f"there are {shape.own_fields} mutations: {limits.mutations} is the most in one request"
        yield refusal("TOO_MANY_MUTATIONS", text, operation)
    if shape.introspects and not limits.introspection:
        yield refusal("INTROSPECTION_DISABLED", "the schema cannot be asked for here: see the documentation", operation)
    if shape.has_aliased_introspection:
        yield refusal("TOO_MANY_ALIASES", "fields of the introspection cannot have aliases: ask for each once", operation)


def _many(number: int) -> str:
    """Fragments in fragments can add up to numbers that nobody reads."""
    return f"{number:,}" if number < 1_000_000 else "millions of"
