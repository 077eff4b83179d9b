"""The command line: letting people in, tokens, one beat, and serving until a signal."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from slothpost.app import Slothpost, open_slothpost
from slothpost.cli import main
from slothpost.serving import serve
from slothpost.settings import Settings
from tickler import PythonTarget
from tickler.web import listen

HANG_S = 30

Run = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a command runs, with nothing in its environment but the store."""
    for name in [name for name in os.environ if name.startswith(("SLOTHPOST_", "TICKLER_KEY"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SLOTHPOST_STORE", f"sqlite:///{tmp_path / 'posts.db'}")
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


def test_the_first_who_is_invited_is_the_operator_and_signs_in_by_the_link(run: Run) -> None:
    assert re.fullmatch(r"http://127.0.0.1:8322/sign-in/[\w-]{43}\n", run("invite", "Ada Lovelace", "--zone", "Europe/Paris"))
    assert run("invite", "Bob").startswith("http://127.0.0.1:8322/sign-in/")
    ada, bob = sorted(run("users").splitlines(), key=lambda line: line.split()[1])
    assert ada.endswith("  Ada Lovelace  (operator)")
    assert bob.endswith("  Bob")
    assert re.fullmatch(r"http://127.0.0.1:8322/sign-in/[\w-]{43}\n", run("sign-in", bob.split()[0]))


def test_tokens_are_created_listed_and_revoked(run: Run) -> None:
    run("invite", "Ada")
    user = run("users").split()[0]
    assert re.fullmatch(r"sp_[0-9a-f]{16}_[0-9a-f]{64}\n", run("token", "create", user, "--name", "ci", "--read-only"))
    run("token", "create", user)
    first, second = (line.split("  ") for line in run("token", "list", user).splitlines())
    assert (first[1:], second[1:]) == (["read", "ci"], ["read, write", "command line"])
    run("token", "revoke", user, first[0])
    assert run("token", "list", user).split("  ")[0] == second[0]


@pytest.mark.parametrize(
    ("arguments", "code", "start"),
    [
        (("sign-in", "nobody"), 3, "slothpost: there is no such user 'nobody'"),
        (("token", "create", "nobody"), 3, "slothpost: there is no such user 'nobody'"),
        (("invite", "Ada", "--zone", "Mars/Olympus"), 1, "slothpost: zone: 'Mars/Olympus' is not a time zone: use a name"),
        (("serve", "--host", "0.0.0.0"), 1, "slothpost: SLOTHPOST_URL: it is missing, and 0.0.0.0 is reachable from"),
        (("tick", "--budget-ms", "0"), 2, "Usage: "),
        (("dance",), 2, "Usage: "),
    ],
)  # fmt: skip
def test_an_error_is_one_line_with_the_remedy(run: Run, arguments: tuple[str, ...], code: int, start: str) -> None:
    said = run(*arguments, code=code)
    assert said.startswith(start)
    assert said.count("\n") == 1 or code == 2, "what is wrong with the arguments comes with how to use them"


@pytest.mark.parametrize(
    ("name", "value", "start"),
    [
        ("SLOTHPOST_PORT", "http", "slothpost: SLOTHPOST_PORT: 'http' is not a port"),
        ("SLOTHPOST_URL", "posts.example.com", "slothpost: SLOTHPOST_URL: 'posts.example.com' is not an address"),
        ("SLOTHPOST_STORE", "postgresql://nowhere.invalid/x", "slothpost: TICKLER_KEY: it is missing"),
        ("SLOTHPOST_STORE", "sqlite:////nowhere/at/all.db", "slothpost: TICKLER_KEY: /nowhere/at/all.db.key cannot be written"),
        ("TICKLER_KEY", "short", "slothpost: TICKLER_KEY: "),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str, value: str, start: str
) -> None:
    monkeypatch.setenv(name, value)
    said = run("users", code=1)
    assert said.startswith(start)
    assert said.count("\n") == 1


def test_the_key_of_a_file_is_made_once_and_readable_by_its_owner_only(run: Run, folder: Path) -> None:
    run("users")
    kept = folder / "posts.db.key"
    key = kept.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    run("users")
    assert kept.read_text() == key


def test_the_database_is_readable_by_its_owner_only(run: Run, folder: Path) -> None:
    run("invite", "Ada")
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}
    assert modes["posts.db"] == 0o600
    assert set(modes.values()) == {0o600}


def test_a_beat_says_what_it_did(run: Run) -> None:
    assert json.loads(run("tick"))["claimed"] == 0


def test_an_address_that_is_taken_is_one_line(run: Run) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        said = run("serve", "--port", str(port), code=1)
    assert said.startswith(f"slothpost: port: cannot listen on 127.0.0.1:{port} (")


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as found:
        return int(found.getsockname()[1])


@pytest.fixture
def served(folder: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    port = free_port()
    command = [sys.executable, "-m", "slothpost", "serve", "--port", str(port)]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process, port
        finally:
            process.kill()


def said_until(process: subprocess.Popen[str], part: str) -> str:
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if part in line:
            return said
    raise AssertionError(said)


async def test_the_first_run_prints_a_link_that_signs_the_operator_in_and_ends_well(
    served: tuple[subprocess.Popen[str], int],
) -> None:
    process, port = served
    said = await asyncio.to_thread(said_until, process, "this link signs in once")
    (link,) = re.findall(rf"open  (http://127.0.0.1:{port}/sign-in/[\w-]+)", said)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
        async with browser.get(link) as asked:
            assert asked.status == 200
            (token,) = re.findall(r'name="form_token" value="([0-9a-f]{64})"', await asked.text())
        async with browser.post(link, data={"form_token": token}) as entered:
            assert (entered.status, entered.url.path) == (200, "/")
        async with browser.get(f"http://127.0.0.1:{port}/api/account") as account:
            assert (await account.json())["name"] == "Operator"
    process.send_signal(signal.SIGTERM)
    rest = await asyncio.to_thread(said_until, process, "stopped")
    assert "stopping" in rest
    assert process.wait(HANG_S) == 0


@pytest.fixture
async def slothpost(sqlite_url: str) -> AsyncIterator[Slothpost]:
    async with open_slothpost(Settings(store=sqlite_url)) as opened:
        yield opened


async def answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionError:  # also one that is taken and dropped while the server ends
        return False
    writer.close()
    return True


async def test_a_signal_lets_what_is_being_done_end(slothpost: Slothpost) -> None:
    begun, go_on, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @slothpost.t.handler("slow")
    async def slow(delivery: object) -> None:
        begun.set()
        await go_on.wait()
        done.set()

    with closing(listen("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        serving = asyncio.create_task(serve(slothpost, listening, works=True))
        async with asyncio.timeout(HANG_S):
            await slothpost.t.send("ada", "slow", PythonTarget("slow"))
            await begun.wait()
            signal.raise_signal(signal.SIGTERM)
            while await answers(port):
                await asyncio.sleep(0.01)
            assert not serving.done()
            go_on.set()
            await serving
    assert done.is_set()


async def test_a_worker_that_fails_ends_it_with_its_error(slothpost: Slothpost) -> None:
    fires: Any = slothpost.t.store.fires

    async def claim(request: object) -> object:
        raise RuntimeError("a bug")

    fires.claim = claim
    with closing(listen("127.0.0.1", 0)) as listening, pytest.raises(RuntimeError, match="a bug"):
        async with asyncio.timeout(HANG_S):
            await serve(slothpost, listening, works=True)


async def test_without_a_worker_it_only_answers(slothpost: Slothpost) -> None:
    with closing(listen("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        serving = asyncio.create_task(serve(slothpost, listening, works=False))
        async with asyncio.timeout(HANG_S), aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/health/live") as answer:
                assert answer.status == 200
            assert slothpost.t.own_workers == []
            signal.raise_signal(signal.SIGINT)
            await serving
