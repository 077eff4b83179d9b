"""Classes for the objects of an answer: msgspec writes them as JSON faster than dicts, and makes them faster, too."""

from __future__ import annotations

from functools import lru_cache

import msgspec


@lru_cache(1024)
def record_type(names: tuple[str, ...]) -> type[msgspec.Struct]:
    """Return a class whose instances become JSON objects with these names, in this order."""
    fields = [f"f{n}" for n in range(len(names))]
    return msgspec.defstruct("Record", fields, rename=dict(zip(fields, names, strict=True)), frozen=True, gc=False)
