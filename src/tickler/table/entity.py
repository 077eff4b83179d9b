"""Entities and parts: annotated classes that become frozen msgspec structs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, dataclass_transform, get_args

import msgspec
import msgspec.structs

from tickler.errors import InvalidInput
from tickler.table.attribute import Attr, Path, attr
from tickler.table.attribute_type import decoded_type
from tickler.table.declaration import MISSING, Attribute
from tickler.table.path_type import can_be_missing, check_value, set_type

if TYPE_CHECKING:
    from tickler.table.definition import TableDefinition

_OPTIONS: Any = {"frozen": True, "kw_only": True, "forbid_unknown_fields": True}


class _FieldsMeta(msgspec.StructMeta):
    """Turns `name: Attr[T] = attr(…)` into a field of type T, and answers `Class.name` with a path."""

    __paths__: Mapping[str, Path[Any, Any]]

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], *, base: bool = False, **options: Any
    ) -> _FieldsMeta:
        if base:
            return super().__new__(mcs, name, bases, {**namespace, "__paths__": {}}, **_OPTIONS)
        _refuse_inheritance(name, bases)
        frame = sys._getframe(1)
        while frame.f_code.co_name == "__new__" and frame.f_back is not None:
            frame = frame.f_back
        scope = {**frame.f_globals, **frame.f_locals}
        annotations = {key: _kind(name, key, each, scope) for key, each in namespace.get("__annotations__", {}).items()}
        paths = {key: _declared(name, key, namespace) for key in annotations}
        _refuse_unannotated(name, namespace, paths)
        decoded = {key: decoded_type(f"{name}.{key}", each) for key, each in annotations.items()}
        fields = {key: each for key, each in namespace.items() if key not in paths}
        defaults = {key: _default(path) for key, path in paths.items() if path.attribute.default is not msgspec.NODEFAULT}
        made = super().__new__(
            mcs, name, bases, {**fields, **defaults, "__annotations__": decoded, "__paths__": paths}, **_OPTIONS
        )
        for key, path in paths.items():
            path.attribute.name = key
            path.attribute.entity = made
            path.attribute.type = annotations[key]
            _check_default(path)
        return made

    def __getattribute__(cls, name: str) -> Any:  # noqa: N805  # of a class
        paths = super().__getattribute__("__paths__")
        return paths[name] if name in paths else super().__getattribute__(name)


class _EntityMeta(_FieldsMeta):
    def __new__(
        mcs,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        table: TableDefinition | None = None,
        stored_as: str | None = None,
        base: bool = False,
    ) -> _EntityMeta:
        made = super().__new__(mcs, name, bases, {**namespace, "__entity__": True}, base=base)
        if not base:
            if table is None:
                raise InvalidInput(f"{name}: name the table of this entity: class {name}(Entity, table=…)")
            table.add(made, stored_as or name)
        return made  # type: ignore[return-value]  # `__new__` of the metaclass makes one of `mcs`


def _kind(owner: str, name: str, annotation: object, scope: dict[str, Any]) -> object:
    """Return T of `Attr[T]`."""
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, scope)  # noqa: S307  # the class's own annotation, as typing.get_type_hints does
        except NameError as error:
            raise InvalidInput(f"{owner}.{name}: {error}: import it, or define it above the class") from None
    if Attr not in getattr(annotation, "__metadata__", ()):
        raise InvalidInput(f"{owner}.{name}: declare attributes as `{name}: Attr[…]`")
    kind, *more = get_args(annotation)
    others = [each for each in more if each is not Attr]
    return Annotated[(kind, *others)] if others else kind


def _refuse_inheritance(name: str, bases: tuple[type, ...]) -> None:
    if len(bases) != 1 or getattr(bases[0], "__paths__", None) != {} or bases[0].__bases__ != (msgspec.Struct,):
        shown = ", ".join(base.__name__ for base in bases)
        raise InvalidInput(
            f"{name}({shown}): its only base can be Entity or Part, so that an item is of one class: put what classes share "
            "into a Part"
        )


def _refuse_unannotated(owner: str, namespace: Mapping[str, Any], paths: Mapping[str, Path[Any, Any]]) -> None:
    for name, found in namespace.items():
        if isinstance(found, Path) and name not in paths:
            raise InvalidInput(f"{owner}.{name} has no type: write `{name}: Attr[…] = attr()`")


def _default(path: Path[Any, Any]) -> Any:
    """Return a default as msgspec takes it: a copy for each item of what could be changed."""
    default = path.attribute.default
    return msgspec.field(default_factory=lambda: copy(default)) if isinstance(default, list | dict | set) else default


def _check_default(path: Path[Any, Any]) -> None:
    default = path.attribute.default
    if default is MISSING and not can_be_missing(path):
        raise InvalidInput(f"{path!r} has default=MISSING: declare it as `| Missing`")
    if default is not MISSING and can_be_missing(path):  # an item without it would be read back with the default, or not at all
        raise InvalidInput(f"{path!r} can be missing: write `= attr(default=MISSING)`")
    if set_type(path) and default not in (MISSING, msgspec.NODEFAULT, set(), frozenset()):
        raise InvalidInput(f"{path!r}: an item without it would be read with this default: use default=set()")
    if default not in (MISSING, msgspec.NODEFAULT):
        check_value(path, default)


def _declared(owner: str, name: str, namespace: Mapping[str, Any]) -> Path[Any, Any]:
    if name not in namespace:
        return Path(Attribute())
    found = namespace[name]
    if not isinstance(found, Path):
        raise InvalidInput(f"{owner}.{name} = {found!r}: write `= attr(default={found!r})`")
    return found


if TYPE_CHECKING:
    # Checkers must not see msgspec's own dataclass_transform.
    @dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(attr,))
    class Part:
        """A part of an item with fields of its own: a map in the item. Declare its fields as those of an entity."""

    @dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(attr,))
    class Entity:
        """A kind of items in a table. Instances are frozen: change an item with `update`, or put a changed copy."""

        def __init_subclass__(cls, *, table: TableDefinition, stored_as: str = ...) -> None: ...

else:

    class Part(msgspec.Struct, metaclass=_FieldsMeta, base=True):
        """A part of an item with fields of its own: a map in the item. Declare its fields as those of an entity."""

    class Entity(msgspec.Struct, metaclass=_EntityMeta, base=True):
        """A kind of items in a table. Instances are frozen: change an item with `update`, or put a changed copy."""


P = TypeVar("P", bound=Entity | Part)


def evolve(item: P, **attributes: object) -> P:
    """Return a copy of an entity or a part with other values of these attributes, to be put."""
    unknown = attributes.keys() - type(item).__paths__.keys()  # type: ignore[attr-defined]  # what the metaclass sets
    if unknown:
        raise InvalidInput(f"{type(item).__name__} has no {', '.join(sorted(unknown))}: evolve changes declared attributes")
    return msgspec.structs.replace(item, **attributes)  # type: ignore[type-var]  # a struct, which checkers must not see
