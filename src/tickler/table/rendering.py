"""Functions that render the keys of whole entities, made once for each entity: `Template.render` for when all is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from tickler.table.condition import And, Compare, Condition, Leaf, Not, Or
from tickler.table.declaration import MISSING, Attribute
from tickler.table.key_codec import SEPARATOR
from tickler.table.template import KeyPart, Template

if TYPE_CHECKING:
    from tickler.table.attribute import Path
    from tickler.table.key import Index

Render = Callable[[object], str | None]
RenderKeys = Callable[[object], tuple[str | None, ...]]
Test = Callable[[object], bool]

NOWHERE = (None, None)  # the key of an item in an index that it is not in


def value_at(image: object, path: Path[Any, Any]) -> object:
    """Return the value at a path of an entity, or MISSING."""
    value: Any = getattr(image, path.attribute.name)
    for step in path.steps:
        if value is MISSING or value is None:
            return MISSING
        value = getattr(value, step.name) if isinstance(step, Attribute) else value.get(step, MISSING)
    return value


def renderer(template: Template[*tuple[Any, ...]]) -> Render:
    """Return what renders a template for an entity; None if one of its attributes is missing."""
    pattern = SEPARATOR.join(each if isinstance(each, str) else "%" for each in template.components)  # no constant has a %
    start, *constants = pattern.split("%")
    render: Render | None = None
    for part, behind in zip(template.parts, constants, strict=True):
        render = _first(start, part, behind) if render is None else _next(render, part, behind)
    return render or (lambda entity: start)


def slots_renderer(slots: Sequence[list[Index[Any, Any]]]) -> RenderKeys:
    """Return what renders both halves of the key of an entity in each index of the table."""
    if not slots:
        return no_keys
    render = _slot_renderer(slots[0])
    for indexes in slots[1:]:
        render = _both(render, _slot_renderer(indexes))
    return render


def _slot_renderer(indexes: list[Index[Any, Any]]) -> RenderKeys:
    """Return what renders the key of an entity in an index of the table, which these indexes of the entity share."""
    render: RenderKeys = _nowhere
    for index in reversed(indexes):
        render = _choice(predicate(index.when), renderer(index.pk), renderer(index.sk), render)
    return render


def predicate(condition: Condition[Any] | None) -> Test:
    """Return what tells whether a condition holds for an entity: `Condition.evaluate` for when all is known."""
    if condition is None:
        return lambda entity: True
    if isinstance(condition, Leaf):
        return _leaf_predicate(_getter(condition.path), condition)
    if isinstance(condition, Not):
        test = predicate(condition.part)
        return lambda entity: not test(entity)
    if isinstance(condition, And | Or):
        tests, combine = [predicate(part) for part in condition.parts], all if isinstance(condition, And) else any
        return lambda entity: combine(test(entity) for test in tests)
    return lambda entity: bool(condition.evaluate(lambda path: value_at(entity, path)))


def no_keys(entity: object) -> tuple[()]:
    return ()


def _nowhere(entity: object) -> tuple[None, None]:
    return NOWHERE


def _both(one: RenderKeys, other: RenderKeys) -> RenderKeys:
    return lambda entity: one(entity) + other(entity)


def _leaf_predicate(get: Callable[[object], object], leaf: Leaf) -> Test:
    holds_for = leaf.holds_for
    if not isinstance(leaf, Compare) or leaf.operator != "=" or type(leaf.value) is not str:
        return lambda entity: holds_for(get(entity))
    text = leaf.value

    def is_text(entity: object) -> bool:
        found = get(entity)
        return found == text if type(found) is str else holds_for(found)

    return is_text


def _choice(test: Test, render_pk: Render, render_sk: Render, otherwise: RenderKeys) -> RenderKeys:
    def render(entity: object) -> tuple[str | None, ...]:
        if test(entity):
            pk, sk = render_pk(entity), render_sk(entity)
            if pk is not None and sk is not None:
                return pk, sk
        return otherwise(entity)

    return render


def _first(before: str, part: KeyPart, behind: str) -> Render:
    get, encode = _getter(part.path), part.encode

    def render(entity: object) -> str | None:
        value = get(entity)
        return None if value is MISSING else f"{before}{encode(value)}{behind}"

    return render


def _next(render_before: Render, part: KeyPart, behind: str) -> Render:
    get, encode = _getter(part.path), part.encode

    def render(entity: object) -> str | None:
        before, value = render_before(entity), get(entity)
        return None if before is None or value is MISSING else f"{before}{encode(value)}{behind}"

    return render


def _getter(path: Path[Any, Any]) -> Callable[[object], object]:
    return (lambda entity: value_at(entity, path)) if path.steps else attrgetter(path.attribute.name)
