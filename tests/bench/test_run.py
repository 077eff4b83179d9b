"""`make bench` runs each benchmark in a process of its own."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from run import last_line, measure

BENCHMARK = """
import os
from measure import Result, Skipped

async def run(report):
    if {lacks!r}:
        raise Skipped({lacks!r})
    report("measuring")
    return [Result("{name}", "", "", "", os.getpid(), 0.0)]
"""


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, lacks in (("of_mine", ""), ("of_yours", ""), ("of_nobody", "there is no wrk")):
        (tmp_path / f"{name}.py").write_text(BENCHMARK.format(name=name, lacks=lacks))
    return ["of_mine", "of_nobody", "of_yours"]


def test_each_benchmark_has_a_process_of_its_own_and_says_what_it_lacks(
    names: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    results, skipped = measure(names)
    assert [result.name for result in results] == ["of_mine", "of_yours"]
    assert len({os.getpid(), *(int(result.ratio) for result in results)}) == 3
    assert skipped == {"of_nobody": "there is no wrk"}
    assert last_line(2, [], skipped) == "2 of 2 hold; SKIPPED of_nobody: there is no wrk"
    said = capfd.readouterr()
    assert said.out == ""
    lines = ["measuring …", "of_mine: N s", "of_nobody: N s", "measuring …", "of_yours: N s"]
    assert re.sub(r"\d+ s", "N s", said.err).splitlines() == lines


def test_a_benchmark_that_fails_ends_the_run(names: list[str], tmp_path: Path) -> None:
    (tmp_path / "of_mine.py").write_text("async def run(report): raise ZeroDivisionError('no pairs')")
    with pytest.raises(ZeroDivisionError, match="no pairs"):
        measure(names)
