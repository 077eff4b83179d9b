"""The order of encoded key parts is the order of their values, and each text is read back as the value that it came from."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal, localcontext
from enum import Enum, IntEnum
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tickler.errors import InvalidInput
from tickler.table.key_codec import PartCodec, after_component, codec_for, join, prefix_range, split

SOAK = os.environ.get("TICKLER_SOAK") == "1"
examples = settings(
    max_examples=3_000 if SOAK else 50,
    derandomize=not SOAK,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)

TEXT, INT, FLOAT, DECIMAL = codec_for(str), codec_for(int), codec_for(float), codec_for(Decimal)
INSTANT, DATE, BYTES, ID = codec_for(datetime), codec_for(date), codec_for(bytes), codec_for(UUID)
SUFFIXES = ("", "#", "#zzz", "#~", "$")
NAN, INFINITY = float("nan"), float("inf")

texts = st.one_of(
    st.text("ab!#$%&~ \0é\uffff😀", min_size=1, max_size=4), st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
)
small_decimals = st.builds(lambda digits, exponent: Decimal(digits).scaleb(exponent), st.integers(-200, 200), st.integers(-4, 2))
large_decimals = st.builds(
    lambda is_negative, digits, adjusted: Decimal((is_negative, digits, adjusted - len(digits) + 1)),
    st.booleans(),
    st.lists(st.integers(0, 9), min_size=1, max_size=38).map(lambda digits: (max(digits[0], 1), *digits[1:])),
    st.one_of(st.integers(-130, 125), st.integers(23, 28)),
)
decimals = st.one_of(small_decimals, large_decimals)
integers = st.one_of(st.integers(-120, 120), st.integers(-(10**38) + 1, 10**38 - 1))
floats = st.floats(-1e125, 1e125, allow_subnormal=False).filter(lambda value: value == 0 or abs(value) >= 1e-130)
zones = st.sampled_from(
    [UTC, ZoneInfo("UTC"), ZoneInfo("Europe/Berlin"), timezone(timedelta(hours=5, minutes=30)), timezone(-timedelta(seconds=1))]
)
far_instants = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=zones)
near_instants = st.builds(
    lambda zone, offset: (datetime(2024, 3, 14, 23, 59, 59, tzinfo=UTC) + offset).astimezone(zone),
    zones,
    st.sampled_from([0, 1, 10, 100_000, 120_000, 500_000, 999_999, 1_000_000, 1_000_001]).map(
        lambda us: timedelta(microseconds=us)
    ),
)
instants = st.one_of(far_instants, near_instants)
dates = st.one_of(st.dates(), st.dates(date(2024, 2, 27), date(2024, 3, 2)))
binaries = st.one_of(st.binary(min_size=1), st.binary(min_size=1, max_size=2))


def assert_ordered(codec: PartCodec[object], is_less: bool, low: object, high: object) -> None:
    """Check the order of two different values' texts, alone, inside a longer key, and as a bound."""
    is_less = is_less != codec.descending
    one, other = codec.encode(low), codec.encode(high)
    assert one != other
    for behind_one in SUFFIXES:
        for behind_other in SUFFIXES:
            keys = one + behind_one, other + behind_other
            assert (keys[0] < keys[1]) is is_less, keys
            assert (keys[0].encode() < keys[1].encode()) is is_less, keys


def codec(kind: type[object], descending: bool = False) -> PartCodec[object]:
    return codec_for(kind, descending=descending)


both_directions = pytest.mark.parametrize("descending", [False, True], ids=["ascending", "descending"])


@examples
@given(texts, texts)
@example("a", "ab")
@example("a", "a!")
@example("a", "a#b")
@example("a", "a\0")
@example("\uffff", "😀")
@example("%", "&")
def test_texts_sort_by_code_point(one: str, other: str) -> None:
    assert TEXT.decode(TEXT.encode(one)) == one
    if one != other:
        assert_ordered(codec(str), one < other, one, other)


@both_directions
@examples
@given(st.one_of(decimals, integers), st.one_of(decimals, integers))
@example(Decimal(1), Decimal("1.5"))
@example(Decimal(-1), Decimal("-1.5"))
@example(Decimal("-1.5"), Decimal("-1.55"))
@example(Decimal("1E-130"), Decimal(0))
@example(Decimal("-1E-130"), Decimal(0))
@example(Decimal("9.9E+24"), Decimal("1E+25"))
@example(Decimal("9E+124"), Decimal("9.9E+125"))
@example(Decimal("-9E+124"), Decimal("-9.9E+125"))
def test_decimals_sort_by_size(descending: bool, one: Decimal | int, other: Decimal | int) -> None:
    decimal = codec(Decimal, descending)
    for number in (one, other):
        found = decimal.decode(decimal.encode(number))
        assert found == number
        assert type(found) is Decimal
    if one == other:
        assert decimal.encode(one) == decimal.encode(other)
    else:
        assert_ordered(decimal, one < other, one, other)


