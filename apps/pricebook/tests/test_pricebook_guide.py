"""The guide and the README: every variable, command and query that they name exists, and the script of the guide works."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import typer
from graphql import parse, validate
from typer.core import TyperGroup

from pricebook.app import Pricebook
from pricebook.app.settings import PREFIX
from pricebook.app.settings import VARIABLES as NAMES
from pricebook.cli import app
from pricebook.graphql.schema import build_schema
from pricebook.loading.loader import load_catalogue
from pricebook.loading.made_catalogue import MadeCatalogue
from pricebook.serving import serve
from pricebook.web.visitors import make_web, price_tokens
from tickler.web import listen

ROOT = Path(__file__).parents[3]
GUIDE = ROOT / "docs" / "guides" / "pricebook.md"
README = ROOT / "apps" / "pricebook" / "README.md"
SCRIPT = ROOT / "examples" / "pricebook_changes.py"
PAGES = [GUIDE, README]

COMMANDS = typer.main.get_command(app)
VARIABLES = frozenset(f"{PREFIX}{name.upper()}" for name in NAMES)
_INLINE = re.compile(r"`(pricebook [^`]+)`")
_BLOCK = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINE = re.compile(r"(?:^|/)(pricebook [\w-].*)$", re.MULTILINE)
_OPERATION = re.compile(r'^```\n((?:query|mutation)\b.*?)^```$|"""\n((?:query|mutation)\b.*?)"""', re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]+\]\(([^)#\s]+)?(?:#[^)\s]+)?\)")


def test_the_guide_has_every_variable() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    assert {name for name in VARIABLES if f"`{name}`" not in text} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_variable_that_a_page_names_exists(page: Path) -> None:
    named = set(re.findall(rf"{PREFIX}[A-Z_]+[A-Z]", page.read_text(encoding="utf-8")))
    assert named - VARIABLES == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for line in [*_INLINE.findall(text), *(line for block in _BLOCK.findall(text) for line in _LINE.findall(block))]:
        command = COMMANDS
        for word in shlex.split(line, comments=True)[1:]:
            if isinstance(command, TyperGroup) and not word.startswith("-"):
                assert word in command.commands, line
                command = command.commands[word]
            elif word.startswith("-"):
                assert word in {option for each in command.params for option in each.opts}, line


def test_every_command_is_in_the_guide() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    assert isinstance(COMMANDS, TyperGroup)
    for name, command in COMMANDS.commands.items():
        for each in [f"{name} {sub}" for sub in command.commands] if isinstance(command, TyperGroup) else [name]:
            assert f"pricebook {each}" in text, each


def test_every_operation_of_the_guide_and_of_its_script_is_valid() -> None:
    schema = build_schema()
    found = [*_OPERATION.findall(GUIDE.read_text(encoding="utf-8")), *_OPERATION.findall(SCRIPT.read_text(encoding="utf-8"))]
    assert len(found) >= 10
    for query in (block or text for block, text in found):
        assert validate(schema, parse(query)) == [], query


def test_the_links_of_the_readme_lead_somewhere() -> None:
    for target in filter(None, _LINK.findall(README.read_text(encoding="utf-8"))):
        assert target.startswith("http") or (README.parent / target).resolve().exists(), target


@pytest.fixture
async def address(opened: Pricebook) -> AsyncIterator[str]:
    with closing(listen("127.0.0.1", 0)) as listening:
        serving = asyncio.create_task(serve(opened, listening, works=False))
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        signal.raise_signal(signal.SIGTERM)
        await serving


async def test_the_script_of_the_guide_changes_a_price(opened: Pricebook, address: str) -> None:
    await load_catalogue(opened.db, MadeCatalogue(store_count=1, product_count=2), opened.now() - timedelta(days=1))
    tokens = price_tokens(make_web(opened))
    _, editor = await tokens.issue("editor", ["read", "edit"])
    _, approver = await tokens.issue("approver", ["read", "approve"])
    environ = {**os.environ, "PRICEBOOK_URL": address, "EDITOR_TOKEN": editor, "APPROVER_TOKEN": approver}
    command = [sys.executable, str(SCRIPT), "10000", "PROD0001"]
    ran = await asyncio.create_subprocess_exec(*command, env=environ, stdout=asyncio.subprocess.PIPE)
    said = (await ran.communicate())[0].decode().splitlines()
    assert ran.returncode == 0
    before = MadeCatalogue().amount("10000", "ALL", 1)
    day = datetime.now(UTC).date() + timedelta(days=2)
    assert said == ["findings: []", f"APPROVING {before} becomes {before * 9 // 10} on {day}"]
