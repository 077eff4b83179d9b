"""Conversion of Python values to DynamoDB's and back, errors that name the value, and the size of items."""

from __future__ import annotations

import decimal
import math
import re
from base64 import b64decode
from collections.abc import Set
from decimal import Decimal
from typing import Any

import pytest
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from dynamodb_server import DynamodbServer
from tickler.dynamo.client import Client
from tickler.dynamo.codec import Attribute, Item, from_attribute, from_item, size_of, to_attribute, to_item
from tickler.errors import InvalidInput

QUICK = settings(max_examples=200, deadline=None)
ON_THE_ENGINE = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

whole_numbers = st.integers(-(10**38) + 1, 10**38 - 1)
numbers = whole_numbers | st.builds(
    lambda sign, digits, exponent: Decimal((sign, tuple(map(int, str(digits))), exponent)),
    st.integers(0, 1),
    st.integers(0, 10**38 - 1),
    st.integers(-130, 125 - 37),
)
names = st.text(min_size=1, max_size=5)
scalars = st.none() | st.booleans() | numbers | st.text(max_size=20) | st.binary(max_size=20)
sets = (
    st.sets(st.text(max_size=5), min_size=1, max_size=4)
    | st.sets(st.binary(max_size=5), min_size=1, max_size=4)
    | st.sets(numbers, min_size=1, max_size=4)
)
values = st.recursive(
    scalars | sets, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4), max_leaves=8
)


def comparable(attribute: Attribute) -> Attribute:
    """Normalise our attribute or boto3's, which keeps bytes as bytes: sets without order, numbers by value."""
    ((kind, raw),) = attribute.items()
    if kind == "N":
        return {kind: Decimal(raw)}
    if kind == "B":
        return {kind: raw if isinstance(raw, bytes) else b64decode(raw)}
    if kind == "L":
        return {kind: [comparable(each) for each in raw]}
    if kind == "M":
        return {kind: {name: comparable(each) for name, each in raw.items()}}
    if kind in ("SS", "NS", "BS"):
        return {kind: {comparable({kind[0]: each})[kind[0]] for each in raw}}
    return attribute


def with_raw_bytes(attribute: Attribute) -> Attribute:
    """Return it in the form that boto3 reads."""
    ((kind, raw),) = attribute.items()
    if kind == "B":
        return {kind: b64decode(raw)}
    if kind == "BS":
        return {kind: [b64decode(each) for each in raw]}
    if kind == "L":
        return {kind: [with_raw_bytes(each) for each in raw]}
    if kind == "M":
        return {kind: {name: with_raw_bytes(each) for name, each in raw.items()}}
    return attribute


class TestRoundTrips:
    @QUICK
    @given(values)
    def test_what_is_written_is_read_as_it_was(self, value: object) -> None:
        assert from_attribute(to_attribute(value)) == value

    @QUICK
    @given(values)
    def test_what_boto3_accepts_is_written_as_boto3_writes_it(self, value: object) -> None:
        try:
            written = TypeSerializer().serialize(value)
        except (decimal.Inexact, decimal.Rounded):
            return  # it has fewer numbers than DynamoDB
        assert comparable(to_attribute(value)) == comparable(written)

    @QUICK
    @given(values)
    def test_what_is_written_is_read_by_boto3_as_by_us(self, value: object) -> None:
        attribute = to_attribute(value)
        try:
            read = TypeDeserializer().deserialize(with_raw_bytes(attribute))
        except (decimal.Inexact, decimal.Rounded):
            return
        assert read == from_attribute(attribute)

    @pytest.mark.parametrize(
        ("value", "kind"),
        [
            (True, bool),
            (False, bool),
            (0, int),
            (10**37, int),
            (Decimal("0.5"), Decimal),
            ("", str),
            (b"", bytes),
            ([], list),
            ({}, dict),
            ({"a"}, set),
        ],
    )
    def test_a_value_comes_back_as_its_own_type(self, value: object, kind: type) -> None:
        assert type(from_attribute(to_attribute(value))) is kind

    @pytest.mark.parametrize(
        ("value", "read"),
        [
            (0.1, Decimal("0.1")),
            (-0.0, 0),
            (1e22, 10**22),
            ((1, "a"), [1, "a"]),
            (frozenset({1}), {1}),
            ({"a": 1}.keys(), {"a"}),
            (bytearray(b"ab"), b"ab"),
            (memoryview(b"ab"), b"ab"),
        ],
    )
    def test_what_dynamodb_has_no_type_for_comes_back_as_the_nearest(self, value: object, read: object) -> None:
        assert from_attribute(to_attribute(value)) == read

    @ON_THE_ENGINE
    @given(value=values)
    async def test_what_is_accepted_here_is_accepted_and_kept_by_the_engine(
        self, value: object, table: str, direct: Client
    ) -> None:
        item = to_item({"pk": "a", "value": value})
        await direct.call("PutItem", {"TableName": table, "Item": item})
        answer = await direct.call("GetItem", {"TableName": table, "Key": {"pk": item["pk"]}, "ConsistentRead": True})
        assert from_item(answer["Item"]) == {"pk": "a", "value": value}


