"""Lines of a stream: the same, wherever it is cut into pieces."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pricebook.bulk.lines import BYTE_ORDER_MARK, LineSplitter, Position, TextLine


def split(pieces: list[bytes], longest: int = 100, since: Position | None = None) -> list[TextLine]:
    splitter = LineSplitter(longest, since or Position())
    return [line for piece in pieces for line in splitter.feed(piece)] + list(splitter.end())


def cut(content: bytes, at: set[int]) -> list[bytes]:
    places = [0, *sorted(each % (len(content) + 1) for each in at), len(content)]
    return [content[low:high] for low, high in pairwise(places)]


CONTENT = st.lists(st.sampled_from([b"a", b"\n", b"\r\n", b'"', b",", b"\xef\xbb\xbf", b"\xc3\xa9", b"x" * 30]), max_size=40).map(
    b"".join
)


@given(CONTENT, st.sets(st.integers(0, 2_000), max_size=8))
def test_it_does_not_matter_where_pieces_are_cut(content: bytes, at: set[int]) -> None:
    assert split(cut(content, at)) == split([content])


@given(CONTENT, st.integers(0, 40))
def test_reading_goes_on_behind_any_line(content: bytes, number: int) -> None:
    lines = split([content])
    if number < len(lines):
        since = lines[number].end
        assert split([content[since.offset :]], since=since) == lines[number + 1 :]


def test_lines_are_numbered_from_one_and_lose_their_ends_only() -> None:
    assert [(line.number, line.text) for line in split([b"a\r\n\nb"])] == [(1, b"a\r"), (2, b""), (3, b"b")]
    assert split([]) == split([b""]) == []


def test_only_the_first_line_loses_a_byte_order_mark() -> None:
    texts = [line.text for line in split([BYTE_ORDER_MARK + b"a\n" + BYTE_ORDER_MARK + b"b"])]
    assert texts == [b"a", BYTE_ORDER_MARK + b"b"]


def test_of_a_line_that_is_too_long_no_more_is_held_than_shows_that() -> None:
    splitter = LineSplitter(10)
    for _ in range(1_000):
        assert not list(splitter.feed(b"x" * 10_000))
    (line,) = splitter.feed(b"\n")
    assert line == TextLine(1, b"x" * 11, Position(1, 10_000_001))
