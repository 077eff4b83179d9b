"""Characters that nobody sees: they change what people read, what a terminal does, and what a language model is told."""

from __future__ import annotations

import re

# Control characters but tabs and line feeds; marks of direction, which turn words around; blanks without width; and the tags in
# which a text can be hidden. Joiners stay, since emoji and some scripts need them.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """Return a text without them."""
    return _INVISIBLE.sub("", text)


def visible_line(text: str) -> str:
    """Return a text on one line, with single spaces, and without them."""
    return " ".join(visible(" ".join(text.split())).split())
