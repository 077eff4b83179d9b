"""Until everything imports from `slothpost.activity`: the values under their earlier names."""

from __future__ import annotations

import msgspec

from slothpost.activity.event import Event
from slothpost.activity.happening import (
    POLL,
    ActivityId,
    AppVersion,
    Commit,
    Deployment,
    Happening,
    News,
    PullRequest,
    Release,
    Stars,
)

__all__ = [
    "POLL",
    "ActivityId",
    "AppVersion",
    "Commit",
    "Deployment",
    "Event",
    "Happening",
    "News",
    "PullRequest",
    "Reading",
    "Release",
    "Stars",
]


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """A verified delivery that was read: it has happenings, or a reason why nothing of it is news, or it is a ping."""

    delivery: str = ""
    event: str = ""
    subject: str | None = None
    happenings: tuple[Happening, ...] = ()
    ignored: str = ""
    is_ping: bool = False
    owner: str | None = None  # Vercel's id of the team or the user
    name: str = ""  # of the project, for people
