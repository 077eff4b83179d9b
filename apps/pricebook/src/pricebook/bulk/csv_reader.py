"""Reads prices from CSV as spreadsheets write it."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence

from pricebook.bulk.formulas import unguarded
from pricebook.bulk.limits import BulkLimits
from pricebook.bulk.lines import TextLine
from pricebook.bulk.price_line import COLUMNS, EXPORTED, Fields, PriceLine, Refusal, price_line
from pricebook.errors import InvalidField

DELIMITERS = (",", ";")

_REQUIRED = ("store", "product")
_OPENING_QUOTE = re.compile(rb'(?:^|[,;\n])"')


class CsvReader:
    """Reads lines into prices. A record goes over several lines while a quote is open."""

    def __init__(self, currency: str, limits: BulkLimits) -> None:
        self._currency = currency
        self._limits = limits
        self._columns: list[str] = []
        self._delimiter = ","
        self._held = bytearray()  # of a record whose quote is open
        self._is_odd = False  # the number of quotes in it
        self._begun = 0  # the line in which it began

    @property
    def is_open(self) -> bool:
        """Tell whether a record goes on in the next line."""
        return bool(self._held)

    @property
    def has_begun(self) -> bool:
        """Tell whether the line that names the columns was read."""
        return bool(self._columns)

    def read(self, line: TextLine) -> Iterator[PriceLine | Refusal]:
        if not self._held:
            self._begun = line.number
        if len(self._held) + len(line.text) > self._limits.line:
            yield self._too_long(line)
            return
        self._held += line.text
        self._is_odd ^= line.text.count(b'"') % 2 == 1
        if self._is_odd and _OPENING_QUOTE.search(self._held):
            self._held += b"\n"
            return
        record = bytes(self._held)
        self._held.clear()
        self._is_odd = False
        yield from self._record(record)

    def end(self) -> None:
        if self._held:
            raise self._never_closed()
        if not self._columns:
            raise InvalidField("file", f"is empty: its first line names columns, such as {','.join(EXPORTED)}")

    def _record(self, record: bytes) -> Iterator[PriceLine | Refusal]:
        try:
            text = record.decode().removesuffix("\r")
        except UnicodeDecodeError:
            if not self._columns:
                raise InvalidField("file", "is not UTF-8: save it as CSV UTF-8") from None
            yield Refusal(self._begun, "is not UTF-8: save the file as CSV UTF-8")
            return
        if not self._columns:
            self._read_header(text)
            return
        lines = [f"{line}\n" for line in text.split("\n")]
        reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
        while True:
            number = self._begun + reader.line_num
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                last = self._begun + len(lines) - 1
                swallowed = f", nor what follows up to line {last:,}," if last > number else ""
                yield Refusal(
                    number, f"cannot be read{swallowed}: {error}: put quotes around the whole field, and double those within"
                )
                return
            if any(fields):
                yield self._read(number, fields)

    def _read(self, line: int, fields: Sequence[str]) -> PriceLine | Refusal:
        if len(fields) != len(self._columns):
            return Refusal(line, f"has {len(fields)} fields, and the first line has {len(self._columns)}: correct one of them")
        given = dict(zip(self._columns, map(unguarded, fields), strict=True))
        if self._delimiter == ";" and "amount" in given:
            given["amount"] = _with_point(given["amount"])
        return price_line(line, Fields(**given), self._currency)

    def _read_header(self, text: str) -> None:
        """Find the delimiter, and which column is which. Spreadsheets may name the delimiter in a line of its own."""
        if text.lower().startswith("sep=") or not text.strip():
            return
        if "\r" in text:
            raise InvalidField("file", "its lines end as on old Macs: save it with the line ends of Windows or Unix")
        names, self._delimiter = max(((_names(text, each), each) for each in DELIMITERS), key=lambda found: len(found[0]))
        _check_columns(names, self._limits.columns)
        self._columns = names

    def _too_long(self, line: TextLine) -> Refusal:
        if self._held:
            raise self._never_closed()
        longest = f"is longer than {self._limits.line:,} bytes"
        if not self._columns:
            raise InvalidField("file", f"its first line {longest}: it names the columns, such as {','.join(EXPORTED)}")
        return Refusal(line.number, f"{longest}: end each record with a line break")

    def _never_closed(self) -> InvalidField:
        return InvalidField(
            "file", f"a quote that is opened in line {self._begun:,} is not closed: close it, and double quotes within quotes"
        )


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
