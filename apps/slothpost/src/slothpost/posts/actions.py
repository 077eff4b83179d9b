"""What a person may do with a post in each state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from slothpost.errors import NotAllowed
from slothpost.model import Post, PostState

Action = Literal[
    "approve",
    "unapprove",
    "edit",
    "regenerate",
    "snooze",
    "reject",
    "restore",
    "post_now",
    "to_next_slot",
    "move",
    "went_out",
    "send_again",
]

_ACTIONS: Mapping[PostState, frozenset[Action]] = {
    "drafted": frozenset({"approve", "edit", "regenerate", "snooze", "reject", "post_now", "to_next_slot", "move"}),
    "approved": frozenset({"unapprove", "edit", "reject", "post_now", "to_next_slot", "move"}),
    "publishing": frozenset(),  # it cannot be held back any more
    "published": frozenset(),
    "unconfirmed": frozenset({"went_out", "send_again", "reject"}),
    "missed": frozenset({"edit", "reject", "post_now", "to_next_slot", "move"}),
    "failed": frozenset({"edit", "regenerate", "reject", "post_now", "to_next_slot", "move"}),
    "skipped": frozenset({"restore"}),
}


def actions_of(post: Post) -> frozenset[Action]:
    return _ACTIONS[post.state]


def check_action(post: Post, action: Action) -> None:
    """Raise `NotAllowed` unless the state of the post admits an action."""
    if action not in _ACTIONS[post.state]:
        raise NotAllowed(f"this post is {post.state}: reload the page to see what can be done with it")
