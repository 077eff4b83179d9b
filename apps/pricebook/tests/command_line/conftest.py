"""Runs commands in a folder of their own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pricebook.cli import main

Run = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a command runs, with nothing in its environment but the store."""
    for name in [name for name in os.environ if name.startswith(("PRICEBOOK_", "TICKLER_KEY"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PRICEBOOK_STORE", f"sqlite:///{tmp_path / 'prices.db'}")
    monkeypatch.setenv("TICKLER_KEY", "")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command, and return what it prints."""

    def run(*arguments: str, code: int = 0) -> str:
        with pytest.raises(SystemExit) as leaving:
            main(arguments)
        said = capsys.readouterr()
        assert (leaving.value.code or 0) == code, said
        return said.err if code else said.out

    return run
