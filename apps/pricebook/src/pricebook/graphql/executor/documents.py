"""Parsed and validated queries, kept as long as there is room."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from graphql import (
    DocumentNode,
    FragmentDefinitionNode,
    GraphQLError,
    GraphQLSchema,
    GraphQLSyntaxError,
    MaxIntrospectionDepthRule,
    OperationDefinitionNode,
    VariableNode,
    Visitor,
    parse,
    specified_rules,
    validate,
    visit,
)
from graphql.language import DirectiveNode
from msgspec import Struct

from pricebook.graphql.codes import refusal
from pricebook.graphql.executor.bounded_cache import BoundedCache
from pricebook.graphql.limits import Limits, exceeded_limits

MAX_KEPT = 400_000  # characters of queries: a parsed one takes some 100 to 170 bytes for each
MAX_ERRORS = 20

_SUGGESTION = re.compile(r" Did you mean .*", re.DOTALL)
_RULES = (*specified_rules, MaxIntrospectionDepthRule)


class Operation(Struct, frozen=True, eq=False):
    """An operation. `flags` are those of its variables that @skip and @include use: they decide which fields there are."""

    node: OperationDefinitionNode
    flags: tuple[str, ...]


class Document(Struct, frozen=True, eq=False):
    """A valid document."""

    text: str
    node: DocumentNode
    operations: Mapping[str, Operation]  # by name; one without a name is under the empty text
    fragments: Mapping[str, FragmentDefinitionNode]

    def operation(self, name: str | None) -> Operation:
        """Return the operation of a name, or the only one."""
        if name is None and len(self.operations) == 1:
            return next(iter(self.operations.values()))
        if not name:
            raise refusal("BAD_REQUEST", "the query has several operations: say which one with operationName")
        if name not in self.operations:
            raise refusal("BAD_REQUEST", f"the query has no operation {name[:40]!r}: use one of its names as operationName")
        return self.operations[name]


class Documents:
    """Parses and validates. What is not valid is not kept, so that it does not take the room of what is."""

    def __init__(self, schema: GraphQLSchema, limits: Limits) -> None:
        self._schema = schema
        self._limits = limits
        self._kept: BoundedCache[str, Document] = BoundedCache(MAX_KEPT)

    def get(self, text: str) -> Document | list[GraphQLError]:
        """Return the document of a text, or what is wrong with it."""
        found = self._kept.get(text)
        if found is not None:
            return found
        if len(text) > self._limits.characters:
            return [refusal("QUERY_TOO_LONG", f"the query has {len(text):,} characters: {self._limits.characters:,} is the most")]
        try:
            node = parse(text, max_tokens=self._limits.tokens)
            errors = list(exceeded_limits(node, self._limits)) or list(self._unknown_operations(node))
            errors = errors or validate(self._schema, node, _RULES, MAX_ERRORS)
        except GraphQLSyntaxError as error:
            return [_syntax_error(error)]
        except RecursionError:
            return [refusal("TOO_DEEP", "the query is nested too deeply")]
        if errors:
            return [self._shown(error) for error in errors]
        document = _read(text, node)
        self._kept.put(text, document, len(text))
        return document

    def _shown(self, error: GraphQLError) -> GraphQLError:
        """Give an error its code. Names that somebody might have meant are part of a schema that may not be asked for."""
        error.extensions = {"code": "GRAPHQL_VALIDATION_FAILED", **(error.extensions or {})}
        if not self._limits.introspection:
            error.message = _SUGGESTION.sub("", error.message)
        return error

    def _unknown_operations(self, document: DocumentNode) -> Iterator[GraphQLError]:
        """Return the operations of kinds that the schema lacks, which the rules let pass."""
        for each in document.definitions:
            if isinstance(each, OperationDefinitionNode) and self._schema.get_root_type(each.operation) is None:
                yield refusal("GRAPHQL_VALIDATION_FAILED", f"there are no {each.operation.value}s here", each)


def _syntax_error(error: GraphQLSyntaxError) -> GraphQLError:
    is_long = "Parsing aborted" in error.message
    error.extensions = {"code": "TOO_MANY_TOKENS" if is_long else "GRAPHQL_PARSE_FAILED"}
    return error


def _read(text: str, node: DocumentNode) -> Document:
    operations, fragments = {}, {}
    used = _Flags()
    visit(node, used)
    for definition in node.definitions:
        if isinstance(definition, OperationDefinitionNode):
            declared = [each.variable.name.value for each in definition.variable_definitions]
            flags = tuple(name for name in declared if name in used.names)
            operations[definition.name.value if definition.name else ""] = Operation(definition, flags)
        elif isinstance(definition, FragmentDefinitionNode):
            fragments[definition.name.value] = definition
    return Document(text, node, operations, fragments)


class _Flags(Visitor):
    """Collects the variables that directives use."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def enter_directive(self, node: DirectiveNode, *_: object) -> None:
        for argument in node.arguments:
            if isinstance(argument.value, VariableNode):
                self.names.add(argument.value.name.value)
