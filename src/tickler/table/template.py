"""Templates of keys: constants and attributes, joined by `#`. `"ORDER" / placed_at / id` gives `ORDER#2024-03-15T00:00:00#o1`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar, TypeVarTuple, overload

import msgspec

from tickler.errors import InvalidInput
from tickler.table.condition import UNKNOWN, Lookup, Unknown
from tickler.table.key_codec import SEPARATOR, PartCodec, codec_for, join

if TYPE_CHECKING:
    from tickler.table.attribute import Attr, Path
    from tickler.table.declaration import Attribute, Missing

Us = TypeVarTuple("Us")
Ts = TypeVarTuple("Ts")
V = TypeVar("V")

_RESERVED = "$%"  # what values escape, and the bound of ranges


class KeyPart:
    """An attribute as a component of a key. Its codec is known once the entity is."""

    def __init__(self, path: Path[Any, Any], *, descending: bool = False) -> None:
        self.path = path
        self.descending = descending
        self.codec: PartCodec[Any] = codec_for(str)
        self._is_text = True

    def bind(self, kind: type) -> None:
        self._is_text = kind is str
        self.codec = codec_for(kind, descending=self.descending)

    def encode(self, value: object) -> str:
        if type(value) is str and self._is_text and value.isalnum():  # the commonest, and nothing to escape
            return value
        codec = self.codec
        if type(value) is not codec.kind and isinstance(value, Enum):
            value = value.value
        try:
            return codec.encode(value)
        except InvalidInput as error:
            raise InvalidInput(f"{self.path!r} is part of a key: {error}") from None

    def __repr__(self) -> str:
        return f"{self.path!r}{'.descending()' if self.descending else ''}"

    if not TYPE_CHECKING:  # checkers see an `Attr`

        def __rtruediv__(self, constant):
            return Template.of(constant) / self

        def __truediv__(self, other):
            return Template.of(self) / other


class Template(Generic[*Ts]):
    """Renders values into a key. Type parameters are the types of its attributes, in order."""

    def __init__(self, components: Sequence[str | KeyPart]) -> None:
        self.components = tuple(components)
        self.parts = [component for component in components if isinstance(component, KeyPart)]

    @classmethod
    def of(cls, given: object) -> Template[*tuple[Any, ...]]:
        """Make a template of a constant, an attribute, or a template."""
        if isinstance(given, Template):
            return given
        if isinstance(given, str):
            return Template(_constants(given))
        return Template([given if isinstance(given, KeyPart) else KeyPart(_path(given))])

    if TYPE_CHECKING:

        @overload
        def __truediv__(self, other: str) -> Template[*Ts]: ...
        @overload
        def __truediv__(self: Template[*Us], other: Attr[V | Missing]) -> Template[*Us, V]: ...
        @overload
        def __truediv__(self: Template[*Us], other: Attr[V]) -> Template[*Us, V]: ...
        def __truediv__(self, other: Any) -> Any: ...
    else:

        def __truediv__(self, other):
            return Template([*self.components, *Template.of(other).components])

    def check(self, what: str) -> None:
        """Raise `InvalidInput` unless every key that this renders is unambiguous."""
        *inner, _ = self.components
        if "" in inner or self.components == ("",):
            raise InvalidInput(f"{what}: only the last of several constants may be empty")

    def render(self, lookup: Lookup) -> str | Unknown | None:
        """Return the key of an item; None if one of its attributes is missing, UNKNOWN if one is not known."""
        texts: list[str] = []
        unknown = False
        for component in self.components:
            if isinstance(component, str):
                texts.append(component)
                continue
            value = lookup(component.path)
            if value is UNKNOWN:
                unknown = True
            elif value is msgspec.UNSET:
                return None
            elif not unknown:
                texts.append(component.encode(value))
        return UNKNOWN if unknown else SEPARATOR.join(texts)

    def fill(self, values: Sequence[object]) -> str:
        """Return the key for values of all its attributes, in order."""
        if len(values) != len(self.parts):
            names = ", ".join(part.path.attribute.name for part in self.parts)
            raise InvalidInput(f"the key {self!r} takes {len(self.parts)} values ({names}), not {len(values)}")
        left = iter(values)
        return join([component if isinstance(component, str) else component.encode(next(left)) for component in self.components])

    def prefix(self, values: Sequence[object]) -> str | None:
        """Return what all keys with these first values begin with, without a separator behind it; None if that is nothing."""
        left = list(values)
        texts: list[str] = []
        for component in self.components:
            if isinstance(component, str):
                texts.append(component)
            elif left:
                texts.append(component.encode(left.pop(0)))
            else:
                break
        return join(texts) if texts else None

    def parse(self, key: str) -> list[object]:
        """Return the values of a key that `fill` made."""
        texts = key.split(SEPARATOR)
        if len(texts) != len(self.components):
            raise InvalidInput(f"{key!r} is not a key of the form {self!r}")
        values: list[object] = []
        for text, component in zip(texts, self.components, strict=True):
            if isinstance(component, KeyPart):
                values.append(component.codec.decode(text))
            elif text != component:
                raise InvalidInput(f"{key!r} is not a key of the form {self!r}")
        return values

    def attributes(self) -> Iterator[Attribute]:
        return (part.path.attribute for part in self.parts)

    def __repr__(self) -> str:
        return " / ".join(map(repr, self.components))


def disjoint(one: Template[*tuple[Any, ...]], other: Template[*tuple[Any, ...]]) -> bool:
    """Tell whether no key can be rendered by both templates."""
    if len(one.components) != len(other.components):
        return True
    return any(_differ(a, b) for a, b in zip(one.components, other.components, strict=True))


def _differ(one: str | KeyPart, other: str | KeyPart) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return one != other
    if isinstance(one, str) and isinstance(other, KeyPart):
        return not _can_be(other, one)
    if isinstance(other, str) and isinstance(one, KeyPart):
        return not _can_be(one, other)
    return False


def _can_be(part: KeyPart, text: str) -> bool:
    try:
        part.codec.decode(text)
    except InvalidInput:
        return False
    return True


def _constants(text: str) -> list[str]:
    if any(character in text for character in _RESERVED):
        raise InvalidInput(f"the constant {text!r} of a key has $ or %, which are reserved: leave them out")
    return text.split(SEPARATOR)


def _path(given: Any) -> Path[Any, Any]:
    if not hasattr(given, "attribute"):
        raise InvalidInput(
            f"{given!r} cannot be part of a key: use a text, or an attribute of the class, declared as `name: Attr[…] = attr()`"
        )
    path: Path[Any, Any] = given
    return path
