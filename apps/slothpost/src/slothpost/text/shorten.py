"""Cuts texts so that a network takes them."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence

from slothpost.model import ChannelName
from slothpost.text.check import REFUSED_CHARACTERS, check_text
from slothpost.text.emoji import SEQUENCE

MAX_READ = 10_000
"""How many characters are looked at: texts that are longer are cut here first."""

_WORD = re.compile(r"\S+")
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s|\Z)|[。！？]+[」』）”]*|\n")
_UNIT = re.compile(rf"https?://\S+|{SEQUENCE.pattern}|.", re.DOTALL)  # never cut within a link or an emoji
_JOINER = "\u200d"
_LOST_AT_END = " \t\n,;:-–—(["
_ELLIPSIS = "…"


def fit(channel: ChannelName, text: str) -> str:
    """Cut a text so that the channel takes it: after a sentence, or else after a word, as long as that keeps half of what fits.

    Characters that no text may have are removed. What is returned can be sent, or is empty, if the text is one link too long.
    """
    text = REFUSED_CHARACTERS.sub("", text).strip()
    if not text or check_text(channel, text).is_sendable:
        return text
    text = text[:MAX_READ]
    cuts = (
        _longest(channel, text, _ends(_SENTENCE_END, text), ""),
        _longest(channel, text, _ends(_WORD, text), _ELLIPSIS),
        _longest(channel, text, _ends_of_characters(text), _ELLIPSIS),
    )
    enough = max(len(cut) for cut in cuts) / 2
    return next(cut for cut in cuts if len(cut) >= enough)


def _longest(channel: ChannelName, text: str, ends: Sequence[int], mark: str) -> str:
    """Return the longest cut at one of these ends. Lengths mostly grow with the end, so that a search by halves gets near it."""
    limit = check_text(channel, "").limit
    near = bisect_right(ends, limit, key=lambda end: check_text(channel, text[:end]).length)
    for end in reversed(ends[:near]):
        kept = text[:end].rstrip(_LOST_AT_END)
        if kept and check_text(channel, cut := kept + mark).is_sendable:
            return cut
    return ""


def _ends(pattern: re.Pattern[str], text: str) -> list[int]:
    return [found.end() for found in pattern.finditer(text)]


def _ends_of_characters(text: str) -> list[int]:
    """Return where one may cut without changing a character: not before an accent, nor around what joins emoji."""
    return [end for end in _ends(_UNIT, text) if text[end - 1] != _JOINER and not _continues(text[end : end + 1])]


def _continues(character: str) -> bool:
    return (
        character == _JOINER
        or unicodedata.category(character or " ").startswith("M")
        or "\U0001f3fb" <= character <= "\U0001f3ff"
    )
