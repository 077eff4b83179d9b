"""What a verified delivery says, before it is known which product it belongs to."""

from __future__ import annotations

import msgspec

from slothpost.activity.happening import Happening


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """A verified delivery that was read: it has happenings, or a reason why nothing of it is news, or it is a ping."""

    delivery: str = ""
    event: str = ""
    subject: str | None = None  # the id of its repository, project or app at the source
    happenings: tuple[Happening, ...] = ()
    ignored: str = ""
    is_ping: bool = False
    owner: str | None = None  # Vercel's id of the team, or of the user if there is no team
    name: str = ""  # of the project, for people
