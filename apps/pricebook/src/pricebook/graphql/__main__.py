"""Prints the schema: `python -m pricebook.graphql > apps/pricebook/schema.graphql`."""

from __future__ import annotations

from graphql import print_schema

from pricebook.graphql.schema import build_schema

print(print_schema(build_schema()))  # noqa: T201  # what it is for
