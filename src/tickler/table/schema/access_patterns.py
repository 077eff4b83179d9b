"""Which calls the keys of an entity make possible, as Python that can be pasted, and what each of them answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from tickler.table.definition import EntityDefinition
from tickler.table.key import Index, Key
from tickler.table.schema.predicate_text import list_text, membership_text, path_text
from tickler.table.schema.schema import AccessPattern
from tickler.table.template import KeyPart

Pair = Key[Any, Any, Any] | Index[Any, Any]

_CONTINUOUS = (int, float, Decimal, datetime)  # of which one hardly asks for a single value
_RANGES = (*_CONTINUOUS, date)  # of which one asks for those from a value on


def access_patterns(definition: EntityDefinition) -> Iterator[AccessPattern]:
    """Yield the calls about items of one entity: by primary key, and by each index."""
    name: str = definition.cls.__name__
    key = definition.key
    values = [*key.pk.parts, *key.sk.parts]
    found = f"the {name} with this {list_text(_names(values))}" if values else f"the only {name}"
    yield AccessPattern(f"await db.get({name}.{_own(key)}.id({_arguments(values)}))", found, (name,))
    if key.sk.parts:
        yield from _queries(key, name, f"{name} items{_of(key)}")
    for index in definition.indexes:
        when = membership_text(index)
        what = f"{name} items{_of(index)}{'' if when is None else f' while {when}'}"
        yield from _queries(index, name, what)
        yield AccessPattern(f"await db.count({_selection(index, name)})", f"the number of {what}", (name,), index.gsi)


def patterns_of_shared(group: Sequence[Pair]) -> Iterator[AccessPattern]:
    """Yield the call that reads a partition which several entities share."""
    names = [str(pair.bound().cls.__name__) for pair in group]
    values = [_values(parts) for parts in zip(*(pair.pk.parts for pair in group), strict=True)]
    selections = [f"{name}.{_own(pair)}({', '.join(values)})" for name, pair in zip(names, group, strict=True)]
    first = group[0]
    of = f" of one {list_text(values)}" if values else ""
    yield AccessPattern(
        f"await db.query({', '.join(selections)}, first=100)",
        f"{list_text(list(dict.fromkeys(names)))} items{of}, in one read",
        tuple(dict.fromkeys(names)),
        first.gsi if isinstance(first, Index) else None,
    )


def _queries(pair: Pair, name: str, what: str) -> Iterator[AccessPattern]:
    """Yield the queries of a partition: as a whole, and from the left of its sort key on."""
    gsi = pair.gsi if isinstance(pair, Index) else None
    selection, parts = _selection(pair, name), pair.sk.parts
    if not parts:
        yield AccessPattern(f"await db.query({selection}, first=100)", what, (name,), gsi)
    for number, part in enumerate(parts):
        yield AccessPattern(f"await db.query({selection}, first=100)", f"{what}{_order(parts[number:])}", (name,), gsi)
        if part.codec.kind in _RANGES and _shown(part) != "id":
            call = f"await db.query({selection}.since({variable(part)}), first=100)"
            yield AccessPattern(call, f"{what}, from a given {_shown(part)} on", (name,), gsi)
        if part.codec.kind in _CONTINUOUS or number == len(parts) - 1:
            return
        selection, what = f"{selection}.under({variable(part)})", f"{what}, with one {_shown(part)}"


def _selection(pair: Pair, name: str) -> str:
    return f"{name}.{_own(pair)}({_arguments(pair.pk.parts)})"


def _own(pair: Pair) -> str:
    return pair.name.rpartition(".")[2]


def _of(pair: Pair) -> str:
    return f" of one {list_text(_names(pair.pk.parts))}" if pair.pk.parts else ""


def _order(parts: Sequence[KeyPart]) -> str:
    first, *others = (f"{_shown(part)}{' (highest first)' if part.descending else ''}" for part in parts)
    return f", by {first}{''.join(f', then {each}' for each in others)}"


def variable(part: KeyPart) -> str:
    """Return a name for the value of a part of a key: `customer`, or `address_city`."""
    return re.sub(r"\W+", "_", path_text(part.path)).strip("_")


def _shown(part: KeyPart) -> str:
    return path_text(part.path)


def _names(parts: Sequence[KeyPart]) -> list[str]:
    return [_shown(part) for part in parts]


def _arguments(parts: Sequence[KeyPart]) -> str:
    return ", ".join(map(variable, parts))


def _values(parts: Sequence[KeyPart]) -> str:
    """Return one name for a value that entities call by names of their own: `customer`, not `id`."""
    names = [variable(part) for part in parts]
    return next((name for name in names if name != "id"), names[0])
