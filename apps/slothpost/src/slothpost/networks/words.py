"""What a network says, fit to be shown: in one line, and not endless."""

from __future__ import annotations

from collections.abc import Mapping

MAX_WORDS = 300  # characters


def first_words(fields: Mapping[str, object], *names: str, otherwise: str) -> str:
    """Return the first of these fields that has a text."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and (line := " ".join(value.split())):
            return line if len(line) <= MAX_WORDS else line[: MAX_WORDS - 1] + "…"
    return otherwise
