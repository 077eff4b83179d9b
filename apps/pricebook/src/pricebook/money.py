"""Amounts of money as whole minor units with a currency. No binary fraction ever touches a price."""

from __future__ import annotations

import re
from decimal import Decimal

import msgspec

from tickler.errors import InvalidInput

# Digits after the point, for currencies that do not have two (ISO 4217).
_DIGITS = {
    **dict.fromkeys(("BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF",
                     "XOF", "XPF"), 0),
    **dict.fromkeys(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"), 3),
    "CLF": 4,
    "UYW": 4,
}  # fmt: skip
MAX_MINOR = 10**15

_CURRENCY = re.compile(r"[A-Z]{3}")
_AMOUNT = re.compile(r"-?\d{1,16}(\.\d{1,4})?", re.ASCII)


class Money(msgspec.Struct, frozen=True, order=False):
    """An amount such as 1999 minor units of EUR, which is 19.99 EUR."""

    minor: int
    currency: str

    def __post_init__(self) -> None:
        if not _CURRENCY.fullmatch(self.currency):
            raise InvalidInput(f"currency: {self.currency[:20]!r} is not a currency code: use three capital letters, such as EUR")
        if isinstance(self.minor, bool) or abs(self.minor) > MAX_MINOR:
            raise InvalidInput(f"amount: {self.minor!r} is not a number of minor units up to {MAX_MINOR:,}: check the price")

    @classmethod
    def read(cls, amount: str, currency: str) -> Money:
        """Read an amount such as "19.99". It may not have more digits after the point than its currency has."""
        if not _AMOUNT.fullmatch(amount):
            raise InvalidInput(f"amount: {amount[:40]!r} is not an amount: write it with a point, such as 19.99")
        minor = Decimal(amount).scaleb(digits_of(currency))
        if minor != int(minor):
            raise InvalidInput(f"amount: {amount!r} has more digits after the point than {currency}: round it")
        return cls(int(minor), currency)

    def __str__(self) -> str:
        digits = digits_of(self.currency)
        return f"{Decimal(self.minor).scaleb(-digits):.{digits}f} {self.currency}"


def digits_of(currency: str) -> int:
    """Return how many digits after the point amounts of the currency have."""
    return _DIGITS.get(currency, 2)
