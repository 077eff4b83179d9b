"""Options in the query of an address: each is known, and is there once unless it may be repeated."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from urllib.parse import parse_qsl

from pricebook.errors import InvalidField
from pricebook.web.context import HttpRequest

MAX_OPTIONS = 1_000

_YES = ("true", "yes", "1")
_NO = ("false", "no", "0", "")


def read_options(request: HttpRequest, names: Collection[str], repeated: Collection[str] = ()) -> dict[str, list[str]]:
    """Return the values of each name that is given. An unknown name is refused: it is misspelled."""
    query: bytes = request.scope["query_string"]
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, max_num_fields=MAX_OPTIONS, errors="strict")
    except ValueError:
        raise InvalidField("query", f"cannot be read: send at most {MAX_OPTIONS} options, encoded as UTF-8") from None
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        if name not in names and name not in repeated:
            raise InvalidField(name[:40], f"there is no such option: use {', '.join((*names, *repeated))}")
        if name in found and name not in repeated:
            raise InvalidField(name, "is there twice: remove one")
        found.setdefault(name, []).append(value)
    return found


def one(options: Mapping[str, list[str]], name: str) -> str:
    return options[name][0] if name in options else ""


def flag(options: Mapping[str, list[str]], name: str) -> bool:
    text = one(options, name).lower()
    if text not in (*_YES, *_NO):
        raise InvalidField(name, f"{text[:20]!r} is neither true nor false: use one of them")
    return text in _YES


def number(options: Mapping[str, list[str]], name: str) -> int | None:
    text = one(options, name)
    if not text:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise InvalidField(name, f"{text[:20]!r} is not a number: use digits")
    return int(text)
