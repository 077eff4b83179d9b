"""Reads GraphQL requests, as GraphQL over HTTP describes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from pricebook.graphql.codes import refusal
from pricebook.graphql.service import GraphqlRequest

MAX_PARAMETERS = 20

_decode = msgspec.json.Decoder(GraphqlRequest).decode
_decode_variables = msgspec.json.Decoder(dict[str, Any] | None).decode


def read_body(body: bytes) -> GraphqlRequest:
    """Read a request that was sent as JSON."""
    try:
        return _decode(body)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if body.lstrip()[:1] == b"[":
            raise refusal("BAD_REQUEST", "several operations cannot be sent at once: send one in each request") from None
        detail = f"{error}: send JSON such as" if str(error) else "the body is empty: send JSON such as"
        example = '{"query": "{ basePrices(store: \\"1\\") { nodes { product } } }"}'
        raise refusal("BAD_REQUEST", f"the body cannot be read: {detail} {example}") from None


def read_query(query_string: bytes) -> GraphqlRequest:
    """Read a request that was sent as parameters of the address."""
    try:
        pairs = parse_qsl(query_string.decode(), keep_blank_values=True, max_num_fields=MAX_PARAMETERS, errors="strict")
    except ValueError:
        raise refusal("BAD_REQUEST", "the parameters cannot be read: send query, variables and operationName") from None
    found = _once(pairs)
    if not found.get("query"):
        raise refusal("BAD_REQUEST", "there is no query: send it as the parameter query, or as JSON by POST")
    try:
        variables = _decode_variables(found.get("variables") or "null")
    except (msgspec.ValidationError, msgspec.DecodeError, RecursionError) as error:
        raise refusal("BAD_REQUEST", f"variables: {error}: send an object as JSON") from None
    return GraphqlRequest(found["query"], variables, found.get("operationName") or None)


def _once(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise refusal("BAD_REQUEST", "a parameter is there twice: send each once")
    return found
