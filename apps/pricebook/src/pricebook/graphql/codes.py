"""Codes of errors, in `extensions.code`: what programs tell errors apart by."""

from __future__ import annotations

from typing import Literal, get_args

from graphql import GraphQLError, Node

Code = Literal[
    # The request, before anything is read
    "BAD_REQUEST",
    "GRAPHQL_PARSE_FAILED",
    "GRAPHQL_VALIDATION_FAILED",
    "BAD_VARIABLES",
    "QUERY_TOO_LONG",
    "TOO_MANY_TOKENS",
    "TOO_DEEP",
    "TOO_MANY_ALIASES",
    "TOO_MANY_FIELDS",
    "TOO_MANY_OPERATIONS",
    "TOO_MANY_MUTATIONS",
    "COST_EXCEEDED",
    "INTROSPECTION_DISABLED",
    # A field
    "INVALID_CURSOR",
    "INVALID_INPUT",
    "NOT_FOUND",
    "NOT_ALLOWED",
    "CONFLICT",
    "UNAVAILABLE",
    "INTERNAL",
]
CODES: tuple[Code, ...] = get_args(Code)


def refusal(code: Code, message: str, node: Node | None = None) -> GraphQLError:
    """Return an error that refuses a whole request."""
    return GraphQLError(message, node, extensions={"code": code})
