"""What an operation selects, with fragments and directives resolved: the fields that graphql-core collects, in its order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from graphql import (
    BooleanValueNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLField,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLUnionType,
    InlineFragmentNode,
    NamedTypeNode,
    OperationDefinitionNode,
    OperationType,
    SelectionNode,
    SelectionSetNode,
    VariableNode,
    get_named_type,
)
from msgspec import Struct

from pricebook.graphql.executor.field_source import Resolver, Source, source_of

TYPENAME = "__typename"
ABSTRACT = (GraphQLInterfaceType, GraphQLUnionType)


class FieldPlan(Struct, frozen=True, eq=False):
    """A field of the answer. It has one selection for each type that its value may be of; a leaf has none."""

    key: str
    parent: GraphQLObjectType
    nodes: Sequence[FieldNode]
    definition: GraphQLField | None = None  # __typename has none, and neither have fields of the introspection
    source: Source | None = None
    selections: Sequence[Selection] = ()

    @property
    def name(self) -> str:
        return self.nodes[0].name.value

    @property
    def is_introspection(self) -> bool:
        return self.definition is None and self.name != TYPENAME


class Selection(Struct, frozen=True, eq=False):
    """The fields of an object of this type."""

    type: GraphQLObjectType
    fields: Sequence[FieldPlan]


class Plan(Struct, frozen=True, eq=False):
    """An operation with the values of its flags. `obstacle` says why no function can be written for it."""

    operation: OperationDefinitionNode
    root: Selection
    obstacle: str | None


class Planner:
    """Plans an operation of a valid document. `flags` has the values of the variables that @skip and @include use.

    Where one is null, which is an error, the plan has all fields and says what they could cost.
    """

    def __init__(
        self, schema: GraphQLSchema, fragments: Mapping[str, FragmentDefinitionNode], flags: Mapping[str, bool | None]
    ) -> None:
        self._schema = schema
        self._fragments = fragments
        self._flags = flags
        self._obstacles: list[str] = ["a flag is null"] if None in flags.values() else []

    def plan(self, operation: OperationDefinitionNode) -> Plan:
        if operation.operation is not OperationType.QUERY:
            self._obstacles.append(operation.operation.value)
        type_ = self._schema.get_root_type(operation.operation)
        assert type_ is not None  # the validation refuses operations that the schema does not have
        root = self._selection(type_, [operation.selection_set], is_root=True)
        return Plan(operation, root, next(iter(self._obstacles), None))

    def _selection(self, type_: GraphQLObjectType, sets: Iterable[SelectionSetNode], *, is_root: bool = False) -> Selection:
        found: dict[str, list[FieldNode]] = {}
        visited: set[str] = set()
        for each in sets:
            self._collect(type_, each, found, visited)
        return Selection(type_, [self._field(type_, key, nodes, is_root) for key, nodes in found.items()])

    def _collect(
        self, type_: GraphQLObjectType, selection_set: SelectionSetNode, found: dict[str, list[FieldNode]], visited: set[str]
    ) -> None:
        for node in selection_set.selections:
            if isinstance(node, FieldNode):
                if self._is_included(node):
                    found.setdefault(node.alias.value if node.alias else node.name.value, []).append(node)
            elif isinstance(node, InlineFragmentNode):
                if self._is_included(node) and self._applies(node.type_condition, type_):
                    self._collect(type_, node.selection_set, found, visited)
            elif isinstance(node, FragmentSpreadNode) and node.name.value not in visited and self._is_included(node):
                visited.add(node.name.value)
                fragment = self._fragments[node.name.value]
                if self._applies(fragment.type_condition, type_):
                    self._collect(type_, fragment.selection_set, found, visited)

    def _field(self, parent: GraphQLObjectType, key: str, nodes: Sequence[FieldNode], is_root: bool) -> FieldPlan:
        name = nodes[0].name.value
        definition = parent.fields.get(name)
        if definition is None:
            if name != TYPENAME:
                self._obstacles.append("introspection")
            return FieldPlan(key, parent, nodes)
        source = source_of(definition)
        if isinstance(source, Resolver) and not is_root:
            self._obstacles.append(f"{parent.name}.{name} has a resolver")
        sets = [node.selection_set for node in nodes if node.selection_set is not None]
        return FieldPlan(key, parent, nodes, definition, source, self._selections(definition, sets))

    def _selections(self, definition: GraphQLField, sets: Sequence[SelectionSetNode]) -> Sequence[Selection]:
        type_ = get_named_type(definition.type)
        if isinstance(type_, GraphQLObjectType):
            return [self._selection(type_, sets)]
        if isinstance(type_, ABSTRACT):
            self._obstacles.append(f"{type_.name} is an abstract type")
            return [self._selection(each, sets) for each in self._schema.get_possible_types(type_)]
        return ()

    def _is_included(self, node: SelectionNode) -> bool:
        return self._directive(node, "skip") is not True and self._directive(node, "include") is not False

    def _directive(self, node: SelectionNode, name: str) -> bool | None:
        for directive in node.directives:
            if directive.name.value == name:
                value = directive.arguments[0].value  # `if`, the only one
                if isinstance(value, VariableNode):
                    return self._flags[value.name.value]
                assert isinstance(value, BooleanValueNode)
                return value.value
        return None

    def _applies(self, condition: NamedTypeNode | None, type_: GraphQLObjectType) -> bool:
        if condition is None or condition.name.value == type_.name:
            return True
        wanted = self._schema.get_type(condition.name.value)
        return isinstance(wanted, ABSTRACT) and self._schema.is_sub_type(wanted, type_)
