"""The states of a post, as pure functions from a post to the next one.

```
drafted ──approve──▶ approved ──due──▶ publishing ──▶ published
   │  ▲                │  ▲ ▲              ├──▶ unconfirmed   the network may have it: a person decides
   │  └──un-approve────┘  │ └──limited─────┤
   └─reject▶ skipped      │                └──▶ failed        the network refused it
                          └── missed ◀── found too late
```
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from slothpost.errors import NotAllowed
from slothpost.model import Post, PostState, Transition
from tickler.table import MISSING, evolve

MAX_TRANSITIONS = 100
FIRST_TRANSITIONS = 10  # which stay when there are more: who drafted and approved it

NEXT_STATES: Mapping[PostState, frozenset[PostState]] = {
    "drafted": frozenset({"approved", "skipped"}),
    "approved": frozenset({"drafted", "publishing", "missed", "failed", "skipped"}),
    "publishing": frozenset({"published", "unconfirmed", "approved", "failed"}),
    "unconfirmed": frozenset({"published", "approved", "skipped"}),
    "missed": frozenset({"approved", "drafted", "skipped"}),
    "failed": frozenset({"approved", "drafted", "skipped"}),
    "skipped": frozenset({"drafted"}),
    "published": frozenset(),
}


def step(post: Post, state: PostState, *, at: datetime, by: str, note: str = "") -> Post:
    """Return the post in its next state, with the step in its history; `NotAllowed` if it cannot get there."""
    if state not in NEXT_STATES[post.state]:
        raise NotAllowed(f"this post is {post.state}, and cannot become {state}: reload the page")
    return noted(evolve(post, state=state, held=""), at=at, by=by, note=note)


def noted(post: Post, *, at: datetime, by: str, note: str) -> Post:
    """Return the post with an entry in its history, in the state that it has."""
    history = [*post.history, Transition(at=at, state=post.state, by=by, note=note)]
    if len(history) > MAX_TRANSITIONS:
        del history[FIRST_TRANSITIONS]
    return evolve(post, history=history)


def begin(post: Post, mark: str, *, at: datetime) -> Post:
    """Mark the post as being published by one attempt. Whoever writes this first may call the network."""
    return evolve(step(post, "publishing", at=at, by="slothpost"), mark=mark, evidence="")


def publish(post: Post, remote_id: str, url: str, *, at: datetime, by: str = "slothpost", note: str = "") -> Post:
    return evolve(step(post, "published", at=at, by=by, note=note), remote_id=remote_id, url=url, evidence="", mark=MISSING)


def leave_unconfirmed(post: Post, evidence: str, *, at: datetime) -> Post:
    """Keep the mark: the attempt may still report its success."""
    return evolve(step(post, "unconfirmed", at=at, by="slothpost", note=evidence), evidence=evidence)


def postpone(post: Post, until: datetime, reason: str, *, at: datetime) -> Post:
    """Give the post back: the network has not taken it, and may at `until`."""
    returned = post if post.state == "approved" else step(post, "approved", at=at, by="slothpost", note=reason)
    return evolve(returned, due_at=until, held=reason, mark=MISSING)


def is_late(post: Post, now: datetime, grace: timedelta) -> bool:
    """Return whether it is too late to publish a post without asking."""
    return now > post.due_at + grace


def with_text(post: Post, text: str) -> Post:
    """Return the post with another text. A container with the old one must not be published any more."""
    return post if post.text == text else evolve(post, text=text, container=MISSING)


def at_slot(post: Post, slot_at: datetime) -> Post:
    """Return the post at another slot. What an earlier attempt left is forgotten, but for a container that may be used."""
    return evolve(post, slot_at=slot_at, due_at=slot_at, snoozed_until=MISSING, held="", mark=MISSING, evidence="")
