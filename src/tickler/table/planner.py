"""Plans what an update does to the keys of its item in each index: nothing, a known change, or one that needs a read first.

Pure. A plan is sound: whatever the item is, the keys after the planned change are those of the changed item.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from tickler.errors import InvalidInput
from tickler.table.attribute import Path
from tickler.table.change import Add, Change, Remove, Set, change_within
from tickler.table.condition import UNKNOWN, And, Compare, Condition, Exists, Lookup, Not, OneOf
from tickler.table.declaration import MISSING, Attribute
from tickler.table.definition import EntityDefinition
from tickler.table.key import Index, KeyPair
from tickler.table.operation import Update, key_values

Steps = tuple[object, ...]  # of a path: its attribute, then its steps


class SlotPlan(msgspec.Struct, frozen=True):
    """What happens to both halves of the item's key in one index of the table.

    `read`: it depends on the values at `depends` before the update, so read them, and guard the write on them.
    """

    action: Literal["untouched", "set", "remove", "read"]
    key: KeyPair | None = None
    depends: tuple[Path[Any, Any], ...] = ()


class Plan:
    """The plan of each index of an entity, and what is known of the item after the update."""

    def __init__(self, slots: Mapping[str, SlotPlan], knowledge: Knowledge) -> None:
        self.slots = slots
        self.knowledge = knowledge

    @property
    def reads(self) -> bool:
        return any(slot.action == "read" for slot in self.slots.values())

    @property
    def depends(self) -> list[Path[Any, Any]]:
        """Return the paths on which a write after a read must be guarded, each once."""
        found = {steps_of(path): path for slot in self.slots.values() for path in slot.depends}
        return list(found.values())

    def after_reading(self, definition: EntityDefinition, changed: object) -> dict[str, SlotPlan]:
        """Return the slots, with those that needed a read decided by the whole item as the update leaves it."""
        lookup = definition.lookup(changed)
        return {
            gsi: slot if slot.action == "untouched" else slot_with(definition.slot_key(gsi, lookup))
            for gsi, slot in self.slots.items()
        }


class Knowledge:
    """What is known of an item before and after an update, without reading it."""

    def __init__(self, changes: Sequence[Change[Any]], known: Mapping[Steps, object]) -> None:
        self._changes = [(steps_of(change.path), change) for change in changes]
        self._known = known

    def learn(self, paths: Iterable[Path[Any, Any]], lookup: Lookup) -> Knowledge:
        """Return this with the values before the update that were read at some paths."""
        read = {steps_of(path): lookup(path) for path in paths}
        return Knowledge([change for _, change in self._changes], {**self._known, **read})

    def before(self, path: Path[Any, Any]) -> object:
        return self._before(steps_of(path))

    def after(self, path: Path[Any, Any]) -> object:
        """Return the value at a path after the update, MISSING, or UNKNOWN."""
        steps = steps_of(path)
        within: list[tuple[Steps, Change[Any]]] = []
        for place, change in self._changes:
            if place == steps[: len(place)]:
                found = MISSING if isinstance(change, Set | Remove) else self._before(place)
                return UNKNOWN if found is UNKNOWN else _walk(change.applied(found), steps[len(place) :])
            if steps == place[: len(steps)]:
                within.append((place[len(steps) :], change))
        value = self._before(steps)
        for rest, change in within:
            if value is UNKNOWN or value is MISSING or value is None:
                return UNKNOWN
            try:
                value = change_within(value, rest, change)
            except InvalidInput:
                return UNKNOWN  # reading the item will tell what is wrong
        return value

    def touches(self, path: Path[Any, Any]) -> bool:
        """Tell whether a change is at a path, above it, or within it."""
        steps = steps_of(path)
        return any(place[: len(steps)] == steps[: len(place)] for place, _ in self._changes)

    def _before(self, steps: Steps) -> object:
        for length in range(len(steps), 0, -1):
            if steps[:length] in self._known:
                return _walk(self._known[steps[:length]], steps[length:])
        return UNKNOWN


def plan(update: Update) -> Plan:
    """Plan an update. One that may create its item has no untouched index, and no facts: there may be no item to have them."""
    definition = update.id.definition
    known: dict[Steps, object] = {(definition.attributes[name],): value for name, value in key_values(update.id).items()}
    creates = update.initial is not None
    if update.when is not None and not creates:
        known = {**dict(_facts(update.when)), **known}
    knowledge = Knowledge(all_changes(update), known)
    slots = {gsi: _plan_slot(definition, gsi, indexes, knowledge, creates) for gsi, indexes in definition.slots.items()}
    return Plan(slots, knowledge)


def all_changes(update: Update) -> list[Change[Any]]:
    """Return the changes of an update, and that of the version, which each write raises."""
    version = update.id.definition.version
    own: list[Change[Any]] = [] if version is None else [Add(update.id.definition.paths[version.name], 1)]
    return [*update.changes, *own]


def slot_with(key: object) -> SlotPlan:
    """Return the plan for a key that is known: both halves, or None."""
    if key is None:
        return SlotPlan("remove")
    assert isinstance(key, tuple)
    return SlotPlan("set", key)


def steps_of(path: Path[Any, Any]) -> Steps:
    return (path.attribute, *path.steps)


def _plan_slot(
    definition: EntityDefinition, gsi: str, indexes: Sequence[Index[Any, Any]], knowledge: Knowledge, creates: bool
) -> SlotPlan:
    paths = {steps_of(path): path for index in indexes for path in paths_of(index)}
    if not creates and not any(knowledge.touches(path) for path in paths.values()):
        return SlotPlan("untouched")
    key = definition.slot_key(gsi, knowledge.after)
    if key is not UNKNOWN:
        return slot_with(key)
    return SlotPlan("read", None, tuple(path for path in paths.values() if knowledge.after(path) is UNKNOWN))


def paths_of(index: Index[Any, Any]) -> Iterator[Path[Any, Any]]:
    """Yield what the place of an item in an index depends on."""
    for template in (index.pk, index.sk):
        for part in template.parts:
            yield part.path
    if index.when is not None:
        for leaf in index.when.leaves():
            yield leaf.path


def _facts(condition: Condition[Any]) -> Iterator[tuple[Steps, object]]:
    """Yield the values that an item must have if a condition holds for it."""
    if isinstance(condition, And):
        for part in condition.parts:
            yield from _facts(part)
    elif isinstance(condition, Compare) and condition.operator == "=":
        yield steps_of(condition.path), condition.value
    elif isinstance(condition, OneOf) and len(condition.values) == 1:
        yield steps_of(condition.path), condition.values[0]
    elif isinstance(condition, Not) and isinstance(condition.part, Exists):
        yield steps_of(condition.part.path), MISSING


def _walk(value: Any, steps: Steps) -> object:
    for step in steps:
        if value is MISSING or value is None:
            return MISSING
        value = getattr(value, step.name) if isinstance(step, Attribute) else value.get(step, MISSING)
    return value
