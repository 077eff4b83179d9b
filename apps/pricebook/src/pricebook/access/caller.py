"""Who calls: the roles and the stores of a token."""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

from pricebook.errors import LacksRole, NotFound

Role = Literal["read", "edit", "approve"]
ROLES: tuple[Role, ...] = get_args(Role)


class Caller(Struct, frozen=True):
    """Whoever acts. `id` is the actor of the audit; `stores` are prefixes of store ids, and the empty one is all stores."""

    id: str
    roles: frozenset[Role]
    stores: tuple[str, ...] = ("",)

    @property
    def has_all_stores(self) -> bool:
        return "" in self.stores

    def may_see(self, store: str) -> bool:
        return store.startswith(self.stores)

    def require(self, role: Role) -> None:
        if role not in self.roles:
            raise LacksRole(role)

    def require_store(self, store: str) -> None:
        """Refuse a store of somebody else as if it did not exist."""
        if not self.may_see(store):
            raise NotFound("store")