class TestMissingNullAndFalsy:
    def test_what_is_unset_is_left_out_and_none_is_a_null(self) -> None:
        assert to_item({"gone": UNSET, "null": None}) == {"null": {"NULL": True}}
        assert to_item({"map": {"gone": UNSET, "null": None}}) == {"map": {"M": {"null": {"NULL": True}}}}

    def test_falsy_values_are_values(self) -> None:
        values = {"bool": False, "number": 0, "text": "", "bytes": b"", "list": [], "map": {}}
        item = to_item(values)
        assert list(item) == list(values)
        assert from_item(item) == values

    def test_a_list_has_no_place_for_what_is_missing(self) -> None:
        with pytest.raises(InvalidInput, match=r"^tags\[1\]: a list cannot hold UNSET: .* pass None"):
            to_item({"tags": ["a", UNSET]})


class TestKeys:
    @pytest.mark.parametrize("value", ["a", b"a", bytearray(b"a"), 0, -1, 0.5, Decimal("0")])
    def test_text_bytes_and_numbers_can_be_keys(self, value: object) -> None:
        assert "pk" in to_item({"pk": value}, keys=["pk"])

    @pytest.mark.parametrize("value", [None, "", b"", bytearray(), True, False, [], ["a"], {"a": "b"}, {"a"}], ids=repr)
    def test_what_cannot_be_a_key_is_refused_by_name(self, value: object) -> None:
        with pytest.raises(InvalidInput, match=r"^status: .* cannot be a key: pass text, .* or leave the attribute out"):
            to_item({"pk": "a", "status": value}, keys=["pk", "status"])

    @pytest.mark.parametrize("value", [math.nan, math.inf, Decimal("NaN")])
    def test_a_key_is_a_number_that_there_is(self, value: object) -> None:
        with pytest.raises(InvalidInput, match=r"^pk: DynamoDB cannot store .*: leave it out"):
            to_item({"pk": value}, keys=["pk"])

    def test_a_key_that_is_missing_keeps_the_item_out_of_the_index(self) -> None:
        assert to_item({"pk": "a", "status": UNSET}, keys=["pk", "status", "next"]) == {"pk": {"S": "a"}}

    def test_the_same_values_are_fine_where_they_key_nothing(self) -> None:
        assert to_item({"pk": "a", "status": None, "name": ""}, keys=["pk"])["status"] == {"NULL": True}


NINES = 10**38 - 1


