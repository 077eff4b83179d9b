"""Tells whether two posts read alike."""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORD = re.compile(r"[\w’']+")
_OPENING = 3
_RUN = 3
_MOST_SHARED = 0.5


def alike(one: str, other: str) -> bool:
    """Return whether two texts begin with the same words, or share half of what the shorter says."""
    first, second = _words(one), _words(other)
    if first[:_OPENING] == second[:_OPENING]:
        return True
    runs, others = _runs(first), _runs(second)
    fewer = min(len(runs), len(others))
    return fewer > 0 and len(runs & others) > _MOST_SHARED * fewer


def _words(text: str) -> Sequence[str]:
    return _WORD.findall(text.lower())


def _runs(words: Sequence[str]) -> set[tuple[str, ...]]:
    return {tuple(words[at : at + _RUN]) for at in range(len(words) - _RUN + 1)}
