"""One activity from what several sources say about it, as pure functions. The order in which they come does not matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slothpost.model import Activity, Sighting
from tickler.table import MISSING, evolve

# How much a source knows: a pull request has a title that somebody wrote for others, a deployment just a commit's message.
_RICHNESS: Mapping[str, int] = {"pull_request": 3, "push": 2, "lookup": 2}


def merged(found: Activity, seen: Activity) -> Activity:
    """Return what is known after another source saw an activity: the same object if that is nothing new.

    The richest source decides on the words, any that calls it private makes it private, and it happened when it was first seen.
    """
    known = {(sighting.source, sighting.event) for sighting in found.sightings}
    new = [sighting for sighting in seen.sightings if (sighting.source, sighting.event) not in known]
    if not new:
        return found
    sightings = [*found.sightings, *new]
    richer, other = (seen, found) if _richness(seen) > _richness(found) else (found, seen)
    return evolve(
        found,
        at=min(found.at, seen.at),
        kind=richer.kind,
        title=richer.title,
        body=richer.body,
        worth=richer.worth,
        url=other.url if richer.url is MISSING else richer.url,
        is_private=is_private(sightings),
        repository=found.repository or seen.repository,
        sightings=sightings,
    )


def is_private(sightings: Sequence[Sighting]) -> bool:
    """Tell whether an activity must be told without names: if any source says so, or if none says that it is public."""
    said = {sighting.is_private for sighting in sightings}
    return True in said or False not in said


def _richness(activity: Activity) -> int:
    if activity.kind == "deployment":
        return 0  # of which nothing is known but that it was deployed
    return max((_RICHNESS.get(sighting.event, 1) for sighting in activity.sightings), default=0)
