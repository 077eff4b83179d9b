"""What is certain about which items are in an index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tickler.table.condition import And, Condition, Exists
from tickler.table.disjoint import Atom, cases, implies
from tickler.table.key import Index
from tickler.table.schema.predicate_text import optional_paths

ALWAYS: Condition[Any] = And(())


def needed(index: Index[Any, Any]) -> Condition[Any]:
    """Return what an item needs to be in an index, without the presence of attributes that are always present."""
    present = [path.exists() for path in optional_paths(index)]
    return And([*([] if index.when is None else [index.when]), *present])


def is_never_absent(index: Index[Any, Any]) -> bool:
    return implies(ALWAYS, needed(index))


def absences(condition: Condition[Any]) -> list[Atom]:
    """Return the demands for absence of a condition that demands nothing else; none if it demands something that is present."""
    alternatives: Sequence[tuple[Atom, ...]] = cases(condition) or ()
    if not alternatives or not all(case and all(map(_is_absence, case)) for case in alternatives):
        return []
    return [atom for case in alternatives for atom in case]


def _is_absence(atom: Atom) -> bool:
    return atom.negated and isinstance(atom.condition, Exists)
