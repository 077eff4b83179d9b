"""Runs every snippet of the README and the docs: each page from top to bottom, in an empty folder, with shared names.

A Python snippet that begins with a file name is written to that file. The output of a console block must match, except for `…`,
ids, and times close to now. tests/receivers runs the programs that guides serve or deploy. Commands in sentences, and in blocks
without a language, must exist with the options that they show.
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import CodeType
from typing import Self

import pytest
import typer
import yaml
from typer.core import TyperGroup

import tickler
from tickler.cli.app import build_app, run

ROOT = Path(__file__).parent.parent
SOURCE = Path(tickler.__file__).parent
ARCHITECTURE = ROOT / "docs" / "architecture.md"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SNIPPET = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\w+)\.py\n")
EXAMPLE = re.compile(r"# (examples/\S+\.py)\n")
INLINE = re.compile(r"`(tickler [^`]+)`")
BLOCK_LINE = re.compile(r"^tickler .+$", re.MULTILINE)
LINK = re.compile(r"\[[^\]]+\]\(([^)#\s]+)?(#[^)\s]+)?\)")


def snippets(page: Path) -> list[tuple[str, str, int]]:
    """Return language, text and line of each snippet."""
    text = page.read_text(encoding="utf-8")
    return [(match[1], match[2], text.count("\n", 0, match.start()) + 2) for match in SNIPPET.finditer(text)]


def compiled(code: str, page: Path, line: int) -> CodeType:
    """Compile a snippet that may use `await` outside a function."""
    tree = ast.increment_lineno(ast.parse(code), line - 1)
    code_object: CodeType = compile(tree, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    return code_object


async def run_python(code: str, page: Path, line: int, names: dict[str, object]) -> None:
    """Import a file in a new process, run a program in one, run tests with pytest, and run anything else here.

    Parts of an example must be as they are in its file; tests/examples runs it.
    """
    if example := EXAMPLE.match(code):
        whole = (ROOT / example[1]).read_text(encoding="utf-8")
        for part in code[example.end() :].split("...\n"):
            assert part.strip("\n") in whole, f"{example[1]} has changed, and {page.name}:{line} has not"
        return
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
    """Wait until all workers run, stop them, and expect a clean exit."""
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
    """Make a project's entry points available to the following programs, as if the project were installed."""
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


COMMANDS = typer.main.get_command(build_app())
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{3})?")
ANY_ID = re.compile(r"(?<=fire_)[0-9a-f]{32}|(?<=tk_)[0-9a-f]{16}_[0-9a-f]{64}|\b[0-9a-f]{16}\b")


