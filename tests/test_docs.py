"""Every snippet in README and docs runs: a page from top to bottom, in an empty folder, its snippets sharing their names."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import CodeType

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SNIPPET = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
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
    """A program as a program, tests by pytest, and anything else here."""
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
async def test_a_pages_snippets_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres_url: str, dynamodb_endpoint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamodb_endpoint)
    monkeypatch.setenv("DATABASE_URL", postgres_url.partition("&schema=")[0])
    names: dict[str, object] = {"__name__": f"docs_{page.stem}"}
    for language, code, line in snippets(page):
        if language == "python":
            await run_python(code, page, line, names)
        elif language == "sh":
            command = code.replace("tickler ", f"{sys.executable} -m tickler ")
            subprocess.run(["bash", "-euc", command], check=True, timeout=60, env={**os.environ})
        elif language == "toml":
            assert tomllib.loads(code)
        else:
            assert language == "", f"{page.name}:{line}: nobody runs {language!r} snippets"


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


async def test_the_readmes_example_prints_what_is_due(tmp_path: Path) -> None:
    (code,) = (code for language, code, _ in snippets(ROOT / "README.md") if language == "python")
    assert len(code.strip().splitlines()) <= 13
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert sorted(ran.stdout.splitlines()) == [
        "ada digest 0 9 * * mon-fri Europe/Paris",
        "bob posts weekly(tue 09:00, thu 17:30) Asia/Tokyo",
    ]
