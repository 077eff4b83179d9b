"""Cron, Weekly and At against a walk over real minutes, around every change of offset of every zone."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import defaultdict
from datetime import datetime
from itertools import pairwise
from random import Random
from zoneinfo import ZoneInfo

import pytest

from tickler.when import When

from .changes import Change
from .oracle import WallClock, numbers
from .transitions import DAY, ZONES, Transition, transitions

SAMPLED_ZONES, SAMPLED_TRANSITIONS, SAMPLED_TRIALS = 70, 6, 7


def instants(when: When, start: int, end: int) -> list[int]:
    """What `next_after` gives from `start` to `end`, in milliseconds; it must never stand still."""
    found, at = [], start * 1000
    while (following := when.next_after(at)) is not None and following <= end * 1000:
        assert following > at, f"{when!r}.next_after({at}) is {following}"
        found.append(following)
        at = following
    return found


def disagreement(when: When, change: Change, expected: list[int]) -> str | None:
    """What a when says against the oracle's instants; None where they agree."""
    zone = when.tz
    fires = [at * 1000 for at in expected]
    found = instants(when, change.start, change.end)
    if found != fires:
        wrong = sorted(set(found) ^ set(fires))
        return f"{when!r}: " + ", ".join(f"{'fires' if ms in found else 'is silent'} at {_show(ms, zone)}" for ms in wrong[:5])
    for probe in sorted(change.probes(expected), reverse=True):  # backwards, so that each answer is computed anew
        place = bisect_right(fires, probe)
        if place > 0 and when.last_before(probe) != fires[place - 1]:
            return f"{when!r}.last_before({probe}) is {when.last_before(probe)}, not {_show(fires[place - 1], zone)}"
        if place < len(fires) and when.next_after(probe) != fires[place]:
            return f"{when!r}.next_after({probe}) is {when.next_after(probe)}, not {_show(fires[place], zone)}"
    return None


def _show(ms: int, zone: str) -> str:
    return f"{ms} ({datetime.fromtimestamp(ms // 1000, ZoneInfo(zone)).isoformat()})"


def test_every_when_fires_as_a_walk_over_real_minutes_says(seed: int, soak: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Zones whose clocks change alike at one instant share the oracle's answer; each is asked by itself."""
    random = Random(seed)
    zones = ZONES if soak else random.sample(ZONES, SAMPLED_ZONES)
    alike: defaultdict[Transition, list[str]] = defaultdict(list)
    for zone in zones:
        found = transitions(zone)
        for transition in found if soak else random.sample(found, min(len(found), SAMPLED_TRANSITIONS)):
            alike[transition].append(zone)
    assert len(alike) > 150
    wrong: list[str] = []
    for number, (transition, sharing) in enumerate(alike.items()):
        change = Change(sharing[0], transition)
        trials = change.trials()
        for trial in trials if soak else random.sample(trials, SAMPLED_TRIALS):
            expected = change.fires(trial)
            wrong += [text for zone in sharing if (text := disagreement(trial.when(zone), change, expected))]
        if soak and number % 250 == 0:
            with capsys.disabled():
                sys.stdout.write(f"\n{number} of {len(alike)} kinds of change, {len(wrong)} disagreements")
                sys.stdout.flush()
    assert not wrong, f"{len(wrong)} disagreements, the first: " + "\n".join(wrong[:20])


def test_no_zone_changes_twice_within_what_one_change_looks_at(soak: bool, seed: int) -> None:
    """So that zones which share one transition share the days around it."""
    for zone in ZONES if soak else Random(seed).sample(ZONES, 20):
        found = transitions(zone)
        assert all(after.at - before.at > 6 * DAY for before, after in pairwise(found)), zone


def test_the_oracle_moves_a_time_out_of_a_gap_and_fires_once_in_a_fold() -> None:
    spring = WallClock("Europe/Berlin", 1743120000, 1743379200)  # 2025-03-28 to 31, UTC
    autumn = WallClock("Europe/Berlin", 1761264000, 1761609600)  # 2025-10-24 to 28, UTC
    assert spring.fires_of_cron("30 2 30 * *") == [1743296400]  # 03:00 CEST
    assert spring.fires_of_cron("*/30 2 30 * *") == []
    assert autumn.fires_of_cron("30 2 26 * *") == [1761438600]  # 02:30 CEST
    assert autumn.fires_of_cron("*/30 2 26 * *") == [1761436800, 1761438600, 1761440400, 1761442200]


def test_the_oracle_has_no_fire_on_a_date_that_was_skipped() -> None:
    apia = WallClock("Pacific/Apia", 1325030400, 1325376000)  # 2011-12-28 to 2012-01-01, UTC
    assert apia.fires_of_at("2011-12-30T12:00") == []
    assert apia.fires_of_cron("0 12 30 * *") == []
    assert len(apia.fires_of_cron("0 12 29-31 * *")) == 2


@pytest.mark.parametrize(
    ("field", "expected"),
    [("*", {0, 1, 2, 3, 4, 5}), ("3", {3}), ("1-3", {1, 2, 3}), ("*/2", {0, 2, 4}), ("1-5/3", {1, 4}), ("3/2,0", {0, 3, 5})],
)
def test_the_oracle_reads_a_cron_field(field: str, expected: set[int]) -> None:
    assert numbers(field, 0, 5) == expected
