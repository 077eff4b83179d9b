"""`tickler serve`: what it says at its start, and what it refuses. What it serves is tested with the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tickler.cli.serve import _say_hello
from tickler.server.settings import ServerSettings


def test_it_names_the_store_and_the_address_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Brackets are no colours: a path may have them, and an IPv6 address does."""
    _say_hello("sqlite:///[bold]t[/].db", ServerSettings(host="fe80::1"), 8321, runs=True)
    said = capsys.readouterr().err
    assert "on sqlite:///[bold]t[/].db, delivering" in said
    assert "http://[fe80::1]:8321/" in said
