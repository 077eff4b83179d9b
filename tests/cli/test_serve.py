"""`tickler serve`: what it says at its start, and what it refuses. What it serves is tested with the server."""

from __future__ import annotations

import socket

import pytest

from tickler.cli.commands.serve import _print_access, _print_address
from tickler.server.settings import ServerSettings

from .conftest import Here


def test_it_names_the_store_and_the_address_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Brackets are no colours: a path may have them, and an IPv6 address does."""
    _print_address("sqlite:///[bold]t[/].db", ServerSettings(host="fe80::1"), 8321, runs=True)
    said = capsys.readouterr().err
    assert "on sqlite:///[bold]t[/].db, delivering" in said
    assert "http://[fe80::1]:8321/" in said


def test_it_says_how_other_commands_find_the_store(capsys: pytest.CaptureFixture[str]) -> None:
    """As one line, to be pasted."""
    store = f"sqlite:///{'long/' * 30}my demo.db"
    _print_address(store, ServerSettings(), 8321, runs=True)
    assert f"export TICKLER_STORE='{store}'\n" in capsys.readouterr().err
    _print_address("memory://", ServerSettings(), 8321, runs=True, is_shared=False)
    assert "TICKLER_STORE" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "is_closed", "said"),
    [
        (ServerSettings(), False, "  open to this machine only, without a token; for other machines use --host and a token\n\n"),
        (ServerSettings(), True, "  every request needs a token: create one with `tickler token create`\n\n"),
        (ServerSettings(host="0.0.0.0"), True, "  every request needs a token: create one with `tickler token create`\n\n"),
    ],
)
def test_it_says_who_is_let_in(capsys: pytest.CaptureFixture[str], settings: ServerSettings, is_closed: bool, said: str) -> None:
    _print_access(settings, is_closed=is_closed)
    assert capsys.readouterr().err == said


def test_a_port_that_is_taken_is_refused_with_both_ways_to_name_another(here: Here) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = here("serve", "--store", "memory://", "--port", str(port))
    assert (done.code, done.out) == (1, "")
    assert done.err.endswith(": choose another --port or TICKLER_PORT\n")


@pytest.mark.parametrize(
    ("variable", "value", "wanted"),
    [
        ("TICKLER_PORT", "abc", "a whole number from 0 to 65535"),
        ("TICKLER_PORT", "70000", "a whole number from 0 to 65535"),
        ("TICKLER_RATE", "0", "a number greater than 0"),
        ("TICKLER_MAX_BODY", "1.5", "a whole number of bytes, at least 1"),
        ("TICKLER_BODY_S", "soon", "a number of seconds greater than 0"),
        ("TICKLER_SECURE_COOKIE", "perhaps", "true or false"),
        ("TICKLER_MAX_CONNECTIONS", "0", "a whole number, at least 1"),
        ("TICKLER_MAX_ADDRESS_CONNECTIONS", "many", "a whole number, at least 1"),
        ("TICKLER_PROXIES", "proxy.example", "addresses or networks such as 10.0.0.0/8, separated by commas"),
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
