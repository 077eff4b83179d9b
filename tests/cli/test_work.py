"""`tickler work`, run as people run it: what it refuses before it begins, what `--setup` may name, and Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Iterator
from pathlib import Path

import pytest
from under_fire.processes import TIMEOUT_S, end, ended, start

import tickler
from tickler import Delivery, InvalidInput
from tickler.cli.commands.work import load_setup

from .preloaded import run_tickler
from .test_migrate import run

HANDLERS = """
value = 5

class Registers:
    def all(self, tickler): ...

registers = Registers()

def register(tickler):
    tickler.handler("fine")(lambda fire: "done")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working folder, with a module that nothing else has imported."""
    (tmp_path / "our_handlers.py").write_text(HANDLERS)
    (tmp_path / "needs_more.py").write_text("import no_such_package\n")
    (tmp_path / "breaks.py").write_text("def half(n):\n    # of nothing\n    return 1 / n\n\nhalf(0)\n")
    (tmp_path / "misspelt.py").write_text("\ndef register(t) return\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in ("our_handlers", "needs_more", "breaks", "misspelt"):
        sys.modules.pop(name, None)


# What it refuses before it begins.


@pytest.mark.parametrize(
    ("option", "code", "said"),
    [
        (("--in-flight", "0"), 2, "Invalid value for '--in-flight'"),
        (("--in-flight", "100001"), 1, "in_flight: 100001 is not a whole number from 1 to 100000"),
        (("--lease", "4.9"), 2, "Invalid value for '--lease'"),
        (("--max-timeout", "0"), 2, "Invalid value for '--max-timeout'"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_an_option_that_cannot_be_is_named_and_nothing_is_touched(
    tmp_path: Path, option: tuple[str, str], code: int, said: str
) -> None:
    done = run_tickler("work", "--store", "sqlite:///t.db", *option, folder=tmp_path, COLUMNS="200")
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_without_a_store_the_error_names_both_ways_to_give_one(tmp_path: Path) -> None:
    done = run_tickler("work", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "--store" in done.stderr
    assert "TICKLER_STORE" in done.stderr


def test_a_setup_that_does_not_import_is_one_line_and_nothing_is_touched(tmp_path: Path) -> None:
    done = run_tickler("work", "--store", "sqlite:///t.db", "--setup", "nowhere:register", folder=tmp_path, COLUMNS="20")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("tickler: --setup nowhere:register: No module named 'nowhere': name a function as in ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("processes", ["1", "2"])
@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("TICKLER_ALLOW_NETWORKS", "10.0.0.0/8,localhost", "'localhost' is not a network: write "),
        ("TICKLER_ALLOW_PORTS", "70000", "invalid port '70000': write "),
        ("TICKLER_ALLOW_ARNS", "queue", "'queue' is neither an ARN nor "),
        ("TICKLER_SIGNING_SECRET", "hello", "is not base64: pass one that tickler.new_secret() made"),
    ],
)
def test_a_variable_that_does_not_read_is_named_once_and_nothing_is_touched(
    tmp_path: Path, processes: str, variable: str, value: str, said: str
) -> None:
    arguments = ("work", "--store", "sqlite:///t.db", "--processes", processes)
    done = run_tickler(*arguments, folder=tmp_path, **{variable: value})
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith(f"tickler: {variable}: {said}")
    assert list(tmp_path.iterdir()) == []


# What `--setup` may name: the same for `tick`.


@pytest.mark.parametrize(
    ("setup", "said"),
    [
        ("", "'' is not a module name: name a function as in "),
        (":register", "'' is not a module name"),
        (".our_handlers:register", "'.our_handlers' is not a module name"),
        ("our_handlers", "has no name behind a colon"),
        ("our_handlers:", "has no name behind a colon"),
        ("our_handlers:nothing", "has no attribute 'nothing'"),
        ("our_handlers:value", "has type int: name a function"),
        ("our_handlers:registers.all", "has no attribute 'registers.all'"),
        ("our_handlers.register", "No module named 'our_handlers.register'"),
        ("no_such_package.handlers:register", "No module named 'no_such_package': name a function as in "),
    ],
)
def test_a_setup_that_names_no_function_is_refused_with_what_was_found(folder: Path, setup: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        load_setup(setup)
    assert str(refused.value).startswith(f"--setup {setup}: ")
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("module", "line", "said"),
    [
        ("needs_more", 1, "ModuleNotFoundError: No module named 'no_such_package'"),
        ("breaks", 3, "ZeroDivisionError: division by zero"),
        ("misspelt", 2, "SyntaxError: "),
    ],
)
def test_a_setup_whose_module_fails_is_shown_with_the_file_and_the_line(folder: Path, module: str, line: int, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        load_setup(f"{module}:register")
    shown = str(refused.value)
    assert shown.startswith(f"--setup {module}:register: importing {module} failed:\n")
    assert f'File "{folder / module}.py", line {line}' in shown
    assert said in shown
    assert "name a function" not in shown
    assert "importlib" not in shown


async def test_a_setup_is_found_in_the_folder_it_is_run_in_and_called_with_the_tickler(folder: Path) -> None:
    async with tickler.connect("memory://") as t:
        load_setup("our_handlers:register")(t)
        with pytest.raises(InvalidInput, match="handler 'fine' is registered already"):
            t.handler("fine")(lambda fire: None)


def test_without_a_setup_nothing_is_registered() -> None:
    t = tickler.connect("memory://")
    load_setup(None)(t)

    def fine(fire: Delivery) -> None: ...

    assert t.handler("fine")(fine) is fine  # the name is free


# Ctrl-C.

LOGGING_TO_STDOUT = ("-c", "import sys; sys.stderr = sys.stdout; from tickler.cli import main; main()")


async def line_with(process: Process, said: bytes) -> bytes:
    """The next line that has this in it; those before it are skipped."""
    assert process.stdout is not None
    async with asyncio.timeout(TIMEOUT_S):
        async for line in process.stdout:
            if said in line:
                return line
    raise AssertionError(f"{said!r} was not said")


async def test_it_says_when_it_works_and_ends_well_at_ctrl_c(sqlite_url: str) -> None:
    """SIGTERM, and what becomes of what is in flight, is tested under fire."""
    process = await start(*LOGGING_TO_STDOUT, "work", "--store", f"{sqlite_url}?create=1", "--drain", "7.5")
    try:
        made = f" INFO created the Tickler tables in {sqlite_url}?create=1\n"
        assert made.encode() in await line_with(process, b"tables")
        await line_with(process, b" INFO working")
        process.send_signal(signal.SIGINT)
        stopping = await line_with(process, b"stopping")
        assert stopping.endswith(b" INFO stopping: attempts in flight have up to 7.5 s; signal again to exit at once\n")
        await line_with(process, b" INFO stopped\n")
        assert await ended(process) == 0
    finally:
        await end(process)
    async with tickler.connect(sqlite_url) as t:
        (record,) = await t.records.list("worker")
        assert isinstance(record.value, dict)
        assert record.value["doing"] == "stopped"


async def test_what_it_cannot_deliver_to_is_said_with_what_to_install(sqlite_url: str) -> None:
    _, code = LOGGING_TO_STDOUT
    without = code.replace("sys;", "sys; sys.modules['aiohttp'] = None;", 1)
    process = await start("-c", without, "work", "--store", f"{sqlite_url}?create=1")
    try:
        for kind, extra in (("HttpTarget", "http"), ("SqsTarget", "aws"), ("LambdaTarget", "aws")):
            said = await line_with(process, f"this worker does not deliver to {kind}: ".encode())
            assert said.endswith(f": the package aiohttp is not installed: pip install 'ticklerfile[{extra}]'\n".encode())
        await line_with(process, b" INFO working")
        process.terminate()
        assert await ended(process) == 0
    finally:
        await end(process)


STUBBORN = """
import asyncio, logging
from tickler.cli.shutdown import Shutdown

async def stubborn():
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass

async def main():
    tasks = [asyncio.create_task(stubborn()), asyncio.create_task(asyncio.sleep(60))]
    await asyncio.sleep(0)
    await Shutdown(lambda: None, 0, None).end()

logging.basicConfig()
asyncio.run(main())
"""


def test_a_task_that_goes_on_when_it_is_cancelled_is_named_and_left_behind(tmp_path: Path) -> None:
    done = run("-c", STUBBORN, folder=tmp_path)
    assert done.returncode == 0
    assert done.stderr.endswith("stopped, although these tasks did not end: stubborn > sleep\n")
