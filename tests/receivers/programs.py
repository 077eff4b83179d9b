"""Programs that stand in the guides: taken out of them, so that what is shown is what runs, and served."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

GUIDES = Path(__file__).parent.parent.parent / "docs" / "guides"
SERVE = Path(__file__).parent / "serve.py"


def write_program(guide: str, name: str, folder: Path) -> Path:
    """The snippet that begins with this file's name, as that file."""
    text = (GUIDES / guide).read_text(encoding="utf-8")
    (code,) = re.findall(rf"^```\w+\n((?:#|//) {re.escape(name)}\n.*?)^```$", text, re.MULTILINE | re.DOTALL)
    program = folder / name
    program.write_text(code, encoding="utf-8")
    return program


@contextmanager
def served(program: Path, server: str, *options: str, environ: Mapping[str, str]) -> Iterator[str]:
    """The address of a process that serves the program, in the program's folder."""
    log = program.with_suffix(".log")
    with (
        log.open("w") as said,
        subprocess.Popen(
            [sys.executable, str(SERVE), program.name, server, *options],
            cwd=program.parent,
            env={**os.environ, **environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            assert port, log.read_text()
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
