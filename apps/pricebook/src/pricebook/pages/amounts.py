"""Prices, shares and numbers as the pages show them."""

from __future__ import annotations

from pricebook.money import Money, digits_of

SIGNS = {"EUR": "€", "USD": "$", "GBP": "£", "JPY": "¥"}


def money(amount: Money | None) -> str:
    """Return a price such as €2.49 or 2.49 CHF."""
    if amount is None:
        return "no price"
    sign = SIGNS.get(amount.currency)
    if sign is None:
        return f"{plain_amount(amount)} {amount.currency}"
    return f"{'−' if amount.minor < 0 else ''}{sign}{plain_amount(Money(abs(amount.minor), amount.currency))}"


def plain_amount(amount: Money) -> str:
    """Return an amount without its currency, with commas between thousands."""
    digits = digits_of(amount.currency)
    whole, rest = divmod(abs(amount.minor), 10**digits)
    return f"{'−' if amount.minor < 0 else ''}{whole:,}{f'.{rest:0{digits}}' if digits else ''}"


def percent(share: float | None) -> str:
    """Return a change such as +4.2% or −12%."""
    if share is None:
        return "new"
    size = abs(share) * 100
    text = f"{size:,.0f}" if size >= 10 or size == 0 else f"{size:.1f}"
    return f"{'−' if share < 0 else '+'}{text}%"


def share_of(before: Money | None, after: Money | None) -> float | None:
    """Return how much a price changes, as a share of what it was; None if these cannot be compared."""
    if before is None or after is None or before.currency != after.currency or before.minor == 0:
        return None
    return (after.minor - before.minor) / before.minor


def direction(before: Money | None, after: Money | None) -> str:
    """Return up, down, new, none or same: what becomes of a price."""
    if after is None:
        return "none"
    if before is None:
        return "new"
    if before.currency != after.currency or before.minor == after.minor:
        return "same"
    return "up" if after.minor > before.minor else "down"


def count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
