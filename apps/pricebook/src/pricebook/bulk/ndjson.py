"""Prices as lines of JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from pricebook.bulk.limits import BulkLimits
from pricebook.bulk.lines import Line
from pricebook.bulk.price_line import Fields, PriceLine, Refusal, price_line
from pricebook.editions.pages import PriceNode


class _Members(msgspec.Struct, forbid_unknown_fields=True):
    """`amount` stays as it is written, so that no binary fraction comes of it."""

    store: str
    product: str
    channel: str = ""
    type: str = ""
    combination: str | None = None
    amount: msgspec.Raw = msgspec.Raw(b"null")
    currency: str | None = None
    delete: bool = False


class _Exported(msgspec.Struct, omit_defaults=True):
    store: str
    channel: str
    type: str
    product: str
    amount: str
    currency: str
    combination: str | None = None


_decode = msgspec.json.Decoder(_Members).decode
_encode = msgspec.json.Encoder().encode


class NdjsonReader:
    def __init__(self, currency: str, limits: BulkLimits) -> None:
        self._currency = currency
        self._limits = limits

    def read(self, line: Line) -> Iterator[PriceLine | Refusal]:
        if len(line.text) > self._limits.line:
            yield Refusal(line.number, f"is longer than {self._limits.line:,} bytes: write one price in each line")
        elif line.text and not line.text.isspace():
            yield self._read(line)

    def end(self) -> Iterator[PriceLine | Refusal]:
        """Nothing is open between lines."""
        yield from ()

    def _read(self, line: Line) -> PriceLine | Refusal:
        try:
            members = _decode(line.text)
            amount = _amount(members.amount)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return Refusal(line.number, f"cannot be read: {_reason(error)}")
        fields = Fields(
            members.store,
            members.channel,
            members.type,
            members.product,
            members.combination or "",
            amount,
            members.currency or "",
            "yes" if members.delete else "",
        )
        return price_line(line.number, fields, self._currency)


def ndjson_line(node: PriceNode) -> bytes:
    amount, currency = str(node.amount).split(" ")
    exported = _Exported(node.store, node.channel, node.type, node.product, amount, currency, node.combination)
    return _encode(exported) + b"\n"


def _amount(raw: msgspec.Raw) -> str:
    """Return an amount as it is written, a text or a number; empty for null."""
    text = bytes(raw)
    if text == b"null":
        return ""
    if text.startswith(b'"'):
        decoded: Any = msgspec.json.decode(text)
        return str(decoded)
    return text.decode()


def _reason(error: Exception) -> str:
    """Return what msgspec says, in the middle of a sentence."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8: save the file as UTF-8"
    text = str(error)
    return f"{text[:1].lower()}{text[1:]}: correct the line"
