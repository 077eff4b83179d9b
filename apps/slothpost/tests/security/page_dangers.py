"""Finds in a page what a stranger's text must never become: an element, an attribute, or an address that is a program."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

_ADDRESSES = frozenset({"href", "src", "action", "formaction", "xlink:href"})
_PROGRAMS = frozenset({"iframe", "object", "embed", "base", "meta-refresh", "style", "img"})  # our pages have none of them


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.dangers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, Any]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag in _PROGRAMS or (tag == "script" and "src" not in attributes):
            self.dangers.append(f"<{tag}>")
        for name, value in attributes.items():
            if name.startswith("on") or name in ("style", "http-equiv") or (name in _ADDRESSES and not _is_address(value)):
                self.dangers.append(f"{name}={value[:60]}")


def _is_address(value: str) -> bool:
    return value.startswith(("https://", "http://", "#")) or (value.startswith("/") and not value.startswith("//"))


def dangers_of(source: str) -> list[str]:
    reader = _Reader()
    reader.feed(source)
    reader.close()
    return reader.dangers
