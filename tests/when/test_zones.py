"""Zones: the spans found by looking at a clock, against the tables of the database; names, versions and places."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import sysconfig
import zoneinfo
from datetime import UTC, datetime, timedelta
from importlib import metadata
from pathlib import Path
from random import Random
from time import perf_counter
from zoneinfo import _zoneinfo as pure_zoneinfo  # type: ignore[attr-defined]  # written in Python: its tables can be read

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tickler
from tickler.errors import StoreUnavailable, UnknownTimezone
from tickler.when import load_zone, tzdata_version, zones

from .effort import examples
from .instants import ms
from .strategies import RESTLESS_ZONES, changes_of
from .transitions import ZONES

DAY = 86_400
FROM, UNTIL = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (1900, 2038))
SECOND = timedelta(seconds=1)


def changes_by_table(name: str) -> list[tuple[int, int]]:
    """Instants and new offsets from the transition table of the zone's file and the rule at its end."""
    zone = pure_zoneinfo.ZoneInfo.no_cache(name)
    changes = list(zip(zone._trans_utc, (info.utcoff // SECOND for info in zone._ttinfos), strict=True))
    rule = zone._tz_after
    if isinstance(rule, pure_zoneinfo._TZStr):
        standard, summer = rule.std.utcoff // SECOND, rule.dst.utcoff // SECOND
        covered = changes[-1][0] if changes else FROM
        for year in range(1970, 2038):
            start, end = rule.transitions(year)
            changes += [(at, offset) for at, offset in ((start - standard, summer), (end - summer, standard)) if at > covered]
    return sorted(changes)


def offset_by_table(name: str, changes: list[tuple[int, int]], at: int) -> int:
    earlier = [offset for since, offset in changes if since <= at]
    return earlier[-1] if earlier else int(pure_zoneinfo.ZoneInfo.no_cache(name)._tti_before.utcoff // SECOND)


def test_the_spans_found_by_looking_are_those_of_the_transition_tables(seed: int, soak: bool) -> None:
    for name in ZONES if soak else Random(seed).sample(ZONES, 50):
        table = changes_by_table(name)
        expected, offset = [], offset_by_table(name, table, FROM)
        assert load_zone(name).span(FROM).offset == offset, name
        for at, after in table:
            if FROM < at < UNTIL and after != offset:
                expected.append((at, after))
                offset = after
        assert changes_by_looking(name) == expected, name


def changes_by_looking(name: str) -> list[tuple[int, int]]:
    zone = load_zone(name)
    found, span = [], zone.span(FROM)
    while span.end < UNTIL:
        following = zone.span(span.end)
        assert following.start == span.end
        if following.offset != span.offset:
            found.append((following.start, following.offset))
        span = following
    return found


@examples
@given(st.sampled_from(RESTLESS_ZONES), st.data())
def test_a_reading_is_first_reached_when_it_was_never_shown_before(name: str, data: st.DataObject) -> None:
    zone = load_zone(name)
    change = data.draw(st.sampled_from(changes_of(name)))
    wall = change.at + change.before + data.draw(st.integers(-2 * DAY, 2 * DAY))
    at = zone.first_at(wall)
    if at is None:
        skipped = (change.edges[0] // DAY * DAY, change.edges[1] // DAY * DAY)
        assert change.jump >= DAY
        assert skipped[0] <= wall < skipped[1]
    else:
        assert zone.highest_wall(at) >= wall > zone.highest_wall(at - 1)


def test_a_zone_is_loaded_once() -> None:
    assert load_zone("Europe/Paris") is load_zone("Europe/Paris")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("europe/paris", "Europe/Paris"),
        ("Europe/Pariss", "Europe/Paris"),
        ("America/NewYork", "America/New_York"),
        ("Asia/Calcuta", "Asia/Calcutta"),
        ("utc", "UTC"),
        ("Europe//Paris", "Europe/Paris"),
    ],
)
def test_an_unknown_zone_comes_with_a_suggestion(name: str, near: str) -> None:
    with pytest.raises(UnknownTimezone, match=f"did you mean '{near}'") as caught:
        load_zone(name)
    assert (caught.value.name, caught.value.field, caught.value.text) == (name, "tz", name)
    assert tzdata_version() in caught.value.reason


@pytest.mark.parametrize("name", ["/etc/localtime", "localtme", "Local/Time", "Paris", "EST5", "GMT+25"])
def test_a_suggestion_is_a_zone_that_would_do(name: str) -> None:
    with pytest.raises(UnknownTimezone) as caught:
        load_zone(name)
    for near in re.findall(r"did you mean '(.+)'", caught.value.reason):
        assert load_zone(near).info.key == near


def test_zones_are_listed_once_and_the_same_mistake_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Either takes milliseconds."""
    listed: list[object] = []
    looked_at: list[str] = []
    list_zones, look = zoneinfo.available_timezones, zones._suggestion

    def noted_list() -> set[str]:
        listed.append(None)
        return list_zones()

    def noted_look(name: str, known: frozenset[str]) -> str:
        looked_at.append(name)
        return look(name, known)

    monkeypatch.setattr(zoneinfo, "available_timezones", noted_list)
    monkeypatch.setattr(zones, "_suggestion", noted_look)
    for cached in (zones._known_zones, zones._unknown, zones._not_here):
        cached.cache_clear()
    for name in ("Nowhere/1", "Nowhere/2", "Nowhere/1"):
        for suggest in (True, False):
            with pytest.raises(UnknownTimezone):
                load_zone(name, suggest=suggest)
    assert (len(listed), looked_at) == (1, ["Nowhere/1", "Nowhere/2"])


def test_a_process_without_file_descriptors_does_not_call_a_zone_unknown() -> None:
    name = "Pacific/Kiritimati"
    zones._load_zone.cache_clear()
    zoneinfo.ZoneInfo.clear_cache(only_keys=[name])  # other tests may have read it
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))  # standard input, output and errors are open
        with pytest.raises(StoreUnavailable, match="too many open files: raise the limit"):
            load_zone(name)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert load_zone(name).info.key == name


def test_a_name_unlike_any_zone_gets_an_example() -> None:
    with pytest.raises(UnknownTimezone, match="use an IANA name such as 'Europe/Paris'"):
        load_zone("xyzzy!")


def test_the_zone_of_the_machine_is_refused_by_that_name() -> None:
    with pytest.raises(UnknownTimezone, match="not the same on every machine"):
        load_zone("localtime")


@pytest.mark.parametrize("name", [None, 5, b"UTC", [], {}], ids=str)
def test_a_zone_that_is_not_text_is_refused(name: object) -> None:
    with pytest.raises(UnknownTimezone, match="a zone is a name such as"):
        load_zone(name)  # type: ignore[arg-type,unused-ignore]


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../UTC",
        "/UTC",
        "Europe",
        "Europe/",
        "tzdata.zi",
        "UTC\x00",
        "a\x00/b",
        "\ud800",
        "a" * 5_000,
        "a/" * 2_000 + "b",
    ],
    ids=lambda name: ascii(name[:12]),
)
def test_a_hostile_name_is_refused_at_once(name: str) -> None:
    start = perf_counter()
    with pytest.raises(UnknownTimezone):
        load_zone(name)
    assert perf_counter() - start < 1


def test_a_name_that_is_far_too_long_is_not_repeated_in_the_error() -> None:
    with pytest.raises(UnknownTimezone) as caught:
        load_zone("a" * 1_000_000)
    assert len(str(caught.value)) < 1_000


def test_the_version_is_that_of_the_folder_that_is_read() -> None:
    assert re.fullmatch(r"20\d\d[a-z]", tzdata_version())
    folder = next((Path(folder) for folder in zoneinfo.TZPATH if Path(folder, "UTC").is_file()), None)
    if folder is not None and (folder / "tzdata.zi").is_file():
        assert (folder / "tzdata.zi").read_text().startswith(f"# version {tzdata_version()}\n")


def elsewhere(tz_path: str, *, site: Path | None = None) -> tuple[str, str]:
    """The version, and when 02:30 comes in Berlin on 30 March 2025, in a process that looks for zones in `tz_path`."""
    script = (
        "from tickler.when import At, tzdata_version\n"
        "print(tzdata_version())\n"
        "try: print(At('2025-03-30T02:30', tz='Europe/Berlin').at_ms)\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    source = str(Path(tickler.__file__).parents[1])
    path = source if site is None else os.pathsep.join((source, str(site)))
    flags = [] if site is None else ["-S"]
    done = subprocess.run(
        [sys.executable, *flags, "-c", script],
        env={"PYTHONPATH": path, "PYTHONTZPATH": tz_path},
        capture_output=True,
        text=True,
        check=True,
    )
    version, result = done.stdout.splitlines()
    return version, result


def test_without_a_system_folder_the_wheel_is_read() -> None:
    year, number = metadata.version("tzdata").split(".")[:2]
    version, at = elsewhere("")
    assert version == f"{year}{'abcdefghijklmnopqrstuvwxyz'[int(number) - 1]}"
    assert int(at) == ms("2025-03-30T03:00+02:00")


@pytest.mark.parametrize(
    ("name", "content", "version"),
    [
        ("tzdata.zi", "# version 2024b\nR d 1916 o - Jun 14 23s 1 S\n", "2024b"),
        ("tzdata.zi", "R d 1916 o - Jun 14 23s 1 S\n", "unknown ({folder})"),
        ("+VERSION", "2023c\n", "2023c"),
        ("README", "no version here\n", "unknown ({folder})"),
    ],
)
def test_a_folder_says_its_version_in_a_file(tmp_path: Path, name: str, content: str, version: str) -> None:
    shutil.copytree(Path(str(metadata.distribution("tzdata").locate_file("tzdata/zoneinfo/Etc"))), tmp_path / "Etc")
    shutil.copy(tmp_path / "Etc" / "UTC", tmp_path / "UTC")
    (tmp_path / name).write_text(content)
    assert elsewhere(str(tmp_path))[0] == version.format(folder=tmp_path)


def test_a_machine_without_a_database_is_told_to_install_one(tmp_path: Path) -> None:
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.startswith("tzdata"):
            (tmp_path / entry.name).symlink_to(entry)
    version, error = elsewhere("", site=tmp_path)
    assert version == "none"
    assert error.startswith("UnknownTimezone")
    assert "install the tzdata package" in error