@both_directions
@examples
@given(integers, integers)
@example(9, 10)
@example(-9, -10)
@example(-1, 0)
def test_integers_sort_by_size(descending: bool, one: int, other: int) -> None:
    integer = codec(int, descending)
    found = integer.decode(integer.encode(one))
    assert found == one
    assert type(found) is int
    if one != other:
        assert_ordered(integer, one < other, one, other)


@both_directions
@examples
@given(floats, floats)
@example(0.1, 0.10000000000000002)
@example(2.0**53, 2.0**53 + 2)
@example(1e23, 1.0000000000000001e23)
@example(0.0, -0.0)
def test_floats_sort_by_size(descending: bool, one: float, other: float) -> None:
    number = codec(float, descending)
    found = number.decode(number.encode(one))
    assert found == one
    assert type(found) is float
    if one == other:
        assert number.encode(one) == number.encode(other)
    else:
        assert_ordered(number, one < other, one, other)


@both_directions
@examples
@given(instants, instants)
@example(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
@example(datetime(999, 12, 31, 23, tzinfo=UTC), datetime(1000, 1, 1, tzinfo=UTC))
def test_instants_sort_by_time_whatever_their_zone(descending: bool, one: datetime, other: datetime) -> None:
    instant = codec(datetime, descending)
    found = instant.decode(instant.encode(one))
    assert isinstance(found, datetime)
    # Not compared with `one`: Python holds a wall time that a zone has twice to be unequal to every instant of another zone.
    assert found == one.astimezone(UTC)
    assert found.tzinfo is UTC
    if one.astimezone(UTC) == other.astimezone(UTC):
        assert instant.encode(one) == instant.encode(other)
    else:
        assert_ordered(instant, one.astimezone(UTC) < other.astimezone(UTC), one, other)


@both_directions
@examples
@given(dates, dates)
@example(date.min, date.max)
def test_dates_sort_by_time(descending: bool, one: date, other: date) -> None:
    day = codec(date, descending)
    found = day.decode(day.encode(one))
    assert found == one
    assert type(found) is date
    if one != other:
        assert_ordered(day, one < other, one, other)


@examples
@given(binaries, binaries)
@example(b"a", b"a\0")
@example(b"\x9f", b"\xa0")
def test_bytes_sort_by_byte(one: bytes, other: bytes) -> None:
    assert BYTES.decode(BYTES.encode(one)) == one
    if one != other:
        assert_ordered(codec(bytes), one < other, one, other)


@examples
@given(st.uuids(), st.uuids())
def test_uuids_sort_by_value(one: UUID, other: UUID) -> None:
    assert ID.decode(ID.encode(one)) == one
    if one != other:
        assert_ordered(codec(UUID), one < other, one, other)


@examples
@given(st.lists(st.tuples(texts, small_decimals, texts), min_size=2, max_size=4))
def test_keys_sort_by_their_first_component_then_by_the_next(rows: list[tuple[str, Decimal, str]]) -> None:
    def key(row: tuple[str, Decimal, str]) -> str:
        return join([TEXT.encode(row[0]), DECIMAL.encode(row[1]), TEXT.encode(row[2])])

    assert [key(row) for row in sorted(rows)] == sorted(key(row) for row in rows)


@examples
@given(st.lists(texts, min_size=1, max_size=4))
@example(["a#b", "c"])
@example(["a", "b#c"])
def test_a_key_is_split_into_the_components_it_was_joined_from(values: list[str]) -> None:
    assert [TEXT.decode(component) for component in split(join([TEXT.encode(value) for value in values]))] == values


def test_different_components_never_give_one_key() -> None:
    rows = [("a#b", "c"), ("a", "b#c"), ("a", "b", "c"), ("a#b#c",), ("a%23b", "c"), ("a", "b%23c"), ("a$b", "c"), ("a%24b", "c")]
    assert len({join([TEXT.encode(value) for value in row]) for row in rows}) == len(rows)


few_components = st.lists(st.text("ab!#$%&", min_size=1, max_size=2).map(TEXT.encode), min_size=1, max_size=3)


@examples
@given(few_components, st.lists(few_components, max_size=12))
@example(["a"], [["a"], ["a", ""], ["a", "b"], ["ab"], ["a%21"], ["a%21", "b"]])
def test_a_prefix_range_contains_exactly_the_keys_below_the_prefix(prefix: list[str], rows: list[list[str]]) -> None:
    low, high = prefix_range(join(prefix))
    for row in [*rows, prefix, *([*prefix, *row] for row in rows)]:
        is_below = row[: len(prefix)] == prefix and len(row) > len(prefix)
        assert (low <= join(row) < high) is is_below
        assert (low.encode() <= join(row).encode() < high.encode()) is is_below


@examples
@given(texts, texts, few_components)
@example("a", "a!", ["b"])
def test_the_bound_after_a_component_separates_it_from_the_next(one: str, other: str, below: list[str]) -> None:
    low, high = sorted([one, other])
    bound = after_component(TEXT.encode(low))
    assert TEXT.encode(low) < join([TEXT.encode(low), *below]) < bound
    assert low == high or bound < TEXT.encode(high)


def test_bounds_are_made_of_the_separator_and_the_character_behind_it() -> None:
    assert prefix_range("STORE#1") == ("STORE#1#", "STORE#1$")
    assert after_component("B10") == "B10$"


def test_sqlite_sorts_keys_as_python_does() -> None:
    values = ["a", "a!", "a#b", "a\0", "ab", "é", "\uffff", "😀", "%", "&", "~"]
    database = sqlite3.connect(":memory:")
    try:
        database.execute("CREATE TABLE item (key TEXT)")
        database.executemany("INSERT INTO item VALUES (?)", [(join([TEXT.encode(value), "zzz"]),) for value in values])
        found = [split(key)[0] for (key,) in database.execute("SELECT key FROM item ORDER BY key")]
    finally:
        database.close()
    assert [TEXT.decode(component) for component in found] == sorted(values)


SAMPLES: list[tuple[type[object], bool, object, str]] = [
    (str, False, "PROD123", "PROD123"),
    (str, False, "New York", "New%20York"),
    (str, False, "100%", "100%25"),
    (str, False, "\0\n!\"#$%&'", "%00%0A%21%22%23%24%25&'"),
    (str, False, "Zoë 😀", "Zoë%20😀"),
    (int, False, 0, "A0"),
    (int, False, 9, "A9"),
    (int, False, 10, "B10"),
    (int, False, -1, "-Z8~"),
    (int, False, -10, "-Y89~"),
    (int, False, 10**24, "Y1" + "0" * 24),
    (int, False, 10**25, "ZA1" + "0" * 25),
    (int, False, 10**50, "ZZA1" + "0" * 50),
    (int, False, 10**125, "ZZZZZA1" + "0" * 125),
    (int, False, -(10**25), "-AZ8" + "9" * 25 + "~"),
    (int, True, 10, "-Y89~"),
    (int, True, 0, "A0"),
    (int, True, -10, "B10"),
    (Decimal, False, Decimal("19.99"), "B19.99"),
    (Decimal, False, Decimal("-19.99"), "-Y80.00~"),
    (Decimal, False, Decimal("0.001"), "A0.001"),
    (Decimal, False, Decimal("0.01"), "A0.01"),
    (Decimal, False, Decimal("1E-130"), "A0." + "0" * 129 + "1"),
    (Decimal, False, Decimal("-0.5"), "-Z9.4~"),
    (Decimal, True, Decimal("19.99"), "-Y80.00~"),
    (float, False, 19.99, "B19.99"),
    (float, False, 0.1, "A0.1"),
    (float, False, 1e22, "W1" + "0" * 22),
    (float, True, 0.5, "-Z9.4~"),
    (datetime, False, datetime(2024, 3, 15, tzinfo=UTC), "2024-03-15T00:00:00"),
    (datetime, False, datetime(2024, 3, 15, 0, 0, 0, 500_000, tzinfo=UTC), "2024-03-15T00:00:00.5"),
    (datetime, False, datetime(2024, 3, 15, 0, 0, 0, 1, tzinfo=UTC), "2024-03-15T00:00:00.000001"),
    (datetime, False, datetime(2024, 3, 15, 0, 0, 50, tzinfo=UTC), "2024-03-15T00:00:50"),
    (datetime, False, datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00"),
    (datetime, True, datetime(2024, 3, 15, tzinfo=UTC), "7975-96-84T99:99:99~"),
    (datetime, True, datetime(2024, 3, 15, 0, 0, 0, 500_000, tzinfo=UTC), "7975-96-84T99:99:99.4~"),
    (date, False, date(2024, 3, 15), "2024-03-15"),
    (date, True, date(2024, 3, 15), "7975-96-84"),
    (bytes, False, b"\x00\xff#", "00ff23"),
    (UUID, False, UUID("12345678-1234-5678-1234-56789ABCDEF0"), "12345678-1234-5678-1234-56789abcdef0"),
]


@pytest.mark.parametrize(("kind", "descending", "value", "text"), SAMPLES)
def test_a_value_is_written_as_documented_and_read_back(kind: type[object], descending: bool, value: object, text: str) -> None:
    assert codec(kind, descending).encode(value) == text
    found = codec(kind, descending).decode(text)
    assert found == value
    assert type(found) is type(value)


def test_fractions_sort_between_zero_and_one() -> None:
    numbers = ["0", "0.001", "0.0011", "0.01", "0.1", "1", "1.01", "9", "10"]
    encoded = [DECIMAL.encode(Decimal(number)) for number in numbers]
    assert sorted(encoded) == encoded


@pytest.mark.parametrize("kind", [int, float, Decimal])
@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((1, 1.0, Decimal(1), Decimal("1.00")), "A1"),
        ((100, 100.0, Decimal("1E+2"), Decimal("100.0")), "C100"),
        ((-10, -10.0, Decimal("-10.00")), "-Y89~"),
        ((0, 0.0, -0.0, Decimal("-0.00"), Decimal("0E+900")), "A0"),
    ],
)
def test_equal_numbers_of_different_types_give_one_key(kind: type[object], values: Sequence[object], text: str) -> None:
    assert {codec(kind).encode(value) for value in values} == {text}


