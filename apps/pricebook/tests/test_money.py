"""Amounts of money."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricebook.money import MAX_MINOR, Money
from tickler.errors import InvalidInput

CURRENCIES = st.sampled_from(["EUR", "USD", "JPY", "KWD", "CLF"])


@pytest.mark.parametrize(
    ("amount", "currency", "minor"),
    [
        ("19.99", "EUR", 1999),
        ("19.9", "EUR", 1990),
        ("20", "EUR", 2000),
        ("1500", "JPY", 1500),
        ("1.234", "KWD", 1234),
        ("-1", "EUR", -100),
    ],
)
def test_an_amount_becomes_whole_minor_units(amount: str, currency: str, minor: int) -> None:
    assert Money.read(amount, currency) == Money(minor, currency)


def test_an_amount_is_shown_with_the_digits_of_its_currency() -> None:
    assert [str(Money(1990, currency)) for currency in ("EUR", "JPY", "KWD")] == ["19.90 EUR", "1990 JPY", "1.990 KWD"]


@given(st.integers(-MAX_MINOR, MAX_MINOR), CURRENCIES)
def test_what_is_shown_reads_back_as_the_same_amount(minor: int, currency: str) -> None:
    money = Money(minor, currency)
    assert Money.read(*str(money).split()) == money


@pytest.mark.parametrize("amount", ["19,99", "1.234,50", "", "NaN", "1e3", "١٩", " 1", "0x10", "1_000"])
def test_what_is_no_plain_amount_is_refused(amount: str) -> None:
    with pytest.raises(InvalidInput, match="is not an amount: write it with a point"):
        Money.read(amount, "EUR")


@pytest.mark.parametrize(("amount", "currency"), [("19.999", "EUR"), ("1.5", "JPY"), ("1.2345", "KWD")])
def test_an_amount_that_would_have_to_be_rounded_is_refused(amount: str, currency: str) -> None:
    with pytest.raises(InvalidInput, match="round it"):
        Money.read(amount, currency)


@pytest.mark.parametrize(("minor", "currency"), [(1, "eur"), (1, "EURO"), (1, ""), (True, "EUR"), (MAX_MINOR + 1, "EUR")])
def test_what_no_price_can_be_is_refused(minor: int, currency: str) -> None:
    with pytest.raises(InvalidInput):
        Money(minor, currency)
