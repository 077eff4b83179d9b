"""Writes prices as CSV that spreadsheets open."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from pricebook.bulk.csv_reader import DELIMITERS
from pricebook.bulk.formulas import guarded
from pricebook.bulk.lines import BYTE_ORDER_MARK
from pricebook.bulk.price_line import EXPORTED, amount_and_currency
from pricebook.editions.pages import PriceNode
from pricebook.errors import InvalidField


class CsvWriter:
    kind = "text/csv"

    def __init__(self, delimiter: str = ",") -> None:
        if delimiter not in DELIMITERS:
            raise InvalidField("delimiter", f"{delimiter[:10]!r} is unknown: use , or ;")
        self._buffer = io.StringIO()
        self._writer = csv.writer(self._buffer, delimiter=delimiter, lineterminator="\r\n")

    def begin(self) -> bytes:
        """Return the first line. Spreadsheets know by the mark before it that it is UTF-8."""
        self._writer.writerow(EXPORTED)
        return BYTE_ORDER_MARK + self._taken()

    def lines(self, nodes: Iterable[PriceNode]) -> bytes:
        for node in nodes:
            amount, currency = amount_and_currency(node.amount)
            names = (node.store, node.channel, node.type, node.product, node.combination or "")
            self._writer.writerow((*map(guarded, names), amount, currency))
        return self._taken()

    def _taken(self) -> bytes:
        text = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return text.encode()
