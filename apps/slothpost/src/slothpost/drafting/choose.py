"""Chooses what one post tells of. What is not chosen waits for the next post."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

import msgspec

from slothpost.drafting.redaction import names_pattern, redacted
from slothpost.model import Activity, ActivityKind, Product
from tickler.table import MISSING

WORTH_A_POST = 40  # what one activity needs to get a post
SMALL_FOR_A_POST = 3  # so many smaller ones make a post together
MAX_TOLD = 6
STALE = timedelta(days=45)  # older than the newest by this: nobody calls it news

_VERSIONS: frozenset[ActivityKind] = frozenset({"release", "app_release"})
_CHANGES: frozenset[ActivityKind] = frozenset({"feature", "fix"})
_FIRST: frozenset[ActivityKind] = _VERSIONS | {"feature"}
_VERSION = re.compile(r"\d+(?:\.\d+)*")
_PACKAGE = re.compile(r" of (\S+)$")
_MAX_NAMED = 2


class Choice(msgspec.Struct, frozen=True):
    """The activities that a post may tell of, the most worth first, or the reason why there is none."""

    activities: tuple[Activity, ...]
    nothing: str = ""


def choose(candidates: Sequence[Activity], *, product: Product, private_names: Collection[str] = ()) -> Choice:
    """Choose what is worth telling. Candidates of worth 0 are never told; they are only counted in the reason.

    Private activity loses its link, and names and code in its texts, unless the product tells what is private.
    """
    tellable = _tellable([activity for activity in candidates if activity.worth > 0], product, private_names)
    if not tellable:
        return Choice((), _nothing(candidates))
    newest = max(activity.at for activity in tellable)
    fresh = [activity for activity in tellable if activity.at >= newest - STALE]
    ordered = sorted(fresh, key=lambda activity: _rank(activity, newest))
    if not _is_enough(ordered):
        return Choice((), _not_enough(ordered))
    return Choice((*_together(ordered), *covered(ordered)))


def covered(ordered: Sequence[Activity]) -> tuple[Activity, ...]:
    """Return what the first one tells along with itself: earlier versions, their reviews, and smaller milestones."""
    lead = ordered[0]
    if lead.kind == "milestone":
        return tuple(other for other in ordered[1:] if other.kind == "milestone")
    if lead.kind not in _VERSIONS:
        return ()
    return tuple(other for other in ordered[1:] if _is_earlier_version(other, lead))


def _tellable(candidates: Sequence[Activity], product: Product, private_names: Collection[str]) -> list[Activity]:
    if product.tells_private:
        return list(candidates)
    names = names_pattern(private_names, public=(product.name,))
    told = (redacted(activity, names) if activity.is_private else activity for activity in candidates)
    return [activity for activity in told if activity is not None]


def _rank(activity: Activity, newest: datetime) -> tuple[bool, bool, int, float, str]:
    """Features and versions come first, then what else is worth a post of its own, then small things; older ones lose worth."""
    age = (newest - activity.at).days
    return (
        activity.worth < WORTH_A_POST,
        activity.kind not in _FIRST,
        age - activity.worth,
        -activity.at.timestamp(),
        activity.id,
    )


def _is_enough(ordered: Sequence[Activity]) -> bool:
    """Return whether these make a post. What another post told, on another network or before, is worth one."""
    worthy = (
        each for each in ordered if each.worth >= WORTH_A_POST or each.x_post is not MISSING or each.threads_post is not MISSING
    )
    return any(worthy) or sum(each.kind in _CHANGES for each in ordered) >= SMALL_FOR_A_POST


def _together(ordered: Sequence[Activity]) -> tuple[Activity, ...]:
    """Return the first with what belongs into the same post: changes, and with a version only those that came before it."""
    lead = ordered[0]
    changes = [other for other in ordered[1:] if other.kind in _CHANGES]
    if lead.kind in _VERSIONS:
        return (lead, *[change for change in changes if change.at <= lead.at][: MAX_TOLD - 1])
    return (lead, *changes[: MAX_TOLD - 1]) if lead.kind in _CHANGES else (lead,)


def _is_earlier_version(other: Activity, lead: Activity) -> bool:
    if other.kind == "app_review":
        return other.at <= lead.at
    is_one = other.kind in _VERSIONS and _PACKAGE.findall(other.title) == _PACKAGE.findall(lead.title)
    return is_one and (other.at <= lead.at or _VERSION.findall(other.title)[:1] == _VERSION.findall(lead.title)[:1])


def _nothing(candidates: Sequence[Activity]) -> str:
    """Say why none of these can be told."""
    chores = [activity for activity in candidates if activity.worth <= 0]
    hidden = len(candidates) - len(chores)
    if hidden:
        return (
            f"since the last post there {_was(hidden)} {_counted(hidden, 'change')} in private repositories, and nothing of "
            "that can be told without their names: allow posts to tell what is private in the product's settings, or write a "
            "post by hand"
        )
    if not chores:
        return "since the last post no change, release or deployment was reported"
    which = "it was maintenance" if len(chores) == 1 else "all of them maintenance"
    return f"since the last post there {_was(len(chores))} {_counted(len(chores), 'change')}, {which}: {_named(chores)}"


def _not_enough(ordered: Sequence[Activity]) -> str:
    """Say why these are not enough for a post."""
    deployments = [activity for activity in ordered if activity.kind == "deployment"]
    if len(deployments) == len(ordered):
        return (
            f"since the last post there {_was(len(ordered))} {_counted(len(ordered), 'deployment')}, and nothing says what "
            "changed: connect the repository, so that drafts can tell"
        )
    small = [activity for activity in ordered if activity.kind != "deployment"]
    wait = "it waits" if len(small) == 1 else "they wait"
    return (
        f"since the last post there {_was(len(small))} {_counted(len(small), 'small change')}, not enough for a post: "
        f"{_named(small)}; {wait} for the next one"
    )


def _named(activities: Sequence[Activity]) -> str:
    titles = [f"“{activity.title}”" for activity in activities]
    more = len(titles) - _MAX_NAMED
    if more > 0:
        return f"{', '.join(titles[:_MAX_NAMED])} and {more} more"
    return " and ".join(titles)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"
