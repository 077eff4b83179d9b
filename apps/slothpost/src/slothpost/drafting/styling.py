"""Writes a text the way its author does: capitals, emoji, full stops, hashtags, the link."""

from __future__ import annotations

import re

from slothpost.drafting.voice import Style
from slothpost.language.names import is_name

_START = re.compile(r"(^|[.!?]\s+|\n(?:- )?)(\S+)")
_FULL_STOP = re.compile(r"\.(?=\n|$)")
_ENDS_TWICE = re.compile(r"([?!…])\.(?=\s|$)")


def styled(text: str, style: Style, *, keep: str) -> str:
    """Return a text in an author's style. `keep`, the name of the product, is always written as it is."""

    def start(found: re.Match[str]) -> str:
        before, word = found.groups()
        if word.startswith((keep.partition(" ")[0], "“", '"', "(")):
            return f"{before}{word}"
        if not style.is_lower_case:
            return f"{before}{_capital(word)}"
        return f"{before}{word if is_name(_bare(word)) else word[:1].lower() + word[1:]}"

    text = _ENDS_TWICE.sub(r"\1", text)
    text = _START.sub(start, text)
    return _FULL_STOP.sub("", text) if style.ends_open else text


def with_emoji(text: str, style: Style) -> str:
    """Put the author's emoji at the end of a text, or of the heading of a list."""
    if not style.emoji:
        return text
    heading, colon, rest = text.partition(":\n\n- ")
    return f"{heading} {style.emoji}\n\n- {rest}" if colon else f"{text} {style.emoji}"


def _capital(word: str) -> str:
    return word if any(c.isupper() for c in word) else word[:1].upper() + word[1:]


def _bare(word: str) -> str:
    return word.strip("“”\"'(),.:;!?’")
