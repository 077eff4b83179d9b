"""Which stores a process acts for, and what its schedules call."""

from __future__ import annotations

import re
from datetime import timedelta

from msgspec import Struct

from pricebook.editions.timing import Timing
from pricebook.errors import InvalidField
from pricebook.identifiers import SETTLE
from pricebook.model import Head
from tickler import HttpTarget, PythonTarget, Target

_REGION = re.compile(r"[A-Za-z0-9-]{0,40}")


class SettlingOptions(Struct, frozen=True, kw_only=True):
    """`region` is where this process runs, if the table is replicated: it acts for the stores whose home that is, and no others.

    Stores without a home are those of processes without a region. With `url`, schedules call that address, which is `/settle` of
    any process; else a handler of a worker. `secrets` are those that `/settle` accepts; the first one signs. Schedules that are
    due at the same instant are spread over `spread`: prices do not wait for them, only events do.
    """

    region: str = ""
    url: str | None = None
    secrets: tuple[str, ...] = ()
    spread: timedelta = timedelta(seconds=20)
    timing: Timing = Timing()

    def __post_init__(self) -> None:
        check_region(self.region)
        if self.url is not None and not self.secrets:
            raise InvalidField("secrets", "is missing, and /settle takes only what is signed: make one with tickler.new_secret()")

    @property
    def target(self) -> Target:
        return PythonTarget(SETTLE) if self.url is None else HttpTarget(self.url, secret=self.secrets[0])

    @property
    def consumer(self) -> str:
        """The name of the consumer: each region has its own, because positions are replicated with the table."""
        return f"settling.{self.region}" if self.region else "settling"

    @property
    def late_after(self) -> timedelta:
        """How long after its instant an edition is late. Until then its schedule may be still to come."""
        return 2 * self.timing.buffer + self.spread

    def acts_for(self, head: Head) -> bool:
        return head.home == self.region


def check_region(region: str) -> None:
    if not _REGION.fullmatch(region):
        raise InvalidField("region", f"{region[:50]!r} is not a region: use letters, digits and -, such as eu-west-1")
