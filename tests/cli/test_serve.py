"""`tickler serve`: what it says at its start, and what it refuses. What it serves is tested with the server."""

from __future__ import annotations

import pytest

from tickler.cli.serve import _say_hello
from tickler.server.settings import ServerSettings

from .conftest import Here


def test_it_names_the_store_and_the_address_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Brackets are no colours: a path may have them, and an IPv6 address does."""
    _say_hello("sqlite:///[bold]t[/].db", ServerSettings(host="fe80::1"), 8321, runs=True)
    said = capsys.readouterr().err
    assert "on sqlite:///[bold]t[/].db, delivering" in said
    assert "http://[fe80::1]:8321/" in said


@pytest.mark.parametrize(
    ("variable", "value", "wanted"),
    [
        ("TICKLER_PORT", "abc", "a whole number from 0 to 65535"),
        ("TICKLER_PORT", "70000", "a whole number from 0 to 65535"),
        ("TICKLER_RATE", "0", "a number greater than 0"),
        ("TICKLER_MAX_BODY", "1.5", "a whole number of bytes, at least 1"),
        ("TICKLER_BODY_S", "soon", "a number of seconds greater than 0"),
        ("TICKLER_SECURE_COOKIE", "perhaps", "true or false"),
    ],
)
def test_a_variable_that_does_not_fit_is_named_with_what_it_wants(
    here: Here, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, wanted: str
) -> None:
    monkeypatch.setenv(variable, value)
    done = here("serve", "--store", "memory://")
    assert (done.code, done.out) == (1, "")
    remedy = "change it, or leave it out; see the settings table in the docs"
    assert done.err == f"tickler: {variable}: {value!r} is not {wanted}: {remedy}\n"
