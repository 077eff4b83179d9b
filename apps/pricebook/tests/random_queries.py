"""Random queries on any schema: aliases, fragments, directives, variables with defaults, nulls, and now and then mistakes."""

from __future__ import annotations

import random
from typing import Any, NamedTuple, cast

from graphql import (
    GraphQLArgument,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLSchema,
    Undefined,
    get_named_type,
)

MAX_DEPTH = 6
ONE_OF = {"store", "changeSet", "actor", "day"}  # of the arguments of the audit


class RandomQuery(NamedTuple):
    text: str
    variables: dict[str, Any]
    operation_name: str | None


class QueryMaker:
    """Makes one query from a number."""

    def __init__(self, schema: GraphQLSchema, number: int) -> None:
        self._schema = schema
        self._drawn = random.Random(number)
        self._variables: dict[str, tuple[str, str | None]] = {}  # by name: type and default
        self._values: dict[str, Any] = {}
        self._fragments: list[str] = []
        self._aliases = 0

    def make(self) -> RandomQuery:
        query_type = self._schema.query_type
        assert query_type is not None
        body = self._selection(query_type, 0)
        name = self._drawn.choice(["", "Q"]) if not self._variables else "Q"
        declared = ", ".join(
            f"${each}: {type_}{f' = {default}' if default else ''}" for each, (type_, default) in self._variables.items()
        )
        operation = f"query {name}{f'({declared})' if declared else ''} {body}"
        parts = [operation if name or declared else body, *self._fragments]
        operation_name = None
        if name and self._chance(0.1):
            parts.append("query Other { __typename }")
            operation_name = self._drawn.choice(["Q", "Other"] if not self._variables else ["Q"])
        self._drawn.shuffle(parts)
        return RandomQuery("\n".join(parts), self._values, operation_name)

    def _chance(self, probability: float) -> bool:
        return self._drawn.random() < probability

    def _selection(self, type_: GraphQLObjectType, depth: int) -> str:
        parts = [self._part(type_, depth) for _ in range(self._drawn.choice([1, 1, 2, 3]))]
        return f"{{ {' '.join(parts)} }}"

    def _part(self, type_: GraphQLObjectType, depth: int) -> str:
        drawn = self._drawn.random()
        if drawn < 0.08:
            return f"{self._alias(0.3)}__typename{self._directives()}"
        if drawn < 0.16 and depth < MAX_DEPTH:
            condition = self._drawn.choice(["", f" on {type_.name}"])
            return f"...{condition}{self._directives()} {self._selection(type_, depth)}"
        if drawn < 0.26 and depth < MAX_DEPTH:
            return self._spread(type_, depth)
        if drawn < 0.27 and depth == 0:
            return self._drawn.choice(['__type(name: "Money") { name kind }', "__schema { queryType { name } }"])
        return self._field(type_, depth)

    def _spread(self, type_: GraphQLObjectType, depth: int) -> str:
        name = f"F{len(self._fragments)}"
        self._fragments.append("")
        self._fragments[int(name[1:])] = f"fragment {name} on {type_.name} {self._selection(type_, depth)}"
        again = f" ...{name}{self._directives()}" if self._chance(0.2) else ""
        return f"...{name}{self._directives()}{again}"

    def _field(self, type_: GraphQLObjectType, depth: int) -> str:
        fields = [
            name
            for name, field in type_.fields.items()
            if depth < MAX_DEPTH or not isinstance(get_named_type(field.type), GraphQLObjectType)
        ]
        if not fields:
            return "__typename"
        name = self._drawn.choice(fields)
        field = type_.fields[name]
        arguments = self._arguments(self._one_of_some(field.args))
        # Fields of one name must have the same arguments: those with arguments always have an alias.
        alias = self._alias(1.0 if field.args else 0.25)
        named = get_named_type(field.type)
        inside = f" {self._selection(named, depth + 1)}" if isinstance(named, GraphQLObjectType) else ""
        return f"{alias}{name}{arguments}{self._directives()}{inside}"

    def _alias(self, probability: float) -> str:
        if not self._chance(probability):
            return ""
        self._aliases += 1
        return f"{self._drawn.choice(['a', 'class', 'None', '_x', 'b'])}{self._aliases}: "

    def _directives(self) -> str:
        found = []
        for name in ("skip", "include"):
            if self._chance(0.12):
                found.append(f" @{name}(if: {self._flag()})")
        self._drawn.shuffle(found)
        return "".join(found)

    def _flag(self) -> str:
        if self._chance(0.5):
            return self._drawn.choice(["true", "false"])
        name = f"flag{self._drawn.randrange(3)}"
        if name not in self._variables:
            type_, default = self._drawn.choice(
                [("Boolean!", None), ("Boolean!", "true"), ("Boolean", "false"), ("Boolean", "true")]
            )
            self._variables[name] = type_, default
            if default is None or self._chance(0.5):
                self._values[name] = self._chance(0.5) if type_ == "Boolean!" or not self._chance(0.05) else None
        return f"${name}"

    def _one_of_some(self, arguments: dict[str, GraphQLArgument]) -> dict[str, GraphQLArgument]:
        """Return the arguments with one of those that do not go together, mostly."""
        if not arguments.keys() >= ONE_OF or self._chance(0.1):
            return arguments
        chosen = self._drawn.choice(sorted(ONE_OF))
        required = GraphQLArgument(GraphQLNonNull(cast(Any, arguments[chosen].type)))
        return {name: each for name, each in arguments.items() if name not in ONE_OF} | {chosen: required}

    def _arguments(self, arguments: dict[str, GraphQLArgument]) -> str:
        given = []
        for name, argument in arguments.items():
            is_required = isinstance(argument.type, GraphQLNonNull) and not _has_default(argument)
            if is_required or self._chance(0.15):
                given.append(f"{name}: {self._value(name, argument)}")
        return f"({', '.join(given)})" if given else ""

    def _value(self, name: str, argument: GraphQLArgument) -> str:
        literal, value = self._drawn.choice(VALUES[name])
        if self._chance(0.5):
            return "null" if literal == "null" and isinstance(argument.type, GraphQLNonNull) is False else literal
        variable = f"v{len(self._variables)}"
        type_ = str(argument.type)
        default = literal if literal != "null" and self._chance(0.3) else None
        if type_.endswith("!") and (default is not None or _has_default(argument)) and self._chance(0.3):
            type_ = type_[:-1]
        self._variables[variable] = type_, default
        if not (default is not None or not type_.endswith("!")) or self._chance(0.8):
            self._values[variable] = value
        if self._chance(0.02):
            self._values[variable] = self._drawn.choice([None, [], {"a": 1}, "text", 7.5])
        return f"${variable}"


