"""Values of the API as JSON Schema, in the form that client generators understand.

Defaults stand in descriptions. As `default` they would do harm: openapi-typescript takes a field that has one for required, and
openapi-python-client sends it with every request, so that clients would keep the defaults of the day they were generated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import inspect

REFERENCE = "#/components/schemas/{name}"


def schemas_of(sent: Iterable[type], answered: Iterable[type]) -> dict[str, Any]:
    """By name. What is answered is there with all its fields, unless its type leaves out what is at its default."""
    sent, answered = [*sent], [*answered]
    _, components = msgspec.json.schema_components([*answered, *sent], ref_template=REFERENCE)
    for struct in _structs(answered):
        if not struct.cls.__struct_config__.omit_defaults:
            required = components[struct.cls.__name__].setdefault("required", [])  # a tag is, which is none of the fields
            required += [field.encode_name for field in struct.fields if not field.required and _is_there(field)]
    for schema in components.values():
        for field in schema.get("properties", {}).values():
            field.pop("default", None)
    return components


def _structs(types: Iterable[type]) -> Iterator[inspect.StructType]:
    seen: set[type] = set()
    waiting: list[Any] = list(inspect.multi_type_info(types))
    while waiting:
        info = waiting.pop()
        if isinstance(info, inspect.StructType):
            if info.cls in seen:
                continue
            seen.add(info.cls)
            yield info
            waiting += [field.type for field in info.fields]
        waiting += getattr(info, "types", ())
        waiting += getattr(info, "item_types", ())
        waiting += [getattr(info, name) for name in ("type", "item_type", "value_type") if hasattr(info, name)]


def _is_there(field: inspect.Field) -> bool:
    """Whether a field that need not be given has a value all the same: one that may be unset has no default here."""
    return field.default is not msgspec.NODEFAULT or field.default_factory is not msgspec.NODEFAULT
