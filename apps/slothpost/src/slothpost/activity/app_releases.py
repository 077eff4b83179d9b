"""Which activity is a version of an app that went live: App Store Connect and the public lookup have no id in common."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from slothpost.activity.happening import ActivityId
from slothpost.model.connection import AppRelease
from tickler.table import evolve

LIVE = "READY_FOR_DISTRIBUTION"  # Apple's word for a version that people can get
MAX_RELEASES = 20  # that are remembered for an app

_SAME = timedelta(days=3)  # the lookup may be late, and names the day on which a version was approved


def placed(releases: Sequence[AppRelease], new: AppRelease) -> tuple[ActivityId, list[AppRelease]]:
    """Return the activity that a release belongs to, and the releases with it.

    It is one that has its instance or its version, or else the nearest of which only the other is known.
    """
    for release in releases:
        if _has(release, new):
            return ActivityId(release.activity), list(releases)
    halves = [release for release in releases if _completes(release, new)]
    if halves:
        half = min(halves, key=lambda release: abs(release.at - new.at))
        whole = evolve(half, instance=half.instance or new.instance, version=half.version or new.version)
        return ActivityId(half.activity), [whole if release is half else release for release in releases]
    return ActivityId(new.activity), sorted([*releases, new], key=lambda release: release.at)[-MAX_RELEASES:]


def _has(release: AppRelease, new: AppRelease) -> bool:
    return bool(new.instance and release.instance == new.instance) or bool(new.version and release.version == new.version)


def _completes(release: AppRelease, new: AppRelease) -> bool:
    is_other_half = not release.version if new.version else not release.instance
    return is_other_half and abs(release.at - new.at) <= _SAME
