"""Runs what a guide's consoles show, all in one process: a command a line in, as JSON, and what it printed out.

Commands of Tickler's are calls, so that a guide may have many of them; anything else is the shell's.
"""

from __future__ import annotations

import io
import json
import logging
import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout, suppress

from tickler.cli.app import run


def main() -> None:
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as answers:
        for line in sys.stdin:
            answers.write(json.dumps(printed(json.loads(line))) + "\n")
            answers.flush()


def printed(command: str) -> str:
    """What somebody saw who typed it."""
    if command.startswith("export "):
        name, _, value = command.removeprefix("export ").partition("=")
        os.environ[name] = value
        return ""
    if command.startswith("tickler ") and not re.search(r"[|<>]", command):
        return called(shlex.split(command)[1:])
    typed = re.sub(r"\btickler ", f"{sys.executable} -m tickler ", command)
    ran = subprocess.run(["bash", "-c", typed], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    return ran.stdout


def called(arguments: list[str]) -> str:
    screen = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with redirect_stdout(screen), redirect_stderr(screen), suppress(SystemExit):
        run(arguments)
    logging.getLogger().handlers.clear()  # they would write to this screen
    screen.seek(0)
    return screen.read()


if __name__ == "__main__":
    main()
