"""What mypy and pyright, both strict, infer of programs that use the table toolkit, and what they refuse.

The samples are no modules of the tests: `inferred.txt` and `wrong.txt` are copied beside `shop.py`, and checked there.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from npm_packages import node_modules

PYRIGHT = "pyright@1.1.414"
OLDEST_PYTHON = "3.11"
SAMPLES = Path(__file__).parent / "typing_samples"
SOURCE = Path(__file__).parents[2] / "src"
CHECK_TIMEOUT_S = 120

_MARK = re.compile(r"  # refused(?: by (\w+))?$")
_EXPECTED = re.compile(r"\breveal_type\(.*\)  # (.+)$")


class Findings(NamedTuple):
    """What a checker says of the samples, by line: types in `inferred`, the first error of a line in each file."""

    types: dict[int, str]
    errors: dict[str, dict[int, str]]


def run_mypy(folder: Path) -> Findings:
    found = subprocess.run(
        [
            sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--python-version={OLDEST_PYTHON}",
            f"--cache-dir={folder / 'cache'}", "--hide-error-context", "--no-error-summary", "--no-pretty", "--output=json",
            "inferred.py", "wrong.py",
        ],
        cwd=folder, env={**os.environ, "MYPYPATH": str(SOURCE)}, capture_output=True, text=True, timeout=CHECK_TIMEOUT_S,
    )  # fmt: skip
    assert not found.stderr, found.stderr
    findings = Findings({}, {})
    for each in map(json.loads, found.stdout.splitlines()):
        revealed = re.match('Revealed type is "(.*)"$', each["message"])
        if revealed:
            findings.types[each["line"]] = _as_pyright_writes(revealed[1])
        elif each["severity"] == "error":
            findings.errors.setdefault(Path(each["file"]).stem, {}).setdefault(each["line"], each["message"])
    return findings


def run_pyright(folder: Path) -> Findings:
    program = node_modules(PYRIGHT) / ".bin" / "pyright"
    site_packages = next(path for path in sys.path if path.endswith("site-packages"))
    settings = {
        "include": ["inferred.py", "wrong.py"],
        "typeCheckingMode": "strict",
        "pythonVersion": OLDEST_PYTHON,
        "extraPaths": [str(SOURCE), site_packages],
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    found = subprocess.run(
        [program, "--outputjson", f"--pythonpath={sys.executable}"],
        cwd=folder, capture_output=True, text=True, timeout=CHECK_TIMEOUT_S,
    )  # fmt: skip
    findings = Findings({}, {})
    for each in json.loads(found.stdout)["generalDiagnostics"]:
        line = each["range"]["start"]["line"] + 1
        revealed = re.match('Type of ".*" is "(.*)"$', each["message"])
        if revealed and each["severity"] == "information":
            findings.types[line] = revealed[1]
        elif each["severity"] == "error":
            findings.errors.setdefault(Path(each["file"]).stem, {}).setdefault(line, each["message"])
    return findings


CHECKERS: dict[str, Callable[[Path], Findings]] = {"mypy": run_mypy, "pyright": run_pyright}


@pytest.fixture(scope="module", params=CHECKERS)
def checked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Findings]:
    folder = tmp_path_factory.mktemp("typing")
    for sample in SAMPLES.glob("*.[pt]*"):
        (folder / f"{sample.stem}.py").write_text(sample.read_text())
    return request.param, CHECKERS[request.param](folder)


def test_types_are_inferred_as_written_behind_each_expression(checked: tuple[str, Findings]) -> None:
    expected = {
        number: found[1] for number, line in enumerate(_lines("inferred"), 1) if (found := _EXPECTED.search(line)) is not None
    }
    assert len(expected) > 90
    assert checked[1].types == expected


def test_right_programs_pass(checked: tuple[str, Findings]) -> None:
    assert checked[1].errors.keys() <= {"wrong"}, checked[1].errors


def test_each_mistake_is_refused_and_nothing_else(checked: tuple[str, Findings]) -> None:
    name, findings = checked
    lines = _lines("wrong")
    expected = {n for n, line in enumerate(lines, 1) if (mark := _MARK.search(line)) is not None and mark[1] in (None, name)}
    assert len(expected) > 100
    found = findings.errors["wrong"]
    assert {lines[n - 1].strip() for n in expected - found.keys()} == set()
    assert {lines[n - 1].strip(): found[n] for n in found.keys() - expected} == {}


def test_the_samples_are_about_entities_that_can_be_defined() -> None:
    names = runpy.run_path(str(SAMPLES / "shop.py"))
    assert set(names["shop"].entities) == {"Customer", "Order", "Invoice", "Ticket", "Depot", "Setting", "Counter"}


def _lines(sample: str) -> list[str]:
    return (SAMPLES / f"{sample}.txt").read_text().splitlines()


def _as_pyright_writes(text: str) -> str:
    text = re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", text).removeprefix("def ")
    return re.sub(
        r"Literal\[[^]]*\](?: \| Literal\[[^]]*\])+",
        lambda found: f"Literal[{', '.join(re.findall(r'Literal.([^]]*)', found[0]))}]",
        text,
    )
