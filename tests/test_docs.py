"""Every snippet in README and docs runs: a page from top to bottom, in an empty folder, its snippets sharing their names.

A Python snippet that begins with a file's name is that file. What a guide serves or deploys is run by tests/receivers.
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import CodeType

import pytest
import yaml

import tickler

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SNIPPET = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\w+)\.py\n")
LINK = re.compile(r"\[[^\]]+\]\(([^)#\s]+)?(#[^)\s]+)?\)")


def snippets(page: Path) -> list[tuple[str, str, int]]:
    """Language, text and line of each."""
    text = page.read_text(encoding="utf-8")
    return [(match[1], match[2], text.count("\n", 0, match.start()) + 2) for match in SNIPPET.finditer(text)]


def compiled(code: str, page: Path, line: int) -> CodeType:
    """With `await` allowed outside a function, as the snippets have it."""
    tree = ast.increment_lineno(ast.parse(code), line - 1)
    code_object: CodeType = compile(tree, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    return code_object


async def run_python(code: str, page: Path, line: int, names: dict[str, object]) -> None:
    """A file is imported, by a process of its own; a program as a program, tests by pytest, and anything else here."""
    if file := FILE.match(code):
        Path(f"{file[1]}.py").write_text(code, encoding="utf-8")
        subprocess.run([sys.executable, "-c", f"import {file[1]}"], check=True, timeout=60)
        return
    if "asyncio.run(" in code or "class Test" in code:
        Path("test_snippet.py").write_text(code, encoding="utf-8")
        arguments = ["-m", "pytest", "-q"] if "class Test" in code else []
        ran = subprocess.run([sys.executable, *arguments, "test_snippet.py"], capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert ran.stdout
        return
    result = eval(compiled(code, page, line), names)
    if inspect.iscoroutine(result):
        await result


def run_shell(code: str) -> None:
    command = code.replace("tickler ", f"{sys.executable} -m tickler ")
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    if "tickler work" in code:
        run_workers(command, environ)
    else:
        subprocess.run(["bash", "-euc", command], check=True, timeout=60, env=environ)


def run_workers(command: str, environ: dict[str, str]) -> None:
    """Until all of them work; then they are told to stop, and end well."""
    processes = re.search(r"--processes (\d+)", command)
    starting = int(processes[1]) if processes else 1
    with subprocess.Popen(["bash", "-euc", f"exec env {command}"], stderr=subprocess.PIPE, text=True, env=environ) as workers:
        assert workers.stderr is not None
        said = ""
        while said.count("INFO working") < starting and (line := workers.stderr.readline()):
            said += line
        workers.send_signal(signal.SIGTERM)
        said += workers.communicate(timeout=60)[1]
    assert workers.returncode == 0, said


def run_toml(code: str) -> None:
    """A project's entry points are there for the programs that follow, as if the project were installed."""
    groups: dict[str, dict[str, str]] = tomllib.loads(code).get("project", {}).get("entry-points", {})
    folder = Path("snippets-1.dist-info")
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: snippets\nVersion: 1\n", encoding="utf-8")
    with (folder / "entry_points.txt").open("a", encoding="utf-8") as file:
        for group, points in groups.items():
            file.write("\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in points.items()), ""]))


def check_javascript(code: str) -> None:
    Path("snippet.mjs").write_text(code, encoding="utf-8")
    if node := shutil.which("node"):
        subprocess.run([node, "--check", "snippet.mjs"], check=True, timeout=60)


# Those that nothing has to wait for.
RUNNERS: dict[str, Callable[[str], object]] = {
    "sh": run_shell,
    "toml": run_toml,
    "json": json.loads,
    "yaml": yaml.safe_load,
    "js": check_javascript,
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
async def test_a_pages_snippets_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres_url: str, dynamodb_endpoint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamodb_endpoint)
    monkeypatch.setenv("DATABASE_URL", postgres_url.partition("&schema=")[0])
    monkeypatch.setenv("TICKLER_KEY", tickler.new_key())
    monkeypatch.setenv("TICKLER_SIGNING_SECRET", tickler.new_secret())
    monkeypatch.setenv("CRON_SECRET", "what the beats of these pages have to know")
    names: dict[str, object] = {"__name__": f"docs_{page.stem}"}
    for language, code, line in snippets(page):
        if language == "python":
            await run_python(code, page, line, names)
        elif language:
            assert language in RUNNERS, f"{page.name}:{line}: nobody runs {language!r} snippets"
            RUNNERS[language](code)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_pages_links_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        if target.startswith("http"):
            continue
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{page.name} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {"#" + re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in slugs, f"{page.name} links to {target}{anchor}"


async def test_the_readmes_example_delivers_what_is_due(tmp_path: Path) -> None:
    (code,) = (code for language, code, _ in snippets(ROOT / "README.md") if language == "python")
    assert len(code.strip().splitlines()) <= 16
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    delivered, summary = ran.stdout.splitlines()
    assert delivered.startswith("ada {'to': 'ada@example.org'} ")
    assert summary.startswith("Summary(claimed=1, delivered=1, failed=0, dead=0, left=False, ")
