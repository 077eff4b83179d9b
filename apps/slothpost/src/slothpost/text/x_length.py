"""How long X says a text is: the rule of twitter-text, version 3."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import msgspec

from slothpost.text.emoji import SEQUENCE
from slothpost.text.utf16 import to_utf16, utf16_length
from slothpost.text.x_links import XLink, find_links

X_LIMIT = 280

_LINK_WEIGHT = 23
_EMOJI_WEIGHT = 2
_WEIGH_ONE = ((0x0000, 0x10FF), (0x2000, 0x200D), (0x2010, 0x201F), (0x2032, 0x2037))
_OTHER_WEIGHT = 2


class XText(msgspec.Struct, frozen=True):
    """A text as X reads it: its weighted length, and the links that X makes of it."""

    length: int
    links: tuple[XLink, ...]


def read_x_text(text: str) -> XText:
    """Count a link as 23, an emoji as 2, and other characters as 1 or, from most scripts outside Europe, 2."""
    normal = unicodedata.normalize("NFC", text)
    units = to_utf16(normal)
    links = find_links(units)
    return XText(_weigh(units, links, _emoji_lengths(normal)), tuple(links))


def x_length(text: str) -> int:
    return read_x_text(text).length


def _weigh(units: str, links: Sequence[XLink], emoji: dict[int, int]) -> int:
    link_lengths = {link.start: link.length for link in links}
    weight = at = 0
    while at < len(units):
        if at in link_lengths:
            weight += _LINK_WEIGHT
            at += link_lengths[at]
        elif at in emoji:
            weight += _EMOJI_WEIGHT
            at += emoji[at]
        else:
            weight += _weight(ord(units[at]))
            at += 2 if _is_pair(units[at : at + 2]) else 1
    return weight


def _emoji_lengths(text: str) -> dict[int, int]:
    """Return how long the emoji sequences are, by where they start, both as UTF-16."""
    lengths: dict[int, int] = {}
    at = end = 0
    for found in SEQUENCE.finditer(text):
        at += utf16_length(text[end : found.start()])
        lengths[at] = utf16_length(found[0])
        at, end = at + lengths[at], found.end()
    return lengths


def _weight(unit: int) -> int:
    return 1 if any(first <= unit <= last for first, last in _WEIGH_ONE) else _OTHER_WEIGHT


def _is_pair(units: str) -> bool:
    return len(units) == 2 and "\ud800" <= units[0] <= "\udbff" and "\udc00" <= units[1] <= "\udfff"