@pytest.mark.parametrize("kind", [float, Decimal])
def test_a_fraction_gives_one_key_as_float_and_as_decimal(kind: type[object]) -> None:
    assert {codec(kind).encode(value) for value in (0.1, Decimal("0.1"), Decimal("0.10"))} == {"A0.1"}


def test_a_float_codec_writes_a_large_integer_as_the_float_that_equals_it() -> None:
    assert codec(float).encode(2**60) == codec(float).encode(2.0**60) == DECIMAL.encode(Decimal(repr(2.0**60)))


def test_the_decimal_context_does_not_round_a_key() -> None:
    value = Decimal("-12345678901234567890.123456789012345678")
    with localcontext() as context:
        context.prec = 3
        for descending in (False, True):
            decimal = codec_for(Decimal, descending=descending)
            assert decimal.decode(decimal.encode(value)).compare_total(value) == 0
        assert INT.decode(INT.encode(-12345)) == -12345


def test_numbers_may_have_38_digits_wherever_the_point_is() -> None:
    nines = "9" * 38
    for number in (f"{nines}E+88", f"0.{nines}", f"{nines}E-167", f"-{nines}E+88", f"{nines}{'0' * 80}", f"1.{'0' * 300}"):
        assert DECIMAL.decode(DECIMAL.encode(Decimal(number))) == Decimal(number)


