"""Splits a stream into lines, of which it never holds more than one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Position(NamedTuple):
    """A place between two lines: the number of the last line before it, and of the bytes."""

    line: int = 0
    offset: int = 0


class TextLine(NamedTuple):
    """A line without its end. One that is longer than allowed is cut just behind the limit. The next one begins at `end`."""

    number: int
    text: bytes
    end: Position


class LineSplitter:
    """Pieces may be cut anywhere. The first one begins at `since`."""

    def __init__(self, longest: int, since: Position = Position()) -> None:  # noqa: B008  # a constant
        self._longest = longest
        self._held = bytearray()
        self._number, self._offset = since

    def feed(self, piece: bytes) -> Iterator[TextLine]:
        *whole, rest = piece.split(b"\n")
        for text in whole:
            self._hold(text)
            self._offset += 1
            yield self._line()
        self._hold(rest)

    def end(self) -> Iterator[TextLine]:
        if self._held:
            yield self._line()

    def _hold(self, text: bytes) -> None:
        self._held += text[: self._longest + 1 - len(self._held)]
        self._offset += len(text)

    def _line(self) -> TextLine:
        text = bytes(self._held)
        self._held.clear()
        self._number += 1
        return TextLine(
            self._number,
            text.removeprefix(BYTE_ORDER_MARK) if self._number == 1 else text,
            Position(self._number, self._offset),
        )
