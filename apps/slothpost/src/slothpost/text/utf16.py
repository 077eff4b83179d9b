"""Texts as JavaScript sees them: a code point beyond U+FFFF is two characters, and a pattern may match one of them."""

from __future__ import annotations

import re

_BEYOND = re.compile("[\U00010000-\U0010ffff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def to_utf16(text: str) -> str:
    """Write each code point beyond U+FFFF as its two surrogates."""
    return _BEYOND.sub(lambda found: _surrogates(ord(found[0]) - 0x10000), text)


def from_utf16(units: str) -> str:
    """Join surrogates to code points. Those without a partner stay."""
    return _PAIR.sub(lambda found: chr(0x10000 + (ord(found[0][0]) - 0xD800 << 10) + ord(found[0][1]) - 0xDC00), units)


def utf16_length(text: str) -> int:
    return len(text) + len(_BEYOND.findall(text))


def _surrogates(offset: int) -> str:
    return chr(0xD800 + (offset >> 10)) + chr(0xDC00 + (offset & 0x3FF))
