"""Splits a stream into lines, of which it never holds more than one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """A line without its end. One that is longer than allowed is cut just behind the limit."""

    number: int
    text: bytes


class LineSplitter:
    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._held = bytearray()
        self._number = 0

    def feed(self, piece: bytes) -> Iterator[Line]:
        *whole, rest = piece.split(b"\n")
        for text in whole:
            self._hold(text)
            yield self._line()
        self._hold(rest)

    def end(self) -> Iterator[Line]:
        if self._held:
            yield self._line()

    def _hold(self, text: bytes) -> None:
        self._held += text[: self._longest + 1 - len(self._held)]

    def _line(self) -> Line:
        text = bytes(self._held)
        self._held.clear()
        self._number += 1
        return Line(self._number, text.removeprefix(BYTE_ORDER_MARK) if self._number == 1 else text)