class TestNumbers:
    @pytest.mark.parametrize(
        "value",
        [
            NINES,
            -NINES,
            NINES * 10**88,
            10**125,
            -(10**125),
            Decimal(NINES).scaleb(-130, decimal.Context(prec=38)),
            Decimal("1E-130"),
            Decimal("-9.9E+125"),
            Decimal("1." + "0" * 60),
            Decimal("0E+500"),
            0.1,
            -1e-20,
            1e125,
        ],
        ids=str,
    )
    async def test_all_numbers_that_dynamodb_has_are_kept_exactly(
        self, value: Any, table: str, direct: Client, dynamodb_server: DynamodbServer
    ) -> None:
        if str(value) == "0E+500" and not dynamodb_server.is_judge:
            pytest.skip(f"{dynamodb_server.engine} takes a zero with a large exponent for an overflow")
        await direct.call("PutItem", {"TableName": table, "Item": to_item({"pk": "a", "value": value})})
        answer = await direct.call("GetItem", {"TableName": table, "Key": to_item({"pk": "a"}), "ConsistentRead": True})
        assert from_item(answer["Item"])["value"] == Decimal(str(value))

    @pytest.mark.parametrize(
        ("value", "why"),
        [
            (NINES * 10 + 1, "has 39 digits"),
            (-(NINES * 10 + 1), "has 39 digits"),
            (Decimal("0." + "1" * 39), "has 39 digits"),
            (Decimal("1" * 20 + "." + "1" * 20), "has 40 digits"),
            (10**126, "is out of range"),
            (10**5000, "is out of range"),  # more than Python turns into text
            (10**5000 + 1, "has 5001 digits"),
            (Decimal("1E+126"), "is out of range"),
            (Decimal("-1E-131"), "is out of range"),
            (1e200, "is out of range"),
            (5e-324, "is out of range"),
        ],
        ids=lambda value: value if isinstance(value, str) else f"{Decimal(value):.3g}",
    )
    async def test_a_number_that_does_not_fit_is_refused_and_would_be_by_the_engine(
        self, value: Any, why: str, table: str, direct: Client
    ) -> None:
        with pytest.raises(InvalidInput, match=rf"^price: .* {why}.*: .*pass it as text$"):
            to_item({"price": value})
        text = f"{Decimal(value)}" if not isinstance(value, float) else repr(value)
        with pytest.raises(Exception, match=r"38 digits|overflow|underflow|significant|magnitude"):
            await direct.call("PutItem", {"TableName": table, "Item": {"pk": {"S": "a"}, "value": {"N": text}}})

    @pytest.mark.parametrize(
        "value", [math.nan, math.inf, -math.inf, Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity")], ids=repr
    )
    def test_what_is_no_number_is_refused(self, value: object) -> None:
        with pytest.raises(InvalidInput, match=r"^price: DynamoDB cannot store .*: leave it out"):
            to_item({"price": value})

    def test_the_callers_decimal_context_changes_nothing(self) -> None:
        exact = Decimal("1.234567890123456789012345678901234567")
        with decimal.localcontext() as context:
            context.prec = 3
            context.traps[decimal.Inexact] = True
            assert to_attribute(exact) == {"N": str(exact)}
            assert from_attribute({"N": str(exact)}) == exact


class TestSets:
    @pytest.mark.parametrize(
        ("value", "attribute"),
        [
            ({"b", "a", ""}, {"SS": ["", "a", "b"]}),
            ({2, 1}, {"NS": ["1", "2"]}),
            ({Decimal("0.5"), 1}, {"NS": ["0.5", "1"]}),
            ({b"a"}, {"BS": ["YQ=="]}),
        ],
    )
    def test_a_set_is_written_in_one_order(self, value: Set[object], attribute: Attribute) -> None:
        assert to_attribute(value) == attribute

    def test_dynamodb_has_no_empty_set(self) -> None:
        with pytest.raises(InvalidInput, match=r"^tags: DynamoDB has no empty set: leave the attribute out$"):
            to_item({"tags": set()})

    @pytest.mark.parametrize("value", [{"a", 1}, {"a", b"a"}, {True, False}, {True, "a"}, {None}, {("a",)}, {frozenset({"a"})}])
    def test_a_set_of_several_kinds_or_of_what_no_set_has_is_refused(self, value: Set[object]) -> None:
        with pytest.raises(InvalidInput, match=r"^tags: a set must hold only text, only numbers or only bytes: pass a list$"):
            to_item({"tags": value})


class TestErrors:
    @pytest.mark.parametrize(
        ("value", "path"),
        [
            (object(), "job"),
            ({"steps": [1, {"run": object()}]}, "job.steps[1].run"),
            ([[object()]], "job[0][0]"),
            ({"limits": {"cpu": math.nan}}, "job.limits.cpu"),
            ({"tags": set()}, "job.tags"),
            ([{1, "a"}], "job[0]"),
            (["\ud800"], "job[0]"),
            ({"env": {1: "a"}}, "job.env"),
            ({"env": {"\ud800": "a"}}, "job.env"),
        ],
    )
    def test_an_error_says_where_the_value_is(self, value: object, path: str) -> None:
        with pytest.raises(InvalidInput, match=rf"^{re.escape(path)}: "):
            to_item({"job": value})

    def test_a_type_without_a_form_is_named_with_those_that_have_one(self) -> None:
        with pytest.raises(InvalidInput, match=r"^job: DynamoDB cannot store a complex: pass text, numbers, bytes"):
            to_item({"job": 1j})

    def test_a_number_does_not_become_a_name_that_is_there_already(self) -> None:
        with pytest.raises(InvalidInput, match=r"^counts: map keys must be text, not 1: pass '1'$"):
            to_item({"counts": {1: "a", "1": "b"}})


def padded(item: Item, size: int) -> Item:
    """Return an item with text that gives it this size, by our own count."""
    longer: Item = {**item, "pad": {"S": ""}}
    return {**item, "pad": {"S": "x" * (size - size_of(longer))}}


async def write_units(client: Client, table: str, item: Item) -> float:
    before = client.usage.write_units
    await client.call("PutItem", {"TableName": table, "Item": item})
    return client.usage.write_units - before


@pytest.fixture
def judge(dynamodb_server: DynamodbServer) -> None:
    if not dynamodb_server.is_judge:
        pytest.skip(f"NOT TESTED: {dynamodb_server.engine} does not count bytes as DynamoDB does")


class TestSizes:
    @pytest.mark.parametrize(
        ("values", "size"),
        [
            ({}, 0),
            ({"pk": ""}, 2),
            ({"pk": "abc"}, 2 + 3),
            ({"größe": "日本"}, 7 + 6),  # UTF-8, in names too
            ({"b": b"abcdef"}, 1 + 6),
            ({"t": True, "n": None}, 1 + 1 + 1 + 1),
            ({"n": 123}, 1 + 2 + 1),  # a byte for two digits, and one
            ({"n": 12345}, 1 + 3 + 1),
            ({"n": -123}, 1 + 2 + 1 + 1),  # and one for the sign
            ({"l": []}, 1 + 3),
            ({"m": {}}, 1 + 3),
            ({"l": ["ab", True]}, 1 + 3 + (1 + 2) + (1 + 1)),  # each element has a byte more
            ({"m": {"a": "bc", "d": {}}}, 1 + 3 + (1 + 1 + 2) + (1 + 1 + 3)),
            ({"s": {"a", "bc"}}, 1 + 1 + 2),
            ({"n": {1, 345}}, 1 + (1 + 1) + (2 + 1)),
        ],
    )
    def test_an_item_is_as_long_as_the_documentation_counts_it(self, values: dict[str, object], size: int) -> None:
        assert size_of(to_item(values)) == size

    @pytest.mark.parametrize(
        ("value", "size"),
        [(b"a", 1), (12, 2), (1200000, 2), (10**37, 2), (NINES, 20), (-NINES, 21), (0.25, 3), ({b"a", b"b"}, 2)],
    )
    def test_where_it_is_not_exact_it_is_longer_never_shorter(self, value: object, size: int) -> None:
        assert size <= size_of({"": to_attribute(value)}) <= size + 21

    @pytest.mark.usefixtures("judge")
    @ON_THE_ENGINE
    @given(value=values)
    async def test_an_item_of_1024_bytes_by_our_count_costs_one_unit(self, value: object, table: str, direct: Client) -> None:
        await direct.call("DeleteItem", {"TableName": table, "Key": to_item({"pk": "a"})})  # an overwrite costs the longer of two
        item = padded(to_item({"pk": "a", "value": value}), 1024)
        assert size_of(item) == 1024
        assert await write_units(direct, table, item) == 1.0

    @pytest.mark.usefixtures("judge")
    @pytest.mark.parametrize(
        "value", ["", "é日", True, None, 123, -123, [], {}, ["ab", [1]], {"a": {"b": [None]}}, {"a", "bc"}, b"abc"]
    )
    async def test_where_it_is_exact_one_byte_more_costs_two(self, value: object, table: str, direct: Client) -> None:
        item = to_item({"pk": "a", "value": value})
        assert await write_units(direct, table, padded(item, 1024)) == 1.0
        assert await write_units(direct, table, padded(item, 1025)) == 2.0
