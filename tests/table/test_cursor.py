"""The text of a cursor: one for each position of a query, and no other."""

from __future__ import annotations

from string import ascii_letters, digits

import pytest

from tickler.errors import InvalidCursor
from tickler.table.cursor import Cursors

ALPHABET = ascii_letters + digits + "-_"
CURSORS = Cursors(b"s" * 32, lambda: "query")


@pytest.mark.parametrize("sort", ["", "a", "ab", "abc"])
def test_a_cursor_with_another_last_character_is_refused(sort: str) -> None:
    """Depending on its length, some bits of the last character mean nothing."""
    position = (sort, 7)
    cursor = CURSORS.write(position)
    accepted = []
    for character in ALPHABET:
        try:
            assert CURSORS.read(cursor[:-1] + character) == position
            accepted.append(character)
        except InvalidCursor:
            continue
    assert accepted == [cursor[-1]]


@pytest.mark.parametrize("added", ["=", "==", "\n", " ", "A"])
def test_a_cursor_with_something_added_is_refused(added: str) -> None:
    cursor = CURSORS.write(("a", 7))
    for text in (cursor + added, added + cursor, cursor[:5] + added + cursor[5:]):
        with pytest.raises(InvalidCursor):
            CURSORS.read(text)


def test_a_cursor_belongs_to_its_query_and_to_its_table() -> None:
    cursor = CURSORS.write(("a", 7))
    for others in (Cursors(b"s" * 32, lambda: "another query"), Cursors(b"t" * 32, lambda: "query")):
        with pytest.raises(InvalidCursor, match="belongs to another query"):
            others.read(cursor)
