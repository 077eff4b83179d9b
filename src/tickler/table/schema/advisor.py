"""Says what is wrong with the indexes of a table: what the definitions prove, and what a measurement shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tickler.table.condition import Condition
from tickler.table.definition import EntityDefinition, TableDefinition
from tickler.table.disjoint import never_both
from tickler.table.key import Index
from tickler.table.measurement import Measurement
from tickler.table.schema.finding import Advice, Finding
from tickler.table.schema.hot_partition import hot_partitions
from tickler.table.schema.membership import absences, is_never_absent
from tickler.table.schema.predicate_text import list_text, path_text
from tickler.table.schema.wish import answer
from tickler.table.template import disjoint

MAX_SPARSE_SHARE = 0.3  # of the items of an entity: with more an index is an ordinary one
MIN_ITEMS = 100  # of an entity, below which a share says nothing


def advise(
    table: TableDefinition,
    measured: Measurement | None = None,
    *,
    writes_per_second: float | None = None,
    find: Condition[Any] | None = None,
) -> Advice:
    """Return what to change. `writes_per_second` is the highest rate that a single partition gets; `find` is a wish."""
    findings = [
        *(finding for definition in table.entities.values() for finding in _of_entity(definition, measured)),
        *_shareable(table),
        *hot_partitions(table, measured, writes_per_second),
    ]
    worst_first = sorted(findings, key=lambda finding: finding.severity != "warning")
    return Advice(tuple(worst_first), None if find is None else answer(table, find, measured))


def _of_entity(definition: EntityDefinition, measured: Measurement | None) -> Iterator[Finding]:
    for gsi, indexes in definition.slots.items():
        found = _share(definition, gsi, measured)
        for index in indexes:
            if is_never_absent(index):
                yield _never_absent(index, found)
            elif index.when is not None and absences(index.when):
                yield from _absence(index, found)
            elif found is not None and found.is_large:
                yield _not_sparse(indexes, found)
                break


class _Share:
    """How many items of an entity are in an index."""

    def __init__(self, inside: int, whole: int, entity: str, exact: bool) -> None:
        self.is_large = whole >= MIN_ITEMS and inside > MAX_SPARSE_SHARE * whole
        about = "" if exact else "about "
        self.text = f"{about}{inside:,} of {whole:,} {entity} items, {inside / max(whole, 1):.0%}"


def _share(definition: EntityDefinition, gsi: str, measured: Measurement | None) -> _Share | None:
    if measured is None or gsi not in measured.indexes:
        return None
    fill, whole = measured.indexes[gsi], measured.table.items.get(definition.name, 0)
    exact = fill.exact and measured.table.exact
    return _Share(fill.items.get(definition.name, 0), whole, definition.cls.__name__, exact)


def _not_sparse(indexes: list[Index[Any, Any]], found: _Share) -> Finding:
    names = list_text([_name(index) for index in indexes])
    return Finding(
        check="not sparse",
        severity="warning",
        about=names,
        figure=found.text,
        says=f"{names} holds more than {MAX_SPARSE_SHARE:.0%} of the items: it costs as much as an ordinary index",
        remedy="narrow its `when=` to what is of interest now, or keep it as an ordinary index if you list most items",
    )


def _never_absent(index: Index[Any, Any], found: _Share | None) -> Finding:
    return Finding(
        check="never absent",
        severity="info",
        about=_name(index),
        figure="100% of the items by definition" if found is None else found.text,
        says=f"{_name(index)} has no condition, and no attribute of its key can be missing: every item is in it, and pays for it",
        remedy="add `when=`, or declare an attribute of its key as `| Missing`; fine if it is meant to find any item",
    )


def _absence(index: Index[Any, Any], found: _Share | None) -> Iterator[Finding]:
    assert index.when is not None
    if found is not None and not found.is_large:
        return  # few lack it: that is what is of interest
    missing = list_text(list(dict.fromkeys(path_text(atom.condition.path) for atom in absences(index.when))))
    yield Finding(
        check="absence",
        severity="info" if found is None else "warning",
        about=_name(index),
        figure="not measured" if found is None else found.text,
        says=f"{_name(index)} lists items that lack {missing}: usually those are most of them, and the index is not sparse",
        remedy=f"index the items that have {missing} instead, or an attribute that is present only while an item is of interest",
    )


def _shareable(table: TableDefinition) -> Iterator[Finding]:
    """Yield the indexes of the table that could be one: no item has a key in two of them, and no partitions would mix."""
    groups: list[list[str]] = []
    for gsi in table.gsis:
        group = next((each for each in groups if all(_can_share(table, gsi, other) for other in each)), None)
        if group is None:
            groups.append([gsi])
        else:
            group.append(gsi)
    for group in groups:
        if len(group) > 1:
            users = [_name(index) for gsi in group for index in _indexes(table, gsi)]
            yield Finding(
                check="could share",
                severity="info",
                about=list_text(group),
                figure=f"{len(group)} indexes where 1 is enough",
                says=f"no item can be in two of {list_text(group)}, and their partition keys differ ({', '.join(users)})",
                remedy=f'declare all of them on one, as in `Index("{group[0]}", …)`, then run `tickler table reindex`',
            )


def _can_share(table: TableDefinition, one: str, other: str) -> bool:
    return all(
        disjoint(a.pk, b.pk) and (a.definition is not b.definition or never_both(a.membership(), b.membership()))
        for a in _indexes(table, one)
        for b in _indexes(table, other)
    )


def _indexes(table: TableDefinition, gsi: str) -> list[Index[Any, Any]]:
    return [index for definition in table.entities.values() for index in definition.slots.get(gsi, ())]


def _name(index: Index[Any, Any]) -> str:
    return f"{index.bound().cls.__name__}.{index.name.rpartition('.')[2]}"
