"""Prices as lines of JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from pricebook.bulk.limits import BulkLimits
from pricebook.bulk.lines import TextLine
from pricebook.bulk.price_line import Fields, PriceLine, Refusal, amount_and_currency, price_line
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
_decode_text = msgspec.json.Decoder(str).decode
_encode = msgspec.json.Encoder().encode


class NdjsonReader:
    """Reads lines into prices. None of them depends on another one."""

    is_open = False
    has_begun = True

    def __init__(self, currency: str, limits: BulkLimits) -> None:
        self._currency = currency
        self._limits = limits

    def read(self, line: TextLine) -> Iterator[PriceLine | Refusal]:
        if len(line.text) > self._limits.line:
            yield Refusal(line.number, f"is longer than {self._limits.line:,} bytes: write one price in each line")
        elif line.text and not line.text.isspace():
            yield self._read(line)

    def end(self) -> None:
        """Nothing is open between lines."""

    def _read(self, line: TextLine) -> PriceLine | Refusal:
        try:
            members = _decode(line.text)
            amount = _amount(members.amount)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
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


class NdjsonWriter:
    kind = "application/x-ndjson"

    def begin(self) -> bytes:
        return b""

    def lines(self, nodes: Iterable[PriceNode]) -> bytes:
        return b"".join(_encode(_exported(node)) + b"\n" for node in nodes)


def _exported(node: PriceNode) -> _Exported:
    amount, currency = amount_and_currency(node.amount)
    return _Exported(node.store, node.channel, node.type, node.product, amount, currency, node.combination)


def _amount(raw: msgspec.Raw) -> str:
    """Return an amount as it is written, a text or a number; empty for null."""
    text = bytes(raw)
    if text == b"null":
        return ""
    return _decode_text(text) if text.startswith(b'"') else text.decode()


def _reason(error: Exception) -> str:
    """Return what msgspec says, in the middle of a sentence."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8: save the file as UTF-8"
    if isinstance(error, RecursionError):
        return "it is nested too deeply: correct the line"
    text = str(error)
    return f"{text[:1].lower()}{text[1:]}: correct the line"
