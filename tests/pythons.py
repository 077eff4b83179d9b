"""Run the quick tests on every other Python there is: `make pythons`, with an environment for each.

What is not on this machine is named, and left out: nothing is installed but packages.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
ENVIRONMENTS = ROOT / ".venv" / "pythons"
VERSIONS = ("3.12", "3.13")
PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")

# What differs between Pythons: the event loop, sqlite3, time zones, typing at run time, the command line.
TESTS = (
    "tests/when",
    "tests/deliver",
    "tests/conformance/test_memory.py",
    "tests/conformance/test_sqlite.py",
    "tests/cli",
    "tests/observe",
    "tests/stores/test_sqlite.py",
    *(f"tests/{package}" for package in ("database", "fires", "index", "model", "records", "schedules", "transfer", "webhooks")),
    *(
        str(file.relative_to(ROOT))
        for file in sorted(ROOT.glob("tests/test_*.py"))
        if file.stem not in ("test_docs", "test_deploy", "test_wheel")
    ),
)
ELSEWHERE = "not postgres and not dynamodb and not Dynamodb"


def candidates(version: str) -> Iterator[Path]:
    if (found := shutil.which(f"python{version}")) is not None:
        yield Path(found)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")  # whose shims run only what was chosen
    yield from sorted(pyenv.glob(f"versions/{version}.*/bin/python"), reverse=True)


def find(version: str) -> Path | None:
    """One that really runs, and is of that version."""
    asked = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    for python in candidates(version):
        told = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=False)
        if told.returncode == 0 and told.stdout.strip() == version:
            return python
    return None


def environment(python: Path, version: str) -> Path:
    """Its own interpreter, with what the tests need."""
    folder = ENVIRONMENTS / version
    own, ready = folder / "bin" / "python", folder / ".ready"
    wanted = max((ROOT / name).stat().st_mtime for name in ("pyproject.toml", "constraints.txt"))
    if not ready.exists() or ready.stat().st_mtime < wanted:
        subprocess.run([python, "-m", "venv", folder], check=True)
        subprocess.run([own, *PIP, "--upgrade", "pip>=25.1"], check=True)
        subprocess.run([own, *PIP, "--constraint", "constraints.txt", "--editable", ".", "--group", "dev"], cwd=ROOT, check=True)
        ready.touch()
    return own


def main() -> int:
    failed = 0
    for version in VERSIONS:
        python = find(version)
        if python is None:
            print(f"Python {version}: NOT TESTED, there is none on this machine that runs", flush=True)
            continue
        print(f"Python {version}: {python}", flush=True)
        command = [
            str(environment(python, version)),
            "-m",
            "pytest",
            "-q",
            "-n",
            "2",
            "--dist",
            "loadgroup",
            "-p",
            "no:cacheprovider",
        ]
        failed += subprocess.run([*command, "-k", ELSEWHERE, *TESTS], cwd=ROOT, check=False).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
