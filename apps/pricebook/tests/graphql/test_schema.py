"""The schema has the names of the seed."""

from __future__ import annotations

import graphql as core
import pytest

from query_client import SCHEMA

QUERIES = {
    "basePrices": ("BasePriceRecordConnection", {"store", "channel"}),
    "basePricesByProduct": ("BasePriceRecordConnection", {"product", "channel"}),
    "prices": ("PriceRecordConnection", {"store", "type", "productPrefix", "channel"}),
    "upcomingPriceChanges": ("PriceChangeConnection", {"store"}),
    "changesOn": ("PriceChangeConnection", {"date"}),
}


@pytest.mark.parametrize("name", QUERIES)
def test_lists_are_connections_with_arguments_in_both_directions(name: str) -> None:
    assert SCHEMA.query_type is not None
    field = SCHEMA.query_type.fields[name]
    type_, arguments = QUERIES[name]
    assert str(field.type) == type_
    assert field.args.keys() == arguments | {"first", "after", "last", "before"}


def test_a_connection_has_edges_nodes_and_a_page_info_as_relay_demands() -> None:
    printed = {
        name: core.print_type(SCHEMA.type_map[name]) for name in ("PageInfo", "BasePriceRecordEdge", "BasePriceRecordConnection")
    }
    assert (
        "edges: [BasePriceRecordEdge!]!\n  nodes: [BasePriceRecord!]!\n  pageInfo: PageInfo!"
        in printed["BasePriceRecordConnection"]
    )
    assert "cursor: String!\n  node: BasePriceRecord!" in printed["BasePriceRecordEdge"]
    flags = "hasNextPage: Boolean!\n  hasPreviousPage: Boolean!\n  startCursor: String\n  endCursor: String"
    assert flags in printed["PageInfo"]


def test_a_price_at_an_instant_needs_store_product_and_instant() -> None:
    assert SCHEMA.query_type is not None
    field = SCHEMA.query_type.fields["priceAsOf"]
    assert str(field.type) == "PriceRecord"
    required = {name for name, argument in field.args.items() if core.is_required_argument(argument)}
    assert required == {"store", "product", "at"}


def test_every_field_of_the_query_may_be_null_so_that_one_failure_leaves_the_others() -> None:
    assert SCHEMA.query_type is not None
    assert not any(core.is_non_null_type(field.type) for field in SCHEMA.query_type.fields.values())


def test_there_is_no_mutation_without_change_sets() -> None:
    assert SCHEMA.mutation_type is None