class Colour(str, Enum):  # noqa: UP042, how it is written where Python is older
    RED = "dark red"


class Size(IntEnum):
    LARGE = 10


def test_a_member_of_an_enum_is_written_as_its_value() -> None:
    assert TEXT.encode(Colour.RED) == "dark%20red"
    assert INT.encode(Size.LARGE) == "B10"


class Metres(float):
    """A float that shows itself in another way, as those of NumPy do."""

    def __repr__(self) -> str:
        return f"Metres({float(self)})"


def test_a_float_of_a_subclass_is_written_as_a_float() -> None:
    assert FLOAT.encode(Metres(19.99)) == "B19.99"


class NoOffset(tzinfo):
    """A zone that does not know its offset, which makes a datetime naive."""

    def utcoffset(self, dt: datetime | None, /) -> None:
        return None

    def dst(self, dt: datetime | None, /) -> None:
        return None

    def tzname(self, dt: datetime | None, /) -> None:
        return None


TOO_FAR = "a number of 1E+126 or more, or nearer to 0 than 1E-130: scale it, or leave it out"
NAIVE = "a naive datetime: give it a time zone such as tzinfo=UTC, or leave it out"
REFUSED: list[tuple[type[object], object, str]] = [
    (str, "", "empty: leave it out"),
    (bytes, b"", "empty: leave it out"),
    *((kind, None, "None: leave it out") for kind in (str, int, float, Decimal, datetime, date, bytes, UUID)),
    *((kind, True, "a bool: use a text such as 'yes', or leave it out") for kind in (str, int, float, Decimal, datetime, UUID)),
    (str, msgspec.UNSET, "of type UnsetType: pass a value of type str, or leave it out"),
    (int, msgspec.UNSET, "of type UnsetType: pass a value of type int, or leave it out"),
    (str, 1, "of type int: pass a value of type str, or leave it out"),
    (str, b"a", "of type bytes: pass a value of type str, or leave it out"),
    (int, "1", "of type str: pass a value of type int, or leave it out"),
    (float, "1", "of type str: pass a value of type float, or leave it out"),
    (Decimal, "1", "of type str: pass a value of type Decimal, or leave it out"),
    (bytes, "a", "of type str: pass a value of type bytes, or leave it out"),
    (UUID, "a", "of type str: pass a value of type UUID, or leave it out"),
    (datetime, date(2024, 3, 15), "of type date: pass a value of type datetime, or leave it out"),
    (datetime, 0, "of type int: pass a value of type datetime, or leave it out"),
    (date, "2024-03-15", "of type str: pass a value of type date, or leave it out"),
    (date, datetime(2024, 3, 15, tzinfo=UTC), "a datetime where it is declared as date: pass its date(), or leave it out"),
    (datetime, datetime(2024, 3, 15), NAIVE),
    (datetime, datetime(2024, 3, 15, tzinfo=NoOffset()), NAIVE),
    (
        datetime,
        datetime.min.replace(tzinfo=timezone(timedelta(hours=1))),
        "an instant outside the years 1 to 9999 of UTC: leave it out",
    ),
    (
        str,
        "a\ud800 b",
        r"a text with the lone surrogate '\ud800', which UTF-8 cannot express: replace it, or leave the text out",
    ),
    (float, NAN, "NaN: pass a finite number, or leave it out"),
    (int, NAN, "NaN: pass a finite number, or leave it out"),
    (Decimal, Decimal("NaN"), "NaN: pass a finite number, or leave it out"),
    (Decimal, Decimal("sNaN"), "NaN: pass a finite number, or leave it out"),
    (float, Decimal("sNaN"), "NaN: pass a finite number, or leave it out"),
    (float, INFINITY, "infinite: pass a finite number, or leave it out"),
    (float, -INFINITY, "infinite: pass a finite number, or leave it out"),
    (Decimal, Decimal("-Infinity"), "infinite: pass a finite number, or leave it out"),
    (int, 1.5, "1.5 where it is declared as int: round it, declare it as Decimal, or leave it out"),
    (int, Decimal("-0.5"), "-0.5 where it is declared as int: round it, declare it as Decimal, or leave it out"),
    (
        float,
        Decimal("0.10000000000000000001"),
        "0.10000000000000000001 where it is declared as float: round it, declare it as Decimal, or leave it out",
    ),
    (
        float,
        2**53 + 1,
        "9007199254740993 where it is declared as float: round it, declare it as Decimal, or leave it out",
    ),
    (int, 10**38 + 1, "a number of 39 significant digits: round it to 38, or leave it out"),
    (Decimal, Decimal("1." + "0" * 37 + "1"), "a number of 39 significant digits: round it to 38, or leave it out"),
    *((int, value, TOO_FAR) for value in (10**126, -(10**126), 10**5000)),
    *((Decimal, Decimal(text), TOO_FAR) for text in ("1E+126", "-1E+126", "9E-131", "1E+999999", "-1E-999999")),
    *((float, value, TOO_FAR) for value in (1e126, -1e300, 9e-131, 5e-324)),
]


