"""Makes HTML of which every text is escaped, unless it is HTML already."""

from __future__ import annotations

from html import escape

_VOID = frozenset({"meta", "wbr"})


class Markup(str):
    """A text that is HTML."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: str | bool | None) -> Markup:
    """Make an element. `class_` and `data_x` are `class` and `data-x`; None and False leave an attribute out."""
    shown = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None and value is not False)
    return Markup(f"<{name}{shown}>" if name in _VOID else f"<{name}{shown}>{joined(*children)}</{name}>")


def joined(*children: str) -> Markup:
    return Markup("".join(child if isinstance(child, Markup) else escape(child) for child in children))


def _attribute(key: str, value: str | bool) -> str:
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'
