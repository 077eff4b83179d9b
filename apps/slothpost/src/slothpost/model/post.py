"""A post from its draft to the network, with every step it took."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from slothpost.model.channel import ChannelName
from slothpost.model.table import slothpost
from tickler.table import MISSING, Attr, Entity, Index, Key, Missing, Part, attr

PostState = Literal["drafted", "approved", "publishing", "published", "unconfirmed", "missed", "failed", "skipped"]


class Transition(Part):
    """A step of a post: when, to which state, by whom, and why."""

    at: Attr[datetime]
    state: Attr[PostState]
    by: Attr[str]  # a user's name, or slothpost
    note: Attr[str] = attr(default="")


class Post(Entity, table=slothpost):
    """It is in `review` only while somebody has to look at it, and in `waiting` only while it has a schedule.

    `slot_at` is when it is planned to go out, and `due_at` when it may: later, if the network asked to wait.
    `mark` names the attempt that is publishing it: set before the network is called, and compared when the outcome is known.
    """

    user: Attr[str] = attr()
    id: Attr[str] = attr()
    product: Attr[str] = attr()
    channel: Attr[ChannelName] = attr()
    state: Attr[PostState] = attr()
    text: Attr[str]
    slot_at: Attr[datetime] = attr()
    due_at: Attr[datetime]
    snoozed_until: Attr[datetime | Missing] = attr(default=MISSING)
    activities: Attr[list[str]] = attr(default=[])  # what it tells of
    offered: Attr[list[str]] = attr(default=[])  # what it could have been written from, or may be when it is written anew
    drafter: Attr[str] = attr(default="you")  # template, anthropic, openai, or you
    drafter_note: Attr[str] = attr(default="")  # why the template drafter stepped in
    angle: Attr[str] = attr(default="")  # which template was used, so that the next post takes another
    held: Attr[str] = attr(default="")  # why an approved or undecided post waits
    mark: Attr[str | Missing] = attr(default=MISSING)
    container: Attr[str | Missing] = attr(default=MISSING)  # Threads: created, and not published yet
    container_account: Attr[str | Missing] = attr(default=MISSING)  # whose it is
    remote_id: Attr[str | Missing] = attr(default=MISSING)
    url: Attr[str | Missing] = attr(default=MISSING)
    evidence: Attr[str] = attr(default="")  # what is known of an attempt whose outcome is not
    history: Attr[list[Transition]] = attr(default=[])
    version: Attr[int] = attr(version=True)

    key = Key("USER" / user, "POST" / id)
    review = Index(
        "gsi1",
        "REVIEW" / user,
        slot_at / id,
        when=state.one_of(("drafted", "unconfirmed", "missed", "failed")) & snoozed_until.missing(),
    )
    by_slot = Index("gsi2", "POSTS" / user, slot_at / id)
    of_channel = Index("gsi3", "POSTS" / product / channel, slot_at / id)
    waiting = Index("gsi4", "WAITING" / user, slot_at / id, when=state.one_of(("drafted", "approved")))
