"""Runs `tickler` in processes of their own that need not import it: forks of one that has. An import takes half a second."""

from __future__ import annotations

import atexit
import json
import os
import runpy
import signal
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tickler.cli.app import build_app

HANGS_AFTER_S = 60
IMPORTED_LATE = [
    "tickler.stores.sqlite",
    "tickler.stores.postgres",
    "tickler.stores.dynamodb",
    "tickler.deliver.targets.aws_http",
]


def run_tickler(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """As `python -m tickler` in that folder, with stdin at its end."""
    inherited = {name: value for name, value in os.environ.items() if name != "TICKLER_STORE"}
    with TemporaryDirectory() as temporary:
        out, err = Path(temporary, "out"), Path(temporary, "err")
        wanted = {"arguments": arguments, "folder": str(folder), "environment": inherited | environment}
        code = _parent().ask({**wanted, "out": str(out), "err": str(err)})
        return subprocess.CompletedProcess(arguments, code, out.read_text("utf-8"), err.read_text("utf-8"))


class _Parent:
    """The process that has imported everything. It ends with this one, when its stdin does."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=environment,
        )
        atexit.register(self._process.communicate)

    def ask(self, wanted: dict[str, Any]) -> int:
        """The exit code of a child that does it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(wanted), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())


@cache
def _parent() -> _Parent:
    return _Parent()


def _serve() -> None:
    build_app()
    for module in IMPORTED_LATE:
        import_module(module)
    for line in sys.stdin:
        wanted = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(wanted)
            return
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)  # noqa: T201  # to whoever started it


def _become(wanted: dict[str, Any]) -> None:
    """A process as Python starts it, and leave the rest to Python: what is raised, what is flushed, how it ends."""
    signal.alarm(HANGS_AFTER_S)
    for number, path, how in ((0, os.devnull, "rb"), (1, wanted["out"], "wb"), (2, wanted["err"], "wb")):
        with open(path, how) as file:
            os.dup2(file.fileno(), number)
    os.chdir(wanted["folder"])
    os.environ.clear()
    os.environ.update(wanted["environment"])
    sys.path[0] = wanted["folder"]
    sys.argv = ["tickler", *wanted["arguments"]]
    runpy.run_module("tickler", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _serve()
