"""What a class declares of an attribute."""

from __future__ import annotations

import msgspec

# An attribute that is MISSING is absent from the item: not None, not False, absent.
Missing = msgspec.UnsetType
MISSING = msgspec.UNSET


class Role(msgspec.Struct, frozen=True):
    """What the toolkit does with an attribute beyond storing it."""

    version: bool = False
    expires: bool = False
    deleted: bool = False


class Attribute:
    """A declared attribute. `name` and `entity` are known once its class is complete."""

    def __init__(self, *, default: object = msgspec.NODEFAULT, role: Role = Role()) -> None:  # noqa: B008  # frozen
        self.default = default
        self.role = role
        self.name = ""
        self.entity: type | None = None
        self.type: object = object

    def __repr__(self) -> str:
        return f"{self.entity.__name__}.{self.name}" if self.entity else "an attribute"
