"""The top-level domains after which X makes a link of a word."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path


def _one_of(words: Iterable[str]) -> str:
    """Return a pattern for any of these words, the longest first, that is read letter by letter."""
    tails: defaultdict[str, list[str]] = defaultdict(list)
    for word in words:
        tails[word[:1]].append(word[1:])
    may_end = tails.pop("", None) is not None
    branches = "|".join(_letter(first) + _one_of(rest) for first, rest in tails.items())
    if may_end:
        return f"(?:{branches})?" if branches else ""
    return f"(?:{branches})" if len(tails) > 1 else branches


def _letter(letter: str) -> str:
    """ASCII letters match only each other: in Python, `s` would match `ſ` when case is ignored."""
    return letter if letter.isascii() or letter.lower() == letter.upper() else f"(?ui:{letter})"


TLDS = tuple((Path(__file__).with_name("tlds.txt")).read_text(encoding="utf-8").split())
"""Those that twitter-text 3.1 knows, of countries and others."""

TLD = rf"(?ai:{_one_of(TLDS)})(?=[^0-9a-zA-Z@+\-]|\Z)"
"""A pattern for any of them."""