class Consoles:
    """Runs the console blocks of a page in one process: tests/docs_console.py."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._process is not None:
            self._process.communicate(timeout=60)

    def run(self, code: str) -> None:
        for block in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
            command, _, shown = block.partition("\n")
            printed = self._printed(command)
            assert re.fullmatch(_pattern(shown), _blurred(printed)), f"$ {command}\n{printed}"

    def _printed(self, command: str) -> str:
        if self._process is None:
            program = [sys.executable, str(ROOT / "tests" / "docs_console.py")]
            self._process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return str(json.loads(self._process.stdout.readline()))


def _blurred(printed: str) -> str:
    """Replace what differs each time: ids, times close to now, and the column widths that depend on them."""
    now = datetime.now(UTC)

    def blur(time: re.Match[str]) -> str:
        at = datetime.fromisoformat(time[0]).replace(tzinfo=UTC)
        return "<now>" if abs(at - now) < timedelta(days=1) else time[0]

    return re.sub(" +", " ", ANY_ID.sub("<id>", TIME.sub(blur, printed)))


def _pattern(shown: str) -> str:
    """Return the pattern that the output must match; a time may be the one shown, or close to now."""
    texts_and_times = re.split(f"({TIME.pattern})", re.sub(" +", " ", ANY_ID.sub("<id>", shown)))
    texts = [re.escape(text).replace("…", ".*") for text in texts_and_times[::2]]
    times = [f"(?:{re.escape(time)}|<now>)" for time in texts_and_times[1::2]]
    return "".join(text + time for text, time in zip(texts, [*times, ""], strict=True))


def check_rights(code: str) -> None:
    """Check that these are rights. tests/table/test_postgres_stream.py grants them, and shows that they suffice."""
    assert all(re.fullmatch(r"GRANT .+ TO [a-z, ]+;", line) for line in code.splitlines())


# The languages whose snippets run synchronously.
RUNNERS: dict[str, Callable[[str], object]] = {
    "sh": run_shell,
    "toml": run_toml,
    "json": json.loads,
    "yaml": yaml.safe_load,
    "js": check_javascript,
    "sql": check_rights,
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
    monkeypatch.setenv("CRON_SECRET", "what the cron services of these pages have to know")
    names: dict[str, object] = {"__name__": f"docs_{page.stem}"}
    with Consoles() as consoles:
        for language, code, line in snippets(page):
            if language == "python":
                await run_python(code, page, line, names)
            elif language == "console":
                consoles.run(code)
            elif language:
                assert language in RUNNERS, f"{page.name}:{line}: no runner for {language!r} snippets"
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_that_a_page_names_exist(page: Path) -> None:
    prose = SNIPPET.sub("", page.read_text(encoding="utf-8"))
    shown = [line for language, code, _ in snippets(page) if not language for line in BLOCK_LINE.findall(code)]
    for line in [*INLINE.findall(prose), *shown]:
        command, words = COMMANDS, shlex.split(line, comments=True)[1:]
        for word in words:
            if isinstance(command, TyperGroup) and not word.startswith("-"):
                assert word in command.commands or word == "…", f"{page.name}: {line}"
                command = command.commands.get(word, COMMANDS)
            elif re.match("--?[a-z]", word):
                options = {each for option in command.params for each in (*option.opts, *option.secondary_opts)}
                assert word.partition("=")[0] in options, f"{page.name}: {line}"
        if words[0] == "preview" and len(words) > 1:  # `preview` needs no store
            with pytest.raises(SystemExit, match=r"^0$"):
                run(words)


async def test_the_readmes_example_delivers_what_is_due(tmp_path: Path) -> None:
    (code,) = (code for language, code, _ in snippets(ROOT / "README.md") if language == "python")
    assert len(code.strip().splitlines()) <= 16
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    delivered, summary = ran.stdout.splitlines()
    assert delivered.startswith("ada {'to': 'ada@example.org'} ")
    assert summary.startswith("Summary(claimed=1, delivered=1, failed=0, dead=0, left=False, ")


def test_the_architecture_shows_the_layers_that_are_checked() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    drawn = "\n".join(layer.replace("tickler.", "") for layer in layers)
    assert f"```\n{drawn}\n```" in ARCHITECTURE.read_text(encoding="utf-8")


def test_the_architecture_fits_on_two_screens() -> None:
    lines = ARCHITECTURE.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 125
    assert [line for line in lines if len(line) > 130] == []


def test_the_architecture_names_files_that_exist() -> None:
    """`<backend>` stands for each store; on DynamoDB a module may be a folder."""
    named = re.findall(r"[\w<>/]+\.py\b", ARCHITECTURE.read_text(encoding="utf-8"))
    for backend in ("memory", "sqlite", "postgres", "dynamodb"):
        for file in (SOURCE / name.replace("<backend>", backend) for name in named if "/" in name):
            assert file.exists() or file.with_suffix("").is_dir(), f"architecture.md names {file}"


def test_the_architecture_lists_what_applications_may_import() -> None:
    """Every module is public or forbidden to applications; of a public package, the modules within are forbidden."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    (forbidden,) = (
        set(each["forbidden_modules"]) for each in contracts if each.get("source_modules") == ["slothpost", "pricebook"]
    )
    section = ARCHITECTURE.read_text(encoding="utf-8").split("## What applications may import\n")[1].split("\n## ")[0]
    public = set(re.findall(r"`(tickler\.\w+)`", section))
    modules = {f"tickler.{path.stem}" for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    modules -= {"tickler.__init__", "tickler.__main__"}
    packages = {name for name in public if (SOURCE / name.removeprefix("tickler.")).is_dir()}
    assert forbidden == (modules - public) | {f"{name}.*" for name in packages}


def test_the_architecture_has_every_package_in_its_tree() -> None:
    (tree,) = (code for _, code, _ in snippets(ARCHITECTURE) if code.startswith("src/tickler/"))
    drawn = {name for line in tree.splitlines()[1:] for name in re.findall(r"(\w+)/ ", line[:23])}
    assert drawn == {init.parent.name for init in SOURCE.glob("*/__init__.py")}
