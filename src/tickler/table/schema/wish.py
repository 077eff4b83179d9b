"""Answers a wish: which call finds the items that satisfy a condition, or what to declare so that one does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tickler.errors import InvalidInput
from tickler.table.condition import And, Compare, Condition, Leaf, StartsWith
from tickler.table.definition import EntityDefinition, TableDefinition
from tickler.table.disjoint import cases, implies, never_both
from tickler.table.key import Index, Key
from tickler.table.measurement import Measurement
from tickler.table.schema.access_patterns import variable
from tickler.table.schema.finding import Answer
from tickler.table.schema.membership import ALWAYS, absences, needed
from tickler.table.schema.predicate_text import condition_text, list_text, path_text
from tickler.table.schema.source_text import condition_source, path_source, value_source

Pair = Key[Any, Any, Any] | Index[Any, Any]

_RANGES = {">=": "since", ">": "after", "<=": "until", "<": "before"}


class _Candidate(NamedTuple):
    """A key by which all wanted items can be read. `open_values`: the attributes of its partition that the wish leaves open."""

    name: str
    is_primary: bool
    call: str
    open_values: list[str]
    is_exact: bool

    @property
    def rank(self) -> tuple[object, ...]:
        return bool(self.open_values), self.is_primary, not self.is_exact, len(self.open_values)


def answer(table: TableDefinition, wish: Condition[Any], measured: Measurement | None = None) -> Answer:
    """Return the best call for a wish. A primary key whose partition is unknown does not count: that would read the table."""
    definition = _definition(table, wish)
    words = f"{_entity(definition)} items where {condition_text(wish)}"
    found = sorted(_candidates(definition, wish), key=lambda each: each.rank)
    best = next((each for each in found if not (each.is_primary and each.open_values)), None)
    if best is not None:
        return Answer(wish=words, says=_praise(best), call=best.call)
    by_key = next((each for each in found if each.is_primary), None)
    lacking = list_text(list(dict.fromkeys(path_text(atom.condition.path) for atom in absences(wish)))) if absences(wish) else ""
    if lacking:
        return Answer(wish=words, says=_why_absent(definition, wish, lacking, measured), remedy=_instead(lacking, by_key))
    return Answer(
        wish=words,
        says="no index has these items, and to read the whole table costs what the table costs",
        remedy=f"declare `{_new_index(table, definition, wish)}`, or add that to `when=` of an index that you have",
    )


def _definition(table: TableDefinition, wish: Condition[Any]) -> EntityDefinition:
    leaf = next(wish.leaves(), None)
    owner = None if leaf is None else leaf.path.attribute.entity
    definition = next((each for each in table.entities.values() if each.cls is owner), None)
    if definition is None:
        raise InvalidInput(f"{wish!r} is not about an entity of the table {table.name!r}: use attributes of one")
    definition.check_condition(wish)
    return definition


def _candidates(definition: EntityDefinition, wish: Condition[Any]) -> Iterator[_Candidate]:
    """Yield the keys that every wanted item certainly has."""
    demands = _Demands(wish)
    pairs: list[Pair] = [definition.key, *definition.indexes]
    for pair in pairs:
        inside = ALWAYS if isinstance(pair, Key) else needed(pair)
        if not implies(wish, inside):
            continue
        values = [(part, demands.values.get(path_text(part.path))) for part in pair.pk.parts]
        chosen = [demand for _, demand in values if demand is not None]
        arguments = ", ".join(variable(part) if demand is None else value_source(demand.value) for part, demand in values)
        range_text, ranged = demands.narrowed(pair)
        is_exact = implies(And([inside, *chosen, *ranged]), wish)
        where = "" if is_exact else f", where={condition_source(wish, _entity(definition))}"
        call = f"await db.query({_name(pair)}({arguments}){range_text}{where}, first=100)"
        open_values = [path_text(part.path) for part, demand in values if demand is None]
        yield _Candidate(_name(pair), isinstance(pair, Key), call, open_values, is_exact)


class _Demands:
    """What a wish demands of single attributes, if it has no alternatives."""

    def __init__(self, wish: Condition[Any]) -> None:
        alternatives = cases(wish) or []
        atoms = alternatives[0] if len(alternatives) == 1 else ()
        self._leaves = [atom.condition for atom in atoms if not atom.negated]
        equal = [leaf for leaf in self._leaves if isinstance(leaf, Compare) and leaf.operator == "="]
        self.values = {path_text(leaf.path): leaf for leaf in equal}

    def narrowed(self, pair: Pair) -> tuple[str, list[Leaf]]:
        """Return the calls that narrow a selection from the left of its sort key, and the demands that they meet."""
        text = ""
        met: list[Leaf] = []
        for part in pair.sk.parts:
            name = path_text(part.path)
            if name not in self.values:
                ranges = [leaf for leaf in self._leaves if path_text(leaf.path) == name and _range(leaf)]
                return text + "".join(map(_range, ranges)), [*met, *ranges]
            text += f".under({value_source(self.values[name].value)})"
            met.append(self.values[name])
        return text, met


def _range(leaf: Leaf) -> str:
    """Return the call of a selection that keeps what satisfies a condition on the next attribute; empty if there is none."""
    if isinstance(leaf, Compare) and leaf.operator in _RANGES:
        return f".{_RANGES[leaf.operator]}({value_source(leaf.value)})"
    return f".starting_with({value_source(leaf.value)})" if isinstance(leaf, StartsWith) and leaf.value else ""


def _praise(best: _Candidate) -> str:
    of = f", for one {list_text(best.open_values)} at a time" if best.open_values else ""
    has = "lists exactly these" if best.is_exact else "has all of these and others, which `where=` leaves out"
    return f"{best.name} {has}{of}"


def _why_absent(definition: EntityDefinition, wish: Condition[Any], lacking: str, measured: Measurement | None) -> str:
    said = f"no sparse index can list what lacks {lacking}: without it an item has no key to be found by"
    if measured is None:
        return said
    whole = measured.table.items.get(definition.name, 0)
    for index in definition.indexes:
        if implies(needed(index), ~wish) and implies(~wish, needed(index)):
            inside = measured.indexes[index.gsi].items.get(definition.name, 0)
            share = (whole - inside) / max(whole, 1)
            return f"{said}. {whole - inside:,} of {whole:,} items lack it, {share:.1%}; {_name(index)} has the others"
    return f"{said}. There are {whole:,} items"


def _instead(lacking: str, by_key: _Candidate | None) -> str:
    by_hand = f"; or filter what a key selects: `{by_key.call}`" if by_key is not None else ""
    return (
        f"ask for what is present: set an attribute while an item is of interest, remove it by the write that sets {lacking}, "
        f"and index it{by_hand}"
    )


def _new_index(table: TableDefinition, definition: EntityDefinition, wish: Condition[Any]) -> str:
    """Write an index that holds what is wished, on one that the table has if its other keys exclude it."""
    free = [gsi for gsi in table.gsis if all(never_both(wish, index.membership()) for index in definition.slots.get(gsi, ()))]
    gsi = free[0] if free else next(name for n in range(1, 100) if (name := f"gsi{n}") not in table.gsis)
    parts = [*definition.key.pk.parts, *definition.key.sk.parts]
    sort = " / ".join(dict.fromkeys(path_source(part.path, "") for part in parts)) or '"ALL"'
    return f'wanted = Index("{gsi}", "WANTED_{_entity(definition).upper()}", {sort}, when={condition_source(wish, "")})'


def _entity(definition: EntityDefinition) -> str:
    return str(definition.cls.__name__)


def _name(pair: Pair) -> str:
    return f"{_entity(pair.bound())}.{pair.name.rpartition('.')[2]}"