@pytest.mark.parametrize(("kind", "value", "reason"), REFUSED, ids=range(len(REFUSED)))
def test_a_value_without_a_place_in_the_order_is_refused(kind: type[object], value: object, reason: str) -> None:
    directions = [False] if kind in (str, bytes, UUID) else [False, True]
    for descending in directions:
        with pytest.raises(InvalidInput) as caught:
            codec(kind, descending).encode(value)
        assert str(caught.value) == f"a key part cannot be {reason}"


NOT_WRITTEN: list[tuple[type[object], bool, Sequence[str]]] = [
    (str, False, ["", "a#b", "a$", "a b", "a!", "%", "a%2", "%zz", "%2f", "%26", "%41", "%0a", "\ud800", "a\n"]),
    (
        int,
        False,
        ["", "A", "1", "A01", "B1", "B01", "A1.5", "A1.0", "A-1", "a1", "A1\n", "A1~", "-Z9~", "-Z8", "Z1", "--Z8~~", "A١"],
    ),
    (int, False, ["ZA" + "0" * 26, "A" + "1" * 9000, "ZZZZZZA" + "1" * 151, "-" * 100_000]),
    (
        Decimal,
        False,
        ["A1.50", "A1.", "A.5", "A0.", "A0.0", "-Z9.99~", "A1E5", "ANaN", "A1" + "." + "1" * 38, "A0." + "0" * 130 + "1"],
    ),
    (float, False, ["A0.1000000000000000055", "Ainf", "S" + str(2**60), "A1.0"]),
    (int, True, ["-Z9~", "A00", "-A1~", "B1"]),
    (datetime, False, ["", "2024", "2024-03-15", "2024-03-15 00:00:00", "2024-03-15T00:00", "2024-03-15T00:00:00Z"]),
    (datetime, False, ["2024-03-15T00:00:00+00:00", "2024-03-15T00:00:00.0", "2024-03-15T00:00:00.50", "2024-02-30T00:00:00"]),
    (datetime, False, ["2024-03-15T00:00:00.0000001", "20240315T000000", "0000-01-01T00:00:00", "2024-03-15T00:00:00~"]),
    (datetime, True, ["7975-96-84T99:99:99", "7975-96-84T99:99:99.9~", "2024-03-15T00:00:00", "7975-96-84T99:99:99!", "~", ""]),
    (date, False, ["", "20240315", "2024-W11-5", "2024-02-30", "2024-03-15T00:00:00"]),
    (date, True, ["7975-96-84~", "9999-99-99", "2024-03-15"]),
    (bytes, False, ["", "0", "0G", "FF", "00 00", "é"]),
    (UUID, False, ["", "12345678123456781234567812345678", "{12345678-1234-5678-1234-567812345678}"]),
    (UUID, False, ["12345678-1234-5678-1234-56781234ABCD", "urn:uuid:12345678-1234-5678-1234-567812345678"]),
]


