"""Clients generated from the OpenAPI document work against a live service. Downloads the generators: `make soak`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from server.live_service import live_service
from tickler.server.openapi.document import document

PYTHON_GENERATOR = "openapi-python-client==0.29.1"  # in an environment of its own: it needs another Typer than we do
NODE_PACKAGES = ("openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3", "@types/node@20")
HERE = Path(__file__).parent / "clients"
EXPECTED = ["201", "0 9 * * *", "3", "k/1", "is not due yet", "0 10 * * *", "3", "204", "404"]


@pytest.fixture
def folder(soak: bool, tmp_path: Path) -> Path:
    """A folder with the OpenAPI document."""
    if not soak:
        pytest.skip("downloads a generator: make soak")
    (tmp_path / "openapi.json").write_text(json.dumps(document()), encoding="utf-8")
    return tmp_path


def run(*command: str | Path, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check_output(output: str) -> None:
    """Check what a client printed, one line per response."""
    lines = output.splitlines()
    assert len(lines) == len(EXPECTED), output
    assert [expected for expected, line in zip(EXPECTED, lines, strict=True) if expected not in line] == [], output


def test_a_python_client_puts_gets_lists_explains_changes_and_deletes(folder: Path) -> None:
    run(sys.executable, "-m", "venv", "venv", folder=folder)
    python = folder / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PYTHON_GENERATOR, folder=folder)
    where = ("--path", "openapi.json", "--output-path", "tickler_client", "--meta", "none")
    generated = run(python, "-m", "openapi_python_client", "generate", *where, folder=folder)
    assert "will not be generated" not in generated
    shutil.copy(HERE / "use_client.py", folder)
    with live_service() as (url, token):
        check_output(run(python, "use_client.py", url, token, folder=folder))


@pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm")
def test_a_typescript_client_puts_gets_lists_explains_changes_and_deletes(folder: Path) -> None:
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    run("npm", "install", "--no-audit", "--no-fund", *NODE_PACKAGES, folder=folder)
    run("npx", "openapi-typescript", "openapi.json", "-o", "tickler.d.ts", folder=folder)
    shutil.copy(HERE / "use_client.ts", folder)
    run("npx", "tsc", "--strict", "--module", "nodenext", "--target", "es2022", "--types", "node", "use_client.ts", folder=folder)
    with live_service() as (url, token):
        check_output(run("node", "use_client.js", url, token, folder=folder))
