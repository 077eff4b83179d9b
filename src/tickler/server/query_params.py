"""Reads query parameters strictly, and holds the bounds of those that are numbers."""

from __future__ import annotations

from typing import NamedTuple, TypeVar
from urllib.parse import parse_qsl

from tickler.clock import to_ms
from tickler.errors import InvalidInput
from tickler.server.context import HttpRequest
from tickler.web.problems import Refused
from tickler.when import read_instant

T = TypeVar("T")


class NumberParam(NamedTuple):
    """A whole number from 1 to `maximum`. The OpenAPI document publishes the same bounds."""

    name: str
    default: int
    maximum: int


LIMIT = NumberParam("limit", default=100, maximum=1_000)
PREVIEW_COUNT = NumberParam("n", default=10, maximum=100)
BUDGET_MS = NumberParam("budget_ms", default=50_000, maximum=300_000)


class QueryParams:
    """The query parameters of a request. Unknown and repeated ones are refused."""

    def __init__(self, request: HttpRequest, *known: str) -> None:
        self._values: dict[str, str] = {}
        try:
            pairs = parse_qsl(request.scope["query_string"].decode(), keep_blank_values=True, errors="strict")
        except UnicodeDecodeError:
            raise Refused(400, "the query is not UTF-8: encode it as UTF-8, then as %XX") from None
        for name, value in pairs:
            if name not in known:
                raise Refused(400, f"unknown parameter {name[:40]!r}: use {', '.join(known) or 'none'}", name[:40])
            if name in self._values:
                raise Refused(400, f"{name} is given twice: leave one of them out", name)
            self._values[name] = value

    def text(self, name: str) -> str | None:
        return self._values.get(name)

    def number(self, parameter: NumberParam) -> int:
        name, default, maximum = parameter
        text = self._values.get(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdecimal() and len(text) < 10 and 1 <= int(text) <= maximum):
            raise Refused(400, f"{name} is not a whole number from 1 to {maximum}", name)
        return int(text)

    def one_of(self, name: str, allowed: tuple[T, ...]) -> T | None:
        text = self._values.get(name)
        if text is not None and text not in allowed:
            raise Refused(400, f"{name} is not one of {', '.join(map(str, allowed))}", name)
        found: T | None = text
        return found

    def instant(self, name: str) -> int | None:
        """Read milliseconds, or ISO 8601 with an offset."""
        text = self._values.get(name)
        if text is None:
            return None
        try:
            whole = text.isascii() and text.isdecimal() and len(text) < 16
            return to_ms(int(text) if whole else read_instant(text, name), name)
        except InvalidInput as error:
            raise Refused(422, str(error), name) from None
