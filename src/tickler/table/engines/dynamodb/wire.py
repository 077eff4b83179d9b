"""Decodes items from DynamoDB's wire, with one msgspec struct per entity, so that a page is parsed in C.

`{"items": {"N": "3"}}` is read as a struct with a field `N: int`, and generated code calls the entity's constructor once an item.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, NamedTuple, get_args, get_origin
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from tickler.dynamo.codec import Item, from_attribute
from tickler.table.attribute_type import alternatives_of, plain_type
from tickler.table.declaration import Attribute
from tickler.table.definition import EntityDefinition
from tickler.table.engines.dynamodb.items import ENTITY, TTL

_TAGS: dict[Any, str] = {
    str: "S",
    datetime: "S",
    date: "S",
    UUID: "S",
    int: "N",
    float: "N",
    Decimal: "N",
    bool: "BOOL",
    bytes: "B",
    type(None): "NULL",
}
_SETS = {"S": "SS", "N": "NS", "B": "BS"}


class _Form(NamedTuple):
    """How one alternative of a type is read: the tag on the wire, the type behind it, and code that converts that."""

    tag: str
    type: Any
    convert: Callable[[str], str]


class _Generator:
    """Makes wire structs, and the code that converts them."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"UNSET": UNSET, "loose": _loose}

    def name(self, value: object) -> str:
        name = f"v{len(self.names)}"
        self.names[name] = value
        return name

    def wire(self, kind: Any) -> tuple[Any, Callable[[str], str]]:
        """Return the wire type of a value, and a function from the code of a wire value to the code of the value."""
        forms: dict[str, _Form] = {}
        for alternative in alternatives(kind):
            form = self._form(alternative)
            if form is None or (form.tag in forms and form.tag != "N"):
                return self._loose(kind)
            known = forms.get(form.tag)
            forms[form.tag] = form if known is None else form._replace(type=known.type | form.type)
        if len(forms) == 1 and "NULL" not in forms:
            (only,) = forms.values()
            return _struct([(only.tag, only.type)]), lambda code: only.convert(f"{code}.{only.tag}")
        fields = [(form.tag, form.type | UnsetType, UNSET) for form in forms.values()]
        return _struct(fields), lambda code: _choice(code, list(forms.values()))

    def _form(self, kind: Any) -> _Form | None:
        kind = plain_type(kind)
        origin, args = get_origin(kind), get_args(kind)
        tag = scalar_tag(kind)
        if tag is not None:
            return _Form(tag, bool if tag == "NULL" else kind, (lambda code: "None") if tag == "NULL" else _as_it_is)
        if origin in (set, frozenset) and scalar_tag(args[0]) in _SETS:
            return _Form(_SETS[str(scalar_tag(args[0]))], kind, _as_it_is)
        if origin is list:
            return self._list(args[0])
        if origin is dict:
            return self._map(*args)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and hasattr(kind, "__paths__"):
            return self._part(kind)
        return None

    def _loose(self, kind: Any) -> tuple[Any, Callable[[str], str]]:
        """Return a wire type for what has no form of its own: slower, but msgspec converts it to any type."""
        of = self.name(kind)
        return dict[str, Any], lambda code: f"loose({code}, {of})"

    def _list(self, member: Any) -> _Form:
        wire, convert = self.wire(member)
        return _Form("L", _of(list, wire), lambda code: f"[{convert('each')} for each in {code}]")

    def _map(self, key: Any, value: Any) -> _Form:
        wire, convert = self.wire(value)
        return _Form("M", _of(dict, key, wire), lambda code: f"{{key: {convert('each')} for key, each in {code}.items()}}")

    def _part(self, kind: Any) -> _Form:
        wire, build = self.fields(kind)
        made = self.name(build)
        return _Form("M", wire, lambda code: f"{made}({code})")

    def fields(self, cls: Any, more: Sequence[Any] = ()) -> tuple[Any, Callable[[Any], Any]]:
        """Return the wire struct of a class with attributes, and the function that makes an instance of it."""
        fields: list[Any] = []
        arguments: list[str] = []
        for name, path in cls.__paths__.items():
            wire, convert = self.wire(path.attribute.type)
            default = default_of(path.attribute)
            code = convert(f"w.{name}")
            if default is msgspec.NODEFAULT:
                fields.append((name, wire))
            else:
                fields.append((name, wire | UnsetType, UNSET))
                copied = ".copy()" if isinstance(default, list | dict | set) else ""
                code = f"{self.name(default)}{copied} if w.{name} is UNSET else {code}"
            arguments.append(f"{name}={code}")
        made = self.name(cls)
        source = f"lambda w: {made}({', '.join(arguments)})"
        build = eval(source, self.names)  # noqa: S307  # names of attributes are identifiers, everything else is in `names`
        return _struct([*fields, *more], cls.__name__, only=True), build


