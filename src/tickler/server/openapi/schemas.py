"""Makes JSON Schemas of the API's types, in a form that client generators understand.

Defaults are in descriptions. As `default` they would do harm: openapi-typescript makes such a field required, and
openapi-python-client sends it with every request, so that clients would freeze the defaults of their generation date.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import inspect

REFERENCE = "#/components/schemas/{name}"


def schemas_of(requests: Iterable[type], responses: Iterable[type]) -> dict[str, Any]:
    """Return schemas by name. A response has all its fields, unless its type omits defaults."""
    requests, responses = [*requests], [*responses]
    _, components = msgspec.json.schema_components([*responses, *requests], ref_template=REFERENCE)
    for struct in _structs(responses):
        if not struct.cls.__struct_config__.omit_defaults:
            required = components[struct.cls.__name__].setdefault("required", [])  # already has the tag, which is not a field
            for field in struct.fields:  # a field that can be UNSET has neither kind of default, and no value
                has_default = field.default is not msgspec.NODEFAULT or field.default_factory is not msgspec.NODEFAULT
                required += [field.encode_name] if has_default and not field.required else []
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
