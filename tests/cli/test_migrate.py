"""`tickler migrate`, and what every command has in common, run as people run it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command

import tickler
from tickler.cli.app import build_app

from .conftest import Here
from .preloaded import run_tickler

WITHOUT = "import sys; sys.modules[{!r}] = None; from tickler.cli import main; main()"


def run(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name != "TICKLER_STORE"}
    inherited["PYTHONPATH"] = os.pathsep.join(sys.path)
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=inherited | environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )


def start_tickler(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return run("-m", "tickler", *arguments, folder=folder, **environment)


@pytest.mark.parametrize("arguments", [["migrate", "--nonsense"], ["migrate", "--store", "nonsense://host"]])
def test_a_fork_answers_as_a_process_that_was_started(tmp_path: Path, arguments: list[str]) -> None:
    started, forked = (run(*arguments, folder=tmp_path, COLUMNS="90") for run in (start_tickler, run_tickler))
    assert (forked.returncode, forked.stdout, forked.stderr) == (started.returncode, started.stdout, started.stderr)
    assert forked.returncode > 0


async def test_migrate_makes_the_schema_and_names_what_ran(tmp_path: Path) -> None:
    done = start_tickler("migrate", "--store", "sqlite:///t.db", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("ran 0001_")
    assert done.stdout.endswith("sqlite:///t.db is up to date\n")
    async with tickler.connect(f"sqlite:///{tmp_path}/t.db", create=False) as t:
        assert await t.index.count() == 0


def test_migrating_a_store_that_is_up_to_date_says_so_and_runs_nothing(tmp_path: Path) -> None:
    run_tickler("migrate", "--store", "sqlite:///t.db", folder=tmp_path)
    again = run_tickler("migrate", "--store", "sqlite:///t.db", folder=tmp_path)
    assert (again.returncode, again.stdout) == (0, "sqlite:///t.db is up to date\n")


def test_migrate_answers_in_json(here: Here, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/t.db"
    answer = here("migrate", "--store", url, "--json").json
    assert (answer["store"], answer["messages"]) == (url, [])
    assert answer["ran"][0].startswith("0001_")
    assert here("migrate", "--store", url, "--json").json["ran"] == []
    assert "CREATE TABLE" in here("migrate", "--store", url, "--print-sql", "--json").json["sql"]


def test_the_store_may_come_from_the_environment(tmp_path: Path) -> None:
    done = run_tickler("migrate", folder=tmp_path, TICKLER_STORE="sqlite:///t.db")
    assert done.returncode == 0
    assert (tmp_path / "t.db").exists()


def test_an_option_goes_before_the_environment(tmp_path: Path) -> None:
    run_tickler("migrate", "--store", "sqlite:///option.db", folder=tmp_path, TICKLER_STORE="sqlite:///environment.db")
    assert [path.name for path in tmp_path.iterdir()] == ["option.db"]


def test_print_sql_prints_a_script_that_makes_the_schema_and_touches_nothing(tmp_path: Path) -> None:
    done = run_tickler("migrate", "--store", "sqlite:///t.db", "--print-sql", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []
    connection = sqlite3.connect(":memory:")
    connection.executescript(done.stdout)
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.close()
    assert {"tickler_schedules", "tickler_index"} <= tables


def test_what_print_sql_prints_does_not_depend_on_how_wide_the_terminal_is(tmp_path: Path) -> None:
    narrow, wide = (
        run_tickler("migrate", "--store", "sqlite://", "--print-sql", folder=tmp_path, COLUMNS=columns).stdout
        for columns in ("20", "300")
    )
    assert narrow == wide


@pytest.mark.parametrize("environment", [{}, {"TICKLER_STORE": ""}])
def test_without_a_store_the_error_names_both_ways_to_give_one(tmp_path: Path, environment: dict[str, str]) -> None:
    done = run_tickler("migrate", folder=tmp_path, **environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tickler: ")
    assert "--store" in done.stderr
    assert "TICKLER_STORE" in done.stderr


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nonsense", "not a store's URL: write one such as"),
        ("nonsense://here", "has an unknown scheme: use one of"),
        ("sqlite:///no/such/folder/t.db", "there is no folder"),
        ("sqlite:///t.db?colour=blue", "unknown parameter 'colour'"),
    ],
)
def test_an_error_is_one_line_on_stderr_however_narrow_the_terminal_is(tmp_path: Path, url: str, said: str) -> None:
    done = run_tickler("migrate", "--store", url, folder=tmp_path, COLUMNS="20")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("tickler: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_password_in_the_url_is_not_shown(tmp_path: Path) -> None:
    done = run_tickler("migrate", "--store", "nonsense://user:hunter2@host/database", folder=tmp_path)
    assert done.returncode == 1
    assert "hunter2" not in done.stdout + done.stderr


def test_version_is_that_of_the_package(tmp_path: Path) -> None:
    done = start_tickler("--version", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"tickler {tickler.__version__}\n")


def test_help_lists_the_commands_and_nothing_that_is_none(tmp_path: Path) -> None:
    done = start_tickler("--help", folder=tmp_path)
    assert done.returncode == 0
    assert "migrate  " in done.stdout
    assert "options  " not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "flag"), [(["--help"], "--version"), (["doctor", "--help"], "--scan"), (["migrate", "--help"], "--print-sql")]
)
def test_help_shows_a_flag_as_one_that_takes_no_value(tmp_path: Path, arguments: list[str], flag: str) -> None:
    done = run_tickler(*arguments, folder=tmp_path, COLUMNS="120")
    (line,) = (line for line in done.stdout.splitlines() if f" {flag} " in line)
    assert "bool" not in line.lower()


def test_every_command_answers_in_json_on_demand_but_those_that_run_on() -> None:
    assert {name for name, options in commands(get_command(build_app())) if "--json" not in options} == {"serve", "work"}


def commands(command: Any, name: str = "") -> Iterator[tuple[str, set[str]]]:
    """Each that does something, and its options."""
    if isinstance(command, TyperGroup):
        for each in command.commands.values():
            yield from commands(each, f"{name} {each.name}".strip())
        return
    yield name, {option for parameter in command.params for option in parameter.opts}


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_without_the_extra_it_says_what_to_install(tmp_path: Path, package: str) -> None:
    done = run("-c", WITHOUT.format(package), "--version", folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "pip install 'ticklerfile[cli]'" in done.stderr
    assert done.stderr.count("\n") == 1
