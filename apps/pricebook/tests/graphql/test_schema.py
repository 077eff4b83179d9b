"""The schema has the names of the seed."""

from __future__ import annotations

from pathlib import Path
from typing import cast, get_args

import graphql as core
import pytest

from pricebook.model import ChangeSetState, ChangeStoreState
from query_client import SCHEMA

QUERIES = {
    "basePrices": ("BasePriceRecordConnection", {"store", "channel"}),
    "basePricesByProduct": ("BasePriceRecordConnection", {"product", "channel"}),
    "prices": ("PriceRecordConnection", {"store", "type", "productPrefix", "channel"}),
    "upcomingPriceChanges": ("PriceChangeConnection", {"store"}),
    "changesOn": ("PriceChangeConnection", {"date"}),
    "changeSets": ("ChangeSetConnection", {"state"}),
    "audit": ("AuditEntryConnection", {"store", "changeSet", "actor", "day"}),
    "auditedPrices": ("AuditedPriceConnection", {"product", "type"}),
    "stores": ("StoreConnection", set()),
}
NESTED = {
    ("ChangeSet", "lines"): ("ChangeLineConnection", {"store"}),
    ("ChangeSet", "stores"): ("ChangeStoreConnection", set()),
    ("AuditEntry", "prices"): ("AuditedPriceConnection", set()),
}
MUTATIONS = [
    "createPriceChange",
    "editPriceChange",
    "addPrices",
    "removePrices",
    "submitPriceChange",
    "sendBackPriceChange",
    "approvePriceChange",
    "unapprovePriceChange",
    "cancelPriceChange",
    "rollbackPriceChange",
    "changePricesNow",
]
PUBLISHED = Path(__file__).parents[2] / "schema.graphql"


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


@pytest.mark.parametrize(("type_name", "name"), NESTED)
def test_lists_in_nodes_are_connections_in_both_directions_too(type_name: str, name: str) -> None:
    field = cast(core.GraphQLObjectType, SCHEMA.type_map[type_name]).fields[name]
    type_, arguments = NESTED[type_name, name]
    assert str(field.type) == type_
    assert field.args.keys() == arguments | {"first", "after", "last", "before"}


def test_mutations_take_one_input_and_give_the_change_set_or_null() -> None:
    assert SCHEMA.mutation_type is not None
    assert list(SCHEMA.mutation_type.fields) == MUTATIONS
    for field in SCHEMA.mutation_type.fields.values():
        assert list(field.args) == ["input"]
        assert core.is_required_argument(field.args["input"])
        payload = cast(core.GraphQLObjectType, field.type)
        assert str(payload.fields["changeSet"].type) == "ChangeSet!"


def test_what_is_decided_about_names_the_rev_that_was_read() -> None:
    for name, is_required in (
        ("EditPriceChangeInput", True),
        ("ApprovePriceChangeInput", True),
        ("SubmitPriceChangeInput", False),
    ):
        rev = cast(core.GraphQLInputObjectType, SCHEMA.type_map[name]).fields["rev"]
        assert core.is_required_input_field(rev) is is_required


def test_the_states_are_those_of_the_model() -> None:
    """GraphQL has them in capitals."""
    for name, states in (("ChangeSetState", ChangeSetState), ("ChangeStoreState", ChangeStoreState)):
        values = cast(core.GraphQLEnumType, SCHEMA.type_map[name]).values
        assert {value.value for value in values.values()} == set(get_args(states))
        assert [each.lower() for each in values] == [value.value for value in values.values()]


def test_the_published_schema_is_the_one_of_the_code() -> None:
    made = core.print_schema(SCHEMA) + "\n"
    assert PUBLISHED.read_text() == made, "run: python -m pricebook.graphql > apps/pricebook/schema.graphql"


def test_every_type_and_every_root_field_is_described() -> None:
    for type_ in SCHEMA.type_map.values():
        if type_.name.startswith("__") or not isinstance(type_, core.GraphQLObjectType) or type_.name == "Mutation":
            continue
        assert type_.description or type_.name.endswith(("Connection", "Edge")), type_.name
    for root in (SCHEMA.query_type, SCHEMA.mutation_type):
        assert root is not None
        for name, field in root.fields.items():
            assert field.description, name
