"""What the Threads API answers, as far as it is used."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

_ADDRESS = re.compile(r"https?://[!-~]{1,500}")

Status = Literal["EXPIRED", "ERROR", "FINISHED", "IN_PROGRESS", "PUBLISHED"]


class Id(msgspec.Struct):
    id: str


class ContainerStatus(msgspec.Struct):
    status: Status
    error_message: str = ""


class ThreadsPost(msgspec.Struct):
    id: str
    permalink: str | None = None  # left out of posts that are flagged
    text: str = ""
    timestamp: str = ""  # 2026-03-02T09:00:00+0000

    @property
    def address(self) -> str | None:
        """Where people see it; None also for what no page may link to."""
        return self.permalink if self.permalink and _ADDRESS.fullmatch(self.permalink) else None

    def is_after(self, instant: datetime) -> bool:
        """False also for a post that does not say when it was made."""
        try:
            return datetime.fromisoformat(self.timestamp) > instant
        except (TypeError, ValueError):  # no instant, or one without an offset
            return False


class ThreadsPosts(msgspec.Struct):
    data: list[ThreadsPost]


class QuotaConfig(msgspec.Struct):
    quota_total: int


class Quota(msgspec.Struct):
    quota_usage: int
    config: QuotaConfig


class Quotas(msgspec.Struct):
    data: list[Quota]


class ThreadsUser(msgspec.Struct):
    id: Annotated[str, Meta(pattern=r"^[0-9]{1,40}\Z")]
    username: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.]{1,60}\Z")]


class Token(msgspec.Struct):
    access_token: str
    expires_in: int | None = None
