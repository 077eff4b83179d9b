"""Which schedules a post has in each state, as a pure function."""

from __future__ import annotations

from datetime import datetime, timedelta

from slothpost.identifiers import DECIDE, PUBLISH, decide_key, publish_key
from slothpost.model import Post
from tickler import At, Policy, PythonTarget, Schedule
from tickler.table import MISSING

SOON = timedelta(seconds=1)  # a schedule needs an instant that is still to come
PUBLISH_TIMEOUT_S = 120

# A published post is never sent twice, so a fire may be tried again. What the network says is handled by the publisher; what is
# left are failures of the store.
_PUBLISH = Policy(attempts=20, backoff=[5, 30, 120, 600], timeout=PUBLISH_TIMEOUT_S)
_DECIDE = Policy(attempts=20, backoff=[5, 60, 600])


def schedules_of(post: Post, now: datetime, *, is_held: bool) -> dict[str, Schedule]:
    """Return the schedules of a post by key: `decide` while it is drafted, `publish` while it is approved.

    They are paused while the post is held.
    """
    if post.state == "drafted":
        at = post.slot_at if post.snoozed_until is MISSING else min(post.snoozed_until, post.slot_at)
        if at <= now and post.held:
            return {}  # the user was told, and decides
        return _one(post, decide_key(post.id, at), max(at, now + SOON), DECIDE, _DECIDE, enabled=not is_held)
    if post.state == "approved":
        return _one(post, publish_key(post.id), max(post.due_at, now + SOON), PUBLISH, _PUBLISH, enabled=not is_held)
    return {}


def _one(post: Post, key: str, at: datetime, handler: str, policy: Policy, *, enabled: bool) -> dict[str, Schedule]:
    payload = {"user": post.user, "post": post.id}
    target = PythonTarget(handler)
    return {key: Schedule(owner=post.user, key=key, when=At(at), target=target, payload=payload, policy=policy, enabled=enabled)}
