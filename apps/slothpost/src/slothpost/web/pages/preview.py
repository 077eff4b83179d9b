"""A text as a network shows it: with its links, each in the short form that people see."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from slothpost.model import ChannelName

MAX_SHOWN_LINK = 30  # characters of an address that X shows

_SCHEME = re.compile(r"^https?://(?:www\.)?", re.IGNORECASE)


class Piece(msgspec.Struct, frozen=True):
    """Some text of a post; `is_link` if people can click it there."""

    text: str
    is_link: bool = False


def pieces_of(channel: ChannelName, text: str, links: Sequence[str]) -> list[Piece]:
    """Split a text at the links that the network finds in it."""
    pieces: list[Piece] = []
    start = 0
    for link in links:
        found = text.find(link, start)
        if found < 0:
            continue
        pieces += [Piece(text[start:found]), Piece(_shown(channel, link), is_link=True)]
        start = found + len(link)
    return [piece for piece in (*pieces, Piece(text[start:])) if piece.text]


def card_domain(links: Sequence[str]) -> str | None:
    """Return the domain that the card below a post names: that of the first whole address. A name such as README.md has none."""
    whole = next((link for link in links if _SCHEME.match(link)), None)
    return None if whole is None else re.split(r"[/?#:]", _SCHEME.sub("", whole), maxsplit=1)[0].lower()


def _shown(channel: ChannelName, link: str) -> str:
    short = _SCHEME.sub("", link) if channel == "x" else re.sub(r"^https?://", "", link, flags=re.IGNORECASE)
    return short if len(short) <= MAX_SHOWN_LINK else f"{short[:MAX_SHOWN_LINK]}…"
