"""Reads the names of formats and delimiters as people write them."""

from __future__ import annotations

from typing import Literal

from pricebook.errors import InvalidField
from pricebook.model import BulkFormat


def read_format(text: str, field: str = "format") -> BulkFormat:
    if text == "csv":
        return "csv"
    if text == "ndjson":
        return "ndjson"
    raise InvalidField(field, f"{text[:40]!r} is unknown: use csv or ndjson")


def read_delimiter(text: str, field: str = "delimiter") -> Literal[",", ";"]:
    if text == ",":
        return ","
    if text == ";":
        return ";"
    raise InvalidField(field, f"{text[:10]!r} is unknown: use , or ;")
