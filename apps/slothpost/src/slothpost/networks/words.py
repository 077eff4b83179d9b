"""What a network says, fit to be shown: in one line, without what nobody sees, and not endless."""

from __future__ import annotations

from collections.abc import Mapping

from slothpost.text.invisible import visible_line

MAX_WORDS = 300  # characters


def first_words(fields: Mapping[str, object], *names: str, otherwise: str) -> str:
    """Return the first of these fields that has a text."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and (line := visible_line(value)):
            return line if len(line) <= MAX_WORDS else line[: MAX_WORDS - 1] + "…"
    return otherwise
