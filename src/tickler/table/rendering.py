"""Functions that render the keys of whole entities, made once for each entity: `Template.render` for when all is known."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from tickler.table.declaration import MISSING, Attribute
from tickler.table.key_codec import SEPARATOR
from tickler.table.template import KeyPart, Template

if TYPE_CHECKING:
    from tickler.table.attribute import Path
    from tickler.table.key import Index, KeyPair

Render = Callable[[object], str | None]

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


def slot_renderer(indexes: list[Index[Any, Any]]) -> Callable[[object], KeyPair | tuple[None, None]]:
    """Return what renders the key of an entity in an index of the table, which these indexes of the entity share."""
    choices = [(index.when, renderer(index.pk), renderer(index.sk)) for index in indexes]

    def render(entity: object) -> KeyPair | tuple[None, None]:
        for when, render_pk, render_sk in choices:
            if when is not None and not when.evaluate(lambda path: value_at(entity, path)):
                continue
            pk, sk = render_pk(entity), render_sk(entity)
            if pk is not None and sk is not None:
                return pk, sk
        return NOWHERE

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
