"""Commands, run within this process: as fast as calls, and with everything that `tickler` itself does around them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tickler.cli.app import run


class Done(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        """Its answer, which has to be one line."""
        (line,) = self.lines
        return json.loads(line)


Here = Callable[..., Done]


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Here:
    """`here("list", "--json")`: runs `tickler list --json`. The store comes from TICKLER_STORE, or by an option."""
    monkeypatch.delenv("TICKLER_STORE", raising=False)
    monkeypatch.setenv("USER", "ada")

    def call(*arguments: str) -> Done:
        capsys.readouterr()
        with pytest.raises(SystemExit) as leaving:
            run(list(arguments))
        said = capsys.readouterr()
        assert isinstance(leaving.value.code, int)
        return Done(leaving.value.code, said.out, said.err)

    return call


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, here: Here, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty store, which commands are run on unless they say otherwise."""
    return on(request, str(request.param), monkeypatch)


@pytest.fixture
def file_url(request: pytest.FixtureRequest, here: Here, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same, for what does not depend on which store it is."""
    return on(request, "sqlite", monkeypatch)


def on(request: pytest.FixtureRequest, store: str, monkeypatch: pytest.MonkeyPatch) -> str:
    url = str(request.getfixturevalue(f"{store}_url"))
    monkeypatch.setenv("TICKLER_STORE", url)
    return url
