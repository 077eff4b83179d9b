"""The templates, and the functions that they call."""

from __future__ import annotations

import re
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from pricebook.pages.amounts import count, direction, money, percent, share_of
from pricebook.pages.assets import ASSETS
from pricebook.pages.audit_words import what_of

STATES = {
    "draft": "draft",
    "submitted": "waits for approval",
    "approving": "being approved",
    "approved": "approved",
    "effective": "effective",
    "withdrawing": "being taken back",
    "settled": "settled",
    "cancelled": "cancelled",
    "superseded": "superseded",
    "checking": "being checked",
    "adding": "being added",
    "done": "done",
    "failed": "failed",
}
DIRECTIONS = {"up": "raised to", "down": "lowered to", "new": "new at", "none": "removed:", "same": "stays"}

_WORD = re.compile(r"[a-z]+(?![\w.:/])")


def sentence_case(text: str) -> str:
    """Begin with a capital letter, unless that is of a name, and end with a full stop."""
    if not text:
        return ""
    first = text[0].upper() if _WORD.match(text) else text[0]
    return f"{first}{text[1:]}{'' if text.endswith(('.', '!', '?', '…')) else '.'}"


def in_path(text: str) -> str:
    """Return a text as one part of a path, whatever is in it."""
    return quote(text, safe="")


def make_environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("pricebook.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update({
        "money": money, "percent": percent, "count": count, "sentence_case": sentence_case, "in_path": in_path,
    })  # fmt: skip
    environment.globals.update({
        "asset": ASSETS.url, "share_of": share_of, "direction": direction, "state_names": STATES, "direction_names": DIRECTIONS,
        "what_of": what_of,
    })  # fmt: skip
    return environment
