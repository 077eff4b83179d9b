"""The request of one operation: what it writes, and under which condition. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from tickler.dynamo.codec import Item
from tickler.errors import ConditionFailed, InvalidInput, ItemNotFound, VersionConflict
from tickler.table.attribute import Path
from tickler.table.condition import Compare
from tickler.table.definition import EntityDefinition
from tickler.table.engines.dynamodb.changes import Clauses, has_expression, set_as_whole
from tickler.table.engines.dynamodb.expressions import Expressions, all_of, grouped, negated
from tickler.table.engines.dynamodb.items import ENTITY, attribute_of, is_stored, item_of, key_of
from tickler.table.key import ItemId
from tickler.table.operation import Check, Operation, Put, Update, decide, is_blind, key_values, with_next_version
from tickler.table.planner import SlotPlan, all_changes, plan, steps_of

Kind = Literal["Put", "Update", "Delete", "ConditionCheck"]

_ABSENT = "attribute_not_exists(pk)"


class Seen(NamedTuple):
    """An item as it was read, and as an entity; that is None if there is no item, or an expired one."""

    raw: Item | None
    entity: Any


class Request(NamedTuple):
    """A write of one item, as part of a transaction or alone. `entity` is what it leaves behind, if that is known before."""

    kind: Kind
    body: dict[str, object]
    entity: Any = None


class Writing:
    """Makes the requests of one operation, again and again until one is not overtaken by another writer."""

    def __init__(self, operation: Operation, now_ms: int) -> None:
        self.operation = operation
        self.seen: Seen | None = None
        self._now_ms = now_ms
        self._plan = plan(operation) if isinstance(operation, Update) else None
        self._overtaken = False

    @property
    def id(self) -> ItemId[Any]:
        return self.operation.id

    @property
    def must_read(self) -> bool:
        """Whether the request depends on the item, which was not read yet."""
        if self._plan is None or self.seen is not None:
            return False
        return self._plan.reads or not all(map(has_expression, self._plan_changes()))

    def overtaken(self, seen: Seen) -> None:
        """Take notice of the item as it is. Raises what `decide` raises; otherwise the next request is for this item."""
        decide(self.operation, seen.entity)
        self.seen = seen
        self._overtaken = True

    def request(self) -> Request:
        operation = self.operation
        if isinstance(operation, Put):
            return self._put(operation)
        if isinstance(operation, Update):
            return self._update_seen(operation, self.seen) if self.seen is not None else self._update(operation)
        expressions = Expressions()
        condition = self._condition(expressions)
        kind: Kind = "ConditionCheck" if isinstance(operation, Check) else "Delete"
        return Request(kind, _body({"Key": key_of(self.id)}, condition, expressions))

    def _plan_changes(self) -> Iterator[Any]:
        assert isinstance(self.operation, Update)
        return iter(self.operation.changes)

    def _put(self, operation: Put) -> Request:
        definition = self.id.definition
        stored = with_next_version(definition, operation.entity)
        expressions = Expressions()
        condition = None if is_blind(operation) else self._condition(expressions)
        return Request("Put", _body({"Item": item_of(definition, stored)}, condition, expressions), stored)

    def _update(self, operation: Update) -> Request:
        """Return the request of an update that needs no read."""
        assert self._plan is not None
        expressions = Expressions()
        clauses = Clauses(expressions)
        for change in all_changes(operation):
            clauses.change(change, self._plan.knowledge)
        if operation.initial is not None:
            _fill(clauses, expressions, operation)
        self._keys(clauses, self._plan.slots)
        clauses.expiry(self.id.definition, operation.changes)
        condition = self._condition(expressions)
        return Request("Update", _body({"Key": key_of(self.id), "UpdateExpression": clauses.text()}, condition, expressions))

    def _update_seen(self, operation: Update, seen: Seen) -> Request:
        """Return the request of an update of the item that was read, guarded on what was read for."""
        assert self._plan is not None
        definition = self.id.definition
        changed = decide(operation, seen.entity)
        expressions = Expressions()
        if seen.raw is None or seen.entity is None:
            return Request("Put", _body({"Item": item_of(definition, changed)}, self._as_seen(expressions), expressions), changed)
        clauses = Clauses(expressions)
        lookup = definition.lookup(seen.entity)
        knowledge = self._plan.knowledge.learn(self._plan.depends, lookup)
        guards: dict[Any, Path[Any, Any]] = {steps_of(path): path for path in self._plan.depends}
        whole: dict[Any, tuple[Path[Any, Any], object]] = {}
        for change in all_changes(operation):
            found = set_as_whole(change, seen.raw, changed)
            if found is None:
                clauses.change(change, knowledge)
            else:
                whole[steps_of(found[0])] = found
                guards[steps_of(found[0])] = found[0]
        for path, value in whole.values():
            clauses.put(expressions.path(path), value)
        self._keys(clauses, self._plan.after_reading(definition, changed))
        clauses.expiry(definition, operation.changes)
        own = self._condition(expressions)
        condition = all_of([grouped(own), *(expressions.unchanged(path, seen.raw) for path in guards.values())])
        body = _body({"Key": key_of(self.id), "UpdateExpression": clauses.text()}, condition, expressions)
        return Request("Update", body, changed)

    def _keys(self, clauses: Clauses, slots: Any) -> None:
        definition = self.id.definition
        pairs: dict[str, SlotPlan] = dict(slots)
        keys = [half for gsi in definition.gsis for half in (pairs[gsi].key if gsi in pairs else None) or (None, None)]
        definition.check_lengths([self.id.pk, self.id.sk, *keys])
        clauses.keys(pairs)

    def _condition(self, expressions: Expressions) -> str:
        """Return the condition under which `decide` lets an operation happen, to an item of its own entity."""
        if self._overtaken:
            return self._as_seen(expressions)
        operation = self.operation
        definition = self.id.definition
        alive = expressions.alive(definition, self._now_ms)
        may_create = _may_create(operation)
        parts = [
            None if operation.when is None else expressions.condition(operation.when),
            self._version(expressions, operation),
        ]
        if isinstance(operation, Put) and operation.must == "create":
            return _either(_ABSENT, None if alive is None else negated(alive)) if may_create else _never()
        present = all_of([is_of(expressions, definition), alive, *parts])
        if not may_create:
            return present
        if isinstance(operation, Update):  # what has expired must not be updated, but replaced
            return f"{_ABSENT} OR {grouped(present)}"
        return _either(_ABSENT, None if alive is None else negated(alive), grouped(present))

    def _version(self, expressions: Expressions, operation: Operation) -> str | None:
        version = operation.id.definition.version
        if not isinstance(operation, Put) or version is None:
            return None
        path = operation.id.definition.paths[version.name]
        return expressions.condition(Compare(path, "=", getattr(operation.entity, version.name)))

    def _as_seen(self, expressions: Expressions) -> str:
        """Return the condition that nothing has changed of what the operation depends on, since the item was read."""
        assert self.seen is not None
        definition = self.id.definition
        if self.seen.raw is None:
            return _ABSENT
        paths = [] if self.operation.when is None else [leaf.path for leaf in self.operation.when.leaves()]
        for role in (definition.expires, definition.version if isinstance(self.operation, Put) else None):
            paths += [] if role is None else [definition.paths[role.name]]
        found = {steps_of(path): path for path in paths}
        return all_of([is_of(expressions, definition), *(expressions.unchanged(path, self.seen.raw) for path in found.values())])


def is_of(expressions: Expressions, definition: EntityDefinition) -> str:
    """Return the condition that there is an item, and that it is of an entity."""
    return f"{expressions.name(ENTITY)} = {expressions.value({'S': definition.name})}"


def _may_create(operation: Operation) -> bool:
    """Tell whether an operation may happen where there is no item."""
    try:
        decide(operation, None)
    except (ConditionFailed, InvalidInput, ItemNotFound, VersionConflict):
        return False
    return True


def _fill(clauses: Clauses, expressions: Expressions, operation: Update) -> None:
    """Write what an upsert has to create beside its changes: the attributes of the key, the entity, and defaults."""
    definition: EntityDefinition = operation.id.definition
    of_key = key_values(operation.id)
    changed = {change.path.attribute.name for change in all_changes(operation)}
    clauses.put(expressions.name(ENTITY), definition.name)
    for name in definition.attributes:
        value = getattr(operation.initial, name)
        if name in of_key:
            clauses.put(expressions.name(name), value)
        elif name not in changed and is_stored(value):
            clauses.put_if_absent(name, attribute_of(value))


def _body(fields: dict[str, object], condition: str | None, expressions: Expressions) -> dict[str, object]:
    guarded = {} if condition is None else {"ConditionExpression": condition}
    return {
        **fields,
        **guarded,
        **expressions.fields(condition, fields.get("UpdateExpression")),
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def _either(*parts: str | None) -> str:
    return grouped(" OR ".join(part for part in parts if part is not None))


def _never() -> str:
    return f"(attribute_exists(pk) AND {_ABSENT})"