def _has_default(argument: GraphQLArgument) -> bool:
    return argument.default_value is not Undefined


_STORES = [(f'"{n}"', str(n)) for n in range(20)] + [("7", 7), ('"nobody"', "nobody"), ('"down"', "down")]
VALUES: dict[str, list[tuple[str, Any]]] = {
    "store": _STORES,
    "product": [('"P1"', "P1"), ('"P2"', "P2")],
    "channel": [('"ALL"', "ALL"), ('"WEB"', "WEB")],
    "type": [('"Base"', "Base"), ('"Swap"', "Swap")],
    "productPrefix": [('""', ""), ('"PR"', "PR")],
    "id": [('"C1"', "C1"), ('"C2"', "C2"), ('"nobody"', "nobody")],
    "changeSet": [('"C1"', "C1"), ('"down"', "down")],
    "actor": [('"someone"', "someone")],
    "day": [('"2026-03-15"', "2026-03-15"), ('"2026-03-16"', "2026-03-16")],
    "state": [("DRAFT", "DRAFT"), ("APPROVED", "APPROVED"), ("null", None)],
    "combination": [('"MENU1"', "MENU1"), ("null", None)],
    "first": [("0", 0), ("1", 1), ("3", 3), ("64", 64), ("null", None), ("-1", -1), ("2049", 2049)],
    "last": [("0", 0), ("2", 2), ("null", None)],
    "after": [('"after 1"', "after 1"), ("null", None), ('"forged"', "forged")],
    "before": [('"before 1"', "before 1"), ("null", None)],
    "date": [('"2026-03-15"', "2026-03-15"), ('"2026-12-24"', "2026-12-24")],
    "at": [
        ('"2026-03-15T00:00:00Z"', "2026-03-15T00:00:00Z"),
        ('"2026-03-15T00:00:00+01:00"', "2026-03-15T00:00:00+01:00"),
        ('"1999-01-01T00:00:00Z"', "1999-01-01T00:00:00Z"),
    ],
}
"""For each argument: how a query writes a value, and how JSON does."""
