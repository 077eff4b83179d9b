"""What a source says that happened, in the few fields that are used."""

from __future__ import annotations

from datetime import datetime
from typing import NewType

import msgspec

POLL = "poll"  # stands for the delivery where a poll found what no webhook delivered

ActivityId = NewType("ActivityId", str)


class Commit(msgspec.Struct, frozen=True, tag="commit"):
    message: str


class PullRequest(msgspec.Struct, frozen=True, tag="pull_request"):
    title: str
    body: str = ""
    labels: tuple[str, ...] = ()


class Release(msgspec.Struct, frozen=True, tag="release"):
    name: str
    version: str  # the name of its tag
    notes: str = ""
    is_prerelease: bool = False


class Deployment(msgspec.Struct, frozen=True, tag="deployment"):
    message: str | None  # of the commit that was deployed, if Vercel knows it


class AppVersion(msgspec.Struct, frozen=True, tag="app_version"):
    version: str  # empty if the source does not name it
    state: str  # as Apple writes it, such as READY_FOR_DISTRIBUTION
    notes: str = ""


class Stars(msgspec.Struct, frozen=True, tag="stars"):
    count: int


News = Commit | PullRequest | Release | Deployment | AppVersion | Stars


class Happening(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that happened, not classified yet. Its `id` is the same from every source that reports it.

    `is_private` None: the source does not say whether `repository`, the id of a repository at GitHub, is private.
    """

    id: ActivityId
    event: str  # such as push, pull_request, release, deployment.promoted
    news: News
    at: datetime | None = None  # None: the time at which it is taken in
    url: str | None = None
    is_private: bool | None = False
    repository: str | None = None
    repository_name: str = ""  # owner/name, which drafts must not have if it is private
