"""How a consumer works."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Literal, TypedDict

import msgspec

from tickler.errors import InvalidInput

MIN_TIMEOUT = timedelta(milliseconds=1)
MIN_LEASE = timedelta(milliseconds=100)  # it is renewed three times in that, over a network


class ConsumerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`start`: whether a new consumer begins with the oldest change that is kept, or with those from now on.

    `concurrency` bounds the handlers that run at a time in one process. A handler has `timeout`, unless it is a plain function,
    which cannot be interrupted. After `attempts` failures a change is parked; once `max_parked` are, the consumer stops at the
    next one that fails, and tries it again and again. A process that is silent for `lease` loses its shards to others.
    """

    name: str
    start: Literal["oldest", "now"] = "oldest"
    concurrency: int = 16
    attempts: int = 5
    timeout: timedelta = timedelta(seconds=60)
    max_parked: int = 1_000
    lease: timedelta = timedelta(seconds=30)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", self.name):
            raise InvalidInput(f"consumer {self.name!r}: use letters, digits, _, . and -, 64 at most")
        if self.start not in ("oldest", "now"):
            raise InvalidInput(f"consumer {self.name!r}: start is {self.start!r}: use 'oldest' or 'now'")
        for field, least in (("concurrency", 1), ("attempts", 1), ("max_parked", 0)):
            if getattr(self, field) < least:
                raise InvalidInput(f"consumer {self.name!r}: {field} is {getattr(self, field)}: use {least} or more")
        for field, shortest in (("timeout", MIN_TIMEOUT), ("lease", MIN_LEASE)):
            if getattr(self, field) < shortest:
                raise InvalidInput(f"consumer {self.name!r}: {field} is {getattr(self, field)}: use at least {shortest}")

    @property
    def lease_ms(self) -> int:
        return self.lease // timedelta(milliseconds=1)


class Options(TypedDict, total=False):
    """The same without the name, as `OpenTable.consumer` takes them."""

    start: Literal["oldest", "now"]
    concurrency: int
    attempts: int
    timeout: timedelta
    max_parked: int
    lease: timedelta
