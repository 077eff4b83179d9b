"""Warnings about a target when its schedule is put, before anything is sent."""

from __future__ import annotations

import sys

import pytest

from tickler import HttpTarget, PythonTarget, connect
from tickler.deliver.target_warnings import target_warnings


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8000/hook", "http://localhost:8000/", "http://a.localhost/", "http://[::1]/", "http://10.0.0.1/"]
)
def test_a_target_that_the_guard_would_refuse_is_warned_of_with_the_variable_that_is_needed(url: str) -> None:
    (warning,) = target_warnings(HttpTarget(url), {}, ())
    assert warning.startswith("a worker with the settings of this process would not deliver it: ")
    assert " set TICKLER_ALLOW_NETWORKS=" in warning
    assert target_warnings(url, {}, ()) == [warning]
    assert target_warnings(url, {"TICKLER_ALLOW_NETWORKS": "127.0.0.0/8,::1,10.0.0.1"}, ()) == []
    assert target_warnings(url, {}, ("0.0.0.0/0", "::/0")) == []


@pytest.mark.parametrize(
    "url", ["https://example.org/", "http://backend:8000/", "http://8.8.8.8/", "http://[::1", "127.0.0.1", ""]
)
def test_what_is_public_or_not_known_yet_is_not_warned_of(url: str) -> None:
    assert target_warnings(url, {}, ()) == []


def test_what_is_no_url_or_cannot_be_judged_here_is_not_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    assert target_warnings(None, {}, ()) == target_warnings(PythonTarget("echo"), {}, ()) == []
    assert target_warnings("http://127.0.0.1/", {"TICKLER_ALLOW_PORTS": "many"}, ()) == []
    monkeypatch.setitem(sys.modules, "tickler.deliver.address_guard", None)
    assert target_warnings("http://127.0.0.1/", {}, ()) == []


def test_the_settings_are_those_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TICKLER_ALLOW_NETWORKS", raising=False)
    url = "http://127.0.0.1:8000/hook"
    assert len(connect("memory://").warnings(url)) == 1
    assert connect("memory://", allow_networks=["127.0.0.0/8"]).warnings(url) == []
    own = connect("memory://")
    own.deliver_with(HttpTarget, own._handlers)
    assert own.warnings(url) == []
    monkeypatch.setenv("TICKLER_ALLOW_NETWORKS", "127.0.0.0/8")
    assert connect("memory://").warnings(url) == []
