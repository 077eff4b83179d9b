"""How long Threads says a text is."""

from __future__ import annotations

from slothpost.text.emoji import ANY_EMOJI

THREADS_LIMIT = 500
THREADS_CAUTIOUS_LIMIT = 480
"""Threads does not say how it counts characters that are neither ASCII nor emoji. Up to here, a small difference is harmless."""

THREADS_MAX_LINKS = 5  # different ones


def threads_length(text: str) -> int:
    """Count an emoji as the bytes it has in UTF-8, and any other character as 1."""
    return len(text) + sum(len(found[0].encode()) - len(found[0]) for found in ANY_EMOJI.finditer(text))