@pytest.mark.parametrize(("kind", "descending", "written"), NOT_WRITTEN)
def test_a_text_that_is_never_written_is_not_read(kind: type[object], descending: bool, written: Sequence[str]) -> None:
    for text in written:
        with pytest.raises(InvalidInput) as caught:
            codec(kind, descending).decode(text)
        message = f"{text[:80]!r} is not a key part of type {kind.__name__}: check which template wrote the key"
        assert str(caught.value) == message


@pytest.mark.parametrize(("kind", "descending", "value", "text"), SAMPLES)
@settings(examples, max_examples=300 if SOAK else 5)
@given(
    position=st.integers(0, 40), instead=st.sampled_from(["", "0", "9", "A", "Z", ".", "-", "~", "%2", "%", "#", "a", " ", "00"])
)
def test_a_damaged_text_is_refused_or_is_the_text_of_another_value(
    kind: type[object], descending: bool, value: object, text: str, position: int, instead: str
) -> None:
    damaged = text[:position] + instead + text[position + 1 :]
    try:
        found = codec(kind, descending).decode(damaged)
    except InvalidInput:
        return
    assert codec(kind, descending).encode(found) == damaged
    assert damaged == text or found != value


@pytest.mark.parametrize("kind", [str, bytes, UUID])
def test_text_bytes_and_uuids_cannot_be_descending(kind: type[object]) -> None:
    with pytest.raises(InvalidInput) as caught:
        codec_for(kind, descending=True)
    reason = "cannot be descending, only numbers, instants and dates: query backwards"
    assert str(caught.value) == f"a key part of type {kind.__name__} {reason}"


@both_directions
@pytest.mark.parametrize("kind", [bool, list, timedelta, Colour])
def test_other_types_cannot_be_declared_as_key_parts(kind: type[object], descending: bool) -> None:
    with pytest.raises(InvalidInput) as caught:
        codec_for(kind, descending=descending)
    known = "str, int, float, Decimal, datetime, date, bytes, UUID"
    assert str(caught.value) == f"a key part cannot be declared as {kind.__name__}: use one of {known}"


def test_a_codec_says_what_it_is_for() -> None:
    assert (INSTANT.kind, INSTANT.descending) == (datetime, False)
    assert (codec_for(date, descending=True).kind, codec_for(date, descending=True).descending) == (date, True)
    assert codec_for(datetime) is INSTANT
