"""`pricebook import`, `pricebook job` and `pricebook export`: files in and out, what is printed, and exit codes."""

from __future__ import annotations

import asyncio
import io
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from pricebook.cli import bulk, main, progress
from pricebook.cli.bulk import LINES_REFUSED

Run = Callable[..., str]

HEADER = "store,product,amount,currency\n"


@pytest.fixture
def stores(run: Run, folder: Path) -> Path:
    """A store with two prices."""
    (folder / "stores.csv").write_text(f"{HEADER}1,P1,1.00,EUR\n1,P2,2.00,EUR\n")
    run("load", "stores.csv")
    return folder


def test_a_file_is_imported_into_a_change_set(run: Run, stores: Path) -> None:
    (stores / "spring.csv").write_text(f"{HEADER}1,P1,1.10,EUR\n1,P2,2.00,EUR\n1,P3,,\n")
    said = run("import", "spring.csv", "--submit", "--effective", "2099-03-01")
    assert re.fullmatch(r"job \w{32}: 1 change in change set \w{32}, 1 unchanged, 1 kept, 0 refused\n", said)
    job = said.split()[1].removesuffix(":")
    assert run("job", job) == said


def test_a_dry_run_imports_nothing(run: Run, stores: Path) -> None:
    (stores / "spring.ndjson").write_text('{"store": "1", "product": "P1", "amount": 1.1}\n')
    said = run("import", "spring.ndjson", "--dry-run", "--currency", "EUR")
    assert re.fullmatch(r"job \w{32}: 1 would change, 0 unchanged, 0 kept, 0 refused\n", said)


def test_what_comes_next_is_said(stores: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (stores / "spring.csv").write_text(f"{HEADER}1,P1,1.10,EUR\n")

    def said(*options: str) -> str:
        with pytest.raises(SystemExit):
            main(["import", "spring.csv", *options])
        return capsys.readouterr().err

    address = r"http://127.0.0.1:8323/change-sets/\w{32}\n"
    assert re.fullmatch(f"look at it and submit it: {address}", said())
    assert re.fullmatch(f"look at it and approve it: {address}", said("--submit", "--effective", "2099-03-01"))
    late = said("--dry-run", "--effective", "2020-03-01")
    assert late.startswith("2020-03-01 has passed: these prices count as soon as they are approved\n")
    assert late.endswith("nothing was imported: the same command without --dry-run makes a change set\n")


def test_refused_lines_are_printed_and_tell_the_shell(run: Run, stores: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (stores / "bad.csv").write_text(HEADER + "1,P1,=1+1,EUR\n" + "".join(f"9,P{n},1,EUR\n" for n in range(30)) + "1,P2,3,EUR\n")
    said = run("import", "bad.csv", "--failures", "failures.csv", code=LINES_REFUSED)
    assert re.search(r"2 .*amount: '=1\+1' is not an amount", said)
    assert re.search(r"3 .*there is no store '9': check its name", said)
    assert " 22 " not in said
    assert "and more: `pricebook job " in said
    written = (stores / "failures.csv").read_text().splitlines()
    assert (len(written), written[0], written[-1][:3]) == (32, "line,other_line,reason", "32,")


def test_all_or_nothing_fails(run: Run, stores: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (stores / "bad.csv").write_text(f"{HEADER}1,P1,x,EUR\n1,P2,3,EUR\n")
    run("import", "bad.csv", "--all-or-nothing", code=1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["none.csv"], "FILE: none.csv cannot be read: No such file or directory"),
        (["stores.xlsx"], "FILE: stores.xlsx is a spreadsheet: save it as CSV UTF-8"),
        (["stores.txt"], "FILE: stores.txt does not say by its name what it is: name it .csv or .ndjson"),
        (["stores.csv", "--format", "xml"], "--format: 'xml' is unknown: use csv or ndjson"),
        (["stores.csv", "--effective", "soon"], "effective: 'soon' is not a moment"),
        (["empty.csv"], "file: is empty"),
    ],
)
def test_what_cannot_be_imported_is_one_line_of_error(run: Run, stores: Path, arguments: list[str], says: str) -> None:
    (stores / "empty.csv").write_text("")
    assert f"pricebook: {says}" in run("import", *arguments, code=1)
    assert run("job", "none", code=3) == "pricebook: there is no such bulk job: check its name\n"


def test_the_same_command_with_a_key_goes_on_with_the_same_job(run: Run, stores: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (stores / "spring.csv").write_text(f"{HEADER}1,P1,1.10,EUR\n")

    async def interrupted(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(60)

    with monkeypatch.context() as patched:
        patched.setattr(bulk, "_work", interrupted)
        told = run("import", "spring.csv", "--idempotency-key", "spring", code=130)
    assert re.search(r"interrupted: `pricebook job \w{32}` goes on, and so does a server", told)
    said = run("import", "spring.csv", "--idempotency-key", "spring")
    assert ": 1 change in change set" in said
    assert run("import", "spring.csv", "--idempotency-key", "spring") == said


def test_prices_are_exported_and_imported_from_standard_input(run: Run, stores: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = ("--store", "1", "--channel", "ALL", "--type", "Base")
    exported = run("export", "--format", "csv", "--delimiter", ";", *chosen)
    assert exported.removeprefix("\ufeff").splitlines() == [
        "store;channel;type;product;combination;amount;currency",
        "1;ALL;Base;P1;;1.00;EUR",
        "1;ALL;Base;P2;;2.00;EUR",
    ]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(exported.encode())))
    assert "0 changes, 2 unchanged, 0 kept, 0 refused" in run("import", "-", "--format", "csv")


def test_a_terminal_sees_bars(run: Run, stores: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(progress, "Console", lambda **_: Console(file=shown, force_terminal=True, width=100))
    (stores / "spring.csv").write_text(HEADER + "".join(f"1,N{n},1.10,EUR\n" for n in range(50)))
    run("import", "spring.csv")
    for activity in ("reading, bytes", "checking lines", "adding lines", "51/51"):
        assert activity in shown.getvalue()
