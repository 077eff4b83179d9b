"""Keeps spreadsheets from running a text as a formula: an apostrophe in front, which reading takes away again."""

from __future__ import annotations

_APOSTROPHE = "'"
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_ALIKE = (*_FORMULA, _APOSTROPHE)


def guarded(field: str) -> str:
    """Let no spreadsheet take a field for a formula. A field that looks as if that was done gets another apostrophe."""
    is_alike = field.startswith(_APOSTROPHE) and field[1:].startswith(_ALIKE)
    return _APOSTROPHE + field if is_alike or field.startswith(_FORMULA) else field


def unguarded(field: str) -> str:
    """Return what `guarded` was given."""
    return field[1:] if field.startswith(_APOSTROPHE) and field[1:].startswith(_ALIKE) else field
