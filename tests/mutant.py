"""One way to break the code, and the test that is there for it."""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    name: str
    file: str  # of the package
    old: str  # stands once in the file
    new: str
    test: str
