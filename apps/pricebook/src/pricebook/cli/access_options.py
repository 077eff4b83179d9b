"""Roles and stores as options of commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from pricebook.access.caller import ROLES, Role
from pricebook.errors import InvalidField

Roles = Annotated[list[str] | None, typer.Option("--role", metavar="ROLE", help="read, edit or approve; may be repeated.")]
Stores = Annotated[
    list[str] | None,
    typer.Option("--stores", metavar="PREFIX", help="Beginning of store ids; may be repeated. By default all stores."),
]


def read_roles(given: Sequence[str] | None, default: Sequence[Role]) -> list[Role]:
    if not given:
        return list(default)
    if any(name not in ROLES for name in given):
        raise InvalidField("--role", f"use one or more of {', '.join(ROLES)}")
    return [role for role in ROLES if role in given]


def shown_stores(prefixes: Sequence[str]) -> str:
    return "all stores" if "" in prefixes else ", ".join(f"{prefix}…" for prefix in prefixes)
