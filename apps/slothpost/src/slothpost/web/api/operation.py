"""What an operation of the API is: a function from a call to a value, declared with its method and path.

The types of its parameters, body and answer are those that the function names, so that requests are read, answers are written and
the description is made from the same declaration.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, Literal, TypeVar, cast, get_args, get_type_hints

import msgspec

from slothpost.app import Slothpost
from slothpost.errors import NotFound
from slothpost.model import ChannelName, User

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Scope = Literal["read", "write"]

Q = TypeVar("Q")
B = TypeVar("B")
R = TypeVar("R")

_NAMES = re.compile(r"\{(\w+)\}")


class NoQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No query parameters."""


class NoBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No body, or an empty object, which some clients always send."""


class Call(msgspec.Struct, Generic[Q, B], frozen=True):
    """One request: who sends it, the names in its path, and what it says."""

    slothpost: Slothpost
    user: User
    names: Mapping[str, str]
    query: Q
    body: B

    @property
    def product(self) -> tuple[str, str]:
        """The user, and the product that the path names."""
        return self.user.id, self.names["product"]

    @property
    def channel(self) -> tuple[str, str, ChannelName]:
        """The user, and the product and its channel that the path names."""
        name = self.names["channel"]
        if name not in get_args(ChannelName):
            raise NotFound("channel")
        return *self.product, cast(ChannelName, name)

    @property
    def post(self) -> tuple[str, str]:
        """The user, and the post that the path names."""
        return self.user.id, self.names["post"]


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One method of one path. `path` is below `/api`, and written as OpenAPI does."""

    method: Method
    path: str
    status: int
    id: str
    summary: str
    run: Callable[[Call[Any, Any]], Awaitable[Any]]
    query: type[Any]
    body: type[Any]
    response: type[Any]

    @property
    def scope(self) -> Scope:
        """What a token must allow."""
        return "read" if self.method == "GET" else "write"

    @property
    def names(self) -> list[str]:
        """The names in the path."""
        return _NAMES.findall(self.path)


def operation(method: Method, path: str, *, status: int = 200) -> Callable[[Callable[[Call[Q, B]], Awaitable[R]]], Operation]:
    """Declare an operation. Its id is the function's name, and its summary the first sentence of its docstring."""

    def declare(run: Callable[[Call[Q, B]], Awaitable[R]]) -> Operation:
        hints = get_type_hints(run)
        query, body = get_args(hints["call"])
        return Operation(
            method=method,
            path=path,
            status=status,
            id=_camel_case(run.__name__),
            summary=(run.__doc__ or "").partition(".")[0],
            run=run,
            query=query,
            body=body,
            response=hints["return"],
        )

    return declare


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)
