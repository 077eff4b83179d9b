"""The DynamoDB cost calculator, against figures worked out by hand, and the files it writes."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from msgspec.structs import replace

import dynamodb_cost
from dynamodb_cost import Design, Load, Polling, Prices, designs, shards_needed, write_dollars, write_units
from dynamodb_cost_chart import draw

SCRIPT = dynamodb_cost.__file__
HOURLY = Load(schedules=1_000_000, fires_per_hour=1_000_000, burst=1_000_000, burst_minutes=5)
LARGE = 3 * 1024
SVG = "{http://www.w3.org/2000/svg}"


def compared(load: Load) -> tuple[Design, Design, Design]:
    ours, one_partition, managed = designs(load, Polling(), Prices())
    return ours, one_partition, managed


def texts(load: Load) -> list[str]:
    drawing = ET.fromstring(draw(dynamodb_cost.chart(load, Polling(), Prices())))
    return [text.text or "" for text in drawing.iter(f"{SVG}text")]


@pytest.mark.parametrize(("minutes", "shards"), [(60, 2), (5, 14), (1, 67)])
def test_a_million_hourly_schedules_need_more_shards_the_closer_they_fall(minutes: float, shards: int) -> None:
    assert shards_needed(replace(HOURLY, burst_minutes=minutes)) == shards


@pytest.mark.parametrize(
    ("units", "dollars"),
    [
        pytest.param(write_units(700, 300), 1369, id="claim and advance in one update"),
        pytest.param(2 * write_units(700, 300, entry_writes=1), 1825, id="remove at the claim, add when done"),
        pytest.param(write_units(LARGE, LARGE), 4106, id="3 KB projected whole"),
    ],
)
def test_the_writes_of_a_million_hourly_schedules_cost_what_their_units_say(units: int, dollars: int) -> None:
    assert round(write_dollars(HOURLY.fires_a_month, units, Prices())) == dollars


def test_the_units_are_three_and_four_and_nine() -> None:
    assert (write_units(700, 300), 2 * write_units(700, 300, entry_writes=1), write_units(LARGE, LARGE)) == (3, 4, 9)


@pytest.mark.parametrize("payload_bytes", [0, 320, 321, 100_000])
def test_a_claim_writes_three_units_however_large_the_payload(payload_bytes: int) -> None:
    ours, _, _ = compared(replace(HOURLY, payload_bytes=payload_bytes))
    assert round(ours.dollars["writes"]) == 1369


def test_a_payload_in_a_body_is_read_when_it_is_delivered() -> None:
    inline, _, _ = compared(replace(HOURLY, payload_bytes=320))
    apart, _, _ = compared(replace(HOURLY, payload_bytes=321))
    assert apart.dollars["reads"] - inline.dollars["reads"] == pytest.approx(730 * 0.5 * 0.125)


def test_reads_grow_with_workers_and_shards_and_stay_noise() -> None:
    few, many = (designs(HOURLY, Polling(workers=workers), Prices())[0].dollars["reads"] for workers in (1, 10))
    assert few < many < 0.05 * 1369


def test_storage_is_the_head_and_two_index_entries() -> None:
    ours, _, _ = compared(HOURLY)
    assert ours.dollars["storage"] == pytest.approx((320 + 300 + 2 * 300 + 3 * 100) / 1000 * 0.25)


def test_one_partition_is_late_for_a_burst_that_shards_take_in_time() -> None:
    ours, one_partition, _ = compared(HOURLY)
    assert one_partition.drain_s == 2000  # a million at 500 a second
    assert (ours.verdict, one_partition.verdict) == ("in time", "28 min 20 s late at 500 claims a second")


def test_the_fires_beside_a_burst_slow_it_down() -> None:
    _, one_partition, _ = compared(replace(HOURLY, burst=50_000, burst_minutes=1))
    assert one_partition.drain_s == pytest.approx(50_000 / (500 - 950_000 / 3600))


def test_one_partition_is_impossible_above_its_write_units() -> None:
    _, just, _ = compared(HOURLY.scaled(1_800_000))
    _, above, _ = compared(HOURLY.scaled(1_800_001))
    assert just.drain_s == 3600
    assert (above.drain_s, above.verdict) == (None, "impossible at 500 claims a second")


def test_a_managed_row_each_is_free_up_to_the_free_tier_and_then_a_dollar_a_million() -> None:
    _, _, free = compared(HOURLY.scaled(19_178))
    _, _, managed = compared(HOURLY)
    assert (free.total, managed.total) == (0, 716)


def test_the_chart_marks_where_one_partition_stops_and_the_number_that_was_given() -> None:
    assert {"one partition stops here, at 1.8M schedules", "yours: 1,000,000 schedules", "this design"} <= set(texts(HOURLY))


@pytest.mark.parametrize("schedules", [1, 300, 10**10])
@pytest.mark.parametrize("fires_per_hour", [0.01, 1, 10**9])
def test_any_load_can_be_drawn_and_names_each_line(schedules: int, fires_per_hour: float) -> None:
    drawn = "\n".join(texts(Load(schedules=schedules, fires_per_hour=fires_per_hour, burst=0)))
    assert all(name in drawn for name in ("this design", "one partition", "a managed row each"))


def test_the_command_prints_json_and_draws(tmp_path: Path) -> None:
    load = ["--schedules", "1000000", "--fires-per-hour", "1000000", "--burst", "1000000", "--burst-minutes", "5"]
    command = [sys.executable, SCRIPT, *load, "--svg", str(tmp_path / "cost.svg"), "--json"]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert [design["shards"] for design in answer["designs"]] == [14, 1, None]
    assert ET.parse(tmp_path / "cost.svg").getroot().tag == f"{SVG}svg"


def test_the_command_says_which_number_is_wrong() -> None:
    command = [sys.executable, SCRIPT, "--schedules", "0", "--fires-per-hour", "1", "--burst", "0"]
    refused = subprocess.run(command, capture_output=True, text=True)
    assert refused.returncode == 2
    assert "$.schedules" in refused.stderr
