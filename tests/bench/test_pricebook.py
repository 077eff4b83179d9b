"""The benchmarks of pricebook at their smallest size: that they run to their end. Nothing is timed here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

import pytest
import run

SECONDS = 120


def results_of(folder: Path, *names: str, **variables: str) -> tuple[list[dict[str, Any]], str]:
    environment = {**os.environ, "PRICEBOOK_BENCH": "tiny", "BENCH_FOLDER": str(folder), **variables}
    command = [sys.executable, run.__file__, "--json", *names]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS)
    assert ran.stdout, ran.stderr
    return json.loads(ran.stdout), ran.stderr


@pytest.mark.parametrize("name", [name for name in run.BENCHMARKS if name.startswith("pricebook_")])
def test_each_benchmark_of_pricebook_can_be_run(name: str) -> None:
    assert iscoroutinefunction(import_module(name).run)


def test_a_loaded_pricebook_is_reused_by_the_benchmark_of_its_queries(tmp_path: Path, soak: bool) -> None:
    if not soak:
        pytest.skip("it starts five processes: make soak")
    plot = tmp_path / "plot.svg"
    tmp_path.chmod(0o755)
    results, said = results_of(tmp_path, "pricebook_load", "pricebook_queries", PRICEBOOK_PLOT=str(plot))
    by_name = {result["name"]: result for result in results}
    assert {"pricebook: SQLite: a load of 5,600 prices", "pricebook: PostgreSQL: page 10 backward"} <= by_name.keys()
    assert by_name["pricebook: timeouts"]["ratio"] == 0
    assert "the seed p99" in said
    assert plot.read_text().startswith("<svg")
    assert sorted(path.name for path in tmp_path.glob("*.db")) == ["pricebook-70x70.db", "pricebook-80x70.db"]


def test_the_stores_of_the_benchmark_of_switches_are_settled(tmp_path: Path, soak: bool) -> None:
    if not soak:
        pytest.skip("it waits until prices change: make soak")
    results, _ = results_of(tmp_path, "pricebook_switch")
    assert [result["name"] for result in results][-1] == "pricebook: p95 of readers while the stores are settled"


@pytest.mark.usefixtures("dynamodb_server")
def test_reads_and_writes_on_dynamodb_cost_what_the_bounds_say(tmp_path: Path) -> None:
    results, _ = results_of(tmp_path, "pricebook_dynamodb")
    assert [result["name"] for result in results if not result["holds"]] == []
    assert len(results) == 9