class EntityWire:
    """Reads the items of one entity."""

    def __init__(self, definition: EntityDefinition) -> None:
        text, number, name = _struct([("S", str)]), _struct([("N", int)]), _struct([("S", Literal[definition.name])])
        own = [("pk", text), ("sk", text), (ENTITY, name), (TTL, number | UnsetType, UNSET)]
        own += [(f"{gsi}{half}", text | UnsetType, UNSET) for gsi in definition.gsis for half in ("pk", "sk")]
        self.struct, self.build = _Generator().fields(definition.cls, own)
        self.decode_item: Callable[[bytes], Any] = msgspec.json.Decoder(self.struct, strict=False).decode
        self.decode_page = _decoder([("Items", _of(list, self.struct), msgspec.field(default_factory=list))])
        self.decode_get = _decoder([("Item", self.struct | UnsetType, UNSET)])
        self.decode_write = _decoder([("Attributes", self.struct | UnsetType, UNSET)])

    def entity(self, raw: Item) -> Any:
        """Return the entity of an item that is decoded already, but not into this struct."""
        return self.build(msgspec.convert(raw, self.struct, strict=False, str_keys=True))


def default_of(attribute: Attribute) -> Any:
    """Return what an absent attribute stands for. An empty set is absent, because DynamoDB has none."""
    if attribute.default is msgspec.NODEFAULT:
        for kind in alternatives(attribute.type):
            origin = get_origin(plain_type(kind))
            if origin in (set, frozenset):
                return origin()
    return attribute.default


def alternatives(kind: Any) -> list[Any]:
    """Return the types of a union, without Missing."""
    return [each for each in alternatives_of(kind) if each is not UnsetType]


def scalar_tag(kind: Any) -> str | None:
    """Return the tag of DynamoDB for a scalar type, None for any other."""
    kind = plain_type(kind)
    if get_origin(kind) is Literal:
        tags = {_TAGS.get(type(value)) for value in get_args(kind)}
        return tags.pop() if len(tags) == 1 else None
    if isinstance(kind, type) and issubclass(kind, Enum):
        tags = {_TAGS.get(type(each.value)) for each in kind}
        return tags.pop() if len(tags) == 1 else None
    return _TAGS.get(kind)


def _as_it_is(code: str) -> str:
    return code


def _choice(code: str, forms: Sequence[_Form]) -> str:
    """Return code that converts the form that is present. A null comes first: it is the cheapest to tell."""
    *others, last = sorted(forms, key=lambda form: form.tag != "NULL")
    text = last.convert(f"{code}.{last.tag}")
    for form in reversed(others):
        text = f"({form.convert(f'{code}.{form.tag}')} if {code}.{form.tag} is not UNSET else {text})"
    return text


def _loose(attribute: Mapping[str, Any], kind: Any) -> Any:
    return msgspec.convert(_builtin(from_attribute(dict(attribute))), kind, strict=False)


def _builtin(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _builtin(each) for key, each in value.items()}
    if isinstance(value, list | Set):
        return [_builtin(each) for each in value]
    return float(value) if isinstance(value, Decimal) else value


def _of(container: Any, *members: Any) -> Any:
    """Return a container type of types that are known at run time only."""
    return container[members]


def _struct(fields: Sequence[Any], name: str = "Wire", *, only: bool = False) -> Any:
    """Make a struct. `only`: any other field is an error."""
    return msgspec.defstruct(name, fields, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=only)


def _decoder(fields: Sequence[Any]) -> Callable[[bytes], Any]:
    """Return a decoder of responses."""
    more = [("LastEvaluatedKey", dict[str, Any] | None, None), ("ConsumedCapacity", Any, None)]
    return msgspec.json.Decoder(_struct([*fields, *more], "Response"), strict=False).decode
