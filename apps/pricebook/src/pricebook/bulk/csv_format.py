"""Prices as CSV, as spreadsheets read and write it.

A text that a spreadsheet would run as a formula is written with an apostrophe in front, which reading takes away again.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from pricebook.bulk.limits import BulkLimits
from pricebook.bulk.lines import Line
from pricebook.bulk.price_line import COLUMNS, Fields, PriceLine, Refusal, price_line
from pricebook.editions.pages import PriceNode
from pricebook.errors import InvalidField

EXPORTED = tuple(name for name in COLUMNS if name != "delete")
DELIMITERS = (",", ";")

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_APOSTROPHE = "'"
_REQUIRED = ("store", "product")


class CsvReader:
    """Reads lines into prices. A record goes over several lines while a quote is open."""

    def __init__(self, currency: str, limits: BulkLimits) -> None:
        self._currency = currency
        self._limits = limits
        self._columns: list[str] = []
        self._delimiter = ","
        self._held = bytearray()  # of a record whose quote is open
        self._begun = 0  # the line in which it began

    def read(self, line: Line) -> Iterator[PriceLine | Refusal]:
        if not self._held:
            self._begun = line.number
        elif len(self._held) + len(line.text) > self._limits.line:
            raise self._never_closed()
        if len(line.text) > self._limits.line:
            yield Refusal(line.number, f"is longer than {self._limits.line:,} bytes: end each record with a line break")
            return
        self._held += line.text
        if self._held.count(b'"') % 2:
            self._held += b"\n"
            return
        record = bytes(self._held)
        self._held.clear()
        yield from self._record(record)

    def end(self) -> Iterator[PriceLine | Refusal]:
        if self._held:
            raise self._never_closed()
        if not self._columns:
            raise InvalidField("file", f"is empty: its first line names columns, such as {','.join(EXPORTED)}")
        yield from ()

    def _record(self, record: bytes) -> Iterator[PriceLine | Refusal]:
        try:
            text = record.decode().removesuffix("\r")
        except UnicodeDecodeError:
            yield Refusal(self._begun, "is not UTF-8: save the file as CSV UTF-8")
            return
        if not self._columns:
            self._read_header(text)
            return
        reader = csv.reader(io.StringIO(text, newline="") if "\n" in text else [text], delimiter=self._delimiter, strict=True)
        while True:
            line = self._begun + reader.line_num
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield Refusal(line, f"cannot be read: {error}: put quotes around the whole field, and double those within")
                return
            if any(fields):
                yield self._read(line, fields)

    def _read(self, line: int, fields: Sequence[str]) -> PriceLine | Refusal:
        if len(fields) != len(self._columns):
            return Refusal(line, f"has {len(fields)} fields, and the first line has {len(self._columns)}: correct one of them")
        given = dict(zip(self._columns, map(_without_apostrophe, fields), strict=True))
        if self._delimiter == ";" and "amount" in given:
            given["amount"] = _with_point(given["amount"])
        return price_line(line, Fields(**given), self._currency)

    def _read_header(self, text: str) -> None:
        """Find the delimiter, and which column is which. Spreadsheets may name the delimiter in a line of its own."""
        if text.lower().startswith("sep=") or not text.strip():
            return
        names = max((_names(text, each) for each in DELIMITERS), key=len)
        self._delimiter = next(each for each in DELIMITERS if _names(text, each) == names)
        _check_columns(names, self._limits.columns)
        self._columns = names

    def _never_closed(self) -> InvalidField:
        return InvalidField(
            "file", f"a quote that is opened in line {self._begun:,} is not closed: close it, and double quotes within quotes"
        )


class CsvWriter:
    def __init__(self, delimiter: str = ",") -> None:
        if delimiter not in DELIMITERS:
            raise InvalidField("delimiter", f"{delimiter[:10]!r} is unknown: use , or ;")
        self._buffer = io.StringIO()
        self._writer = csv.writer(self._buffer, delimiter=delimiter, lineterminator="\r\n")

    def header(self) -> bytes:
        """Return the first line. Spreadsheets know by the mark before it that it is UTF-8."""
        self._writer.writerow(EXPORTED)
        return b"\xef\xbb\xbf" + self._taken()

    def line(self, node: PriceNode) -> bytes:
        amount, currency = str(node.amount).split(" ")
        fields = (node.store, node.channel, node.type, node.product, node.combination or "", amount, currency)
        self._writer.writerow(map(_with_apostrophe, fields))
        return self._taken()

    def _taken(self) -> bytes:
        text = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return text.encode()


def _with_apostrophe(field: str) -> str:
    """Let no spreadsheet take a field for a formula. A field that looks as if that was done gets another apostrophe."""
    is_alike = field.startswith(_APOSTROPHE) and field[1:].startswith((*_FORMULA, _APOSTROPHE))
    return _APOSTROPHE + field if is_alike or field.startswith(_FORMULA) else field


def _without_apostrophe(field: str) -> str:
    is_guarded = field.startswith(_APOSTROPHE) and field[1:].startswith((*_FORMULA, _APOSTROPHE))
    return field[1:] if is_guarded else field


def _with_point(amount: str) -> str:
    """Return an amount as written where semicolons separate fields, with a point: there, a comma is often the decimal one."""
    return amount.replace(",", ".") if amount.count(",") == 1 and "." not in amount else amount


def _check_columns(names: Sequence[str], most: int) -> None:
    known = ", ".join(COLUMNS)
    if len(names) > most:
        raise InvalidField("file", f"has {len(names):,} columns, and may have {most}: use {known}")
    for name in names:
        if name not in COLUMNS:
            raise InvalidField("file", f"the column {name[:40]!r} is unknown: use {known}")
        if names.count(name) > 1:
            raise InvalidField("file", f"the column {name!r} is there twice: remove one")
    for name in _REQUIRED:
        if name not in names:
            raise InvalidField("file", f"the column {name!r} is missing: the first line names the columns")
    if "amount" not in names and "delete" not in names:
        raise InvalidField("file", "the column 'amount' is missing: the first line names the columns")


def _names(text: str, delimiter: str) -> list[str]:
    try:
        return [name.strip().lower() for name in next(csv.reader([text], delimiter=delimiter, strict=True))]
    except (csv.Error, StopIteration):
        return []
