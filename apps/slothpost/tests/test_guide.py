"""The guide and the README: every variable and every command that they name exists, and every variable is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from slothpost.cli import app
from slothpost.settings import known_variables

ROOT = Path(__file__).parents[3]
GUIDE = ROOT / "docs" / "guides" / "slothpost.md"
README = ROOT / "apps" / "slothpost" / "README.md"
SECURITY = ROOT / "docs" / "slothpost-security.md"
PAGES = [GUIDE, README, SECURITY]

COMMANDS = typer.main.get_command(app)
VARIABLES = frozenset(f"SLOTHPOST_{name.upper()}" for name in known_variables())
_INLINE = re.compile(r"`(slothpost [^`]+)`")
_BLOCK = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINE = re.compile(r"(?:^|/)(slothpost [\w-].*)$", re.MULTILINE)
_LINK = re.compile(r"\[[^\]]+\]\(([^)#\s]+)?(?:#[^)\s]+)?\)")


def test_the_guide_has_every_variable() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    assert {name for name in VARIABLES if f"`{name}`" not in text} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_variable_that_a_page_names_exists(page: Path) -> None:
    named = set(re.findall(r"SLOTHPOST_[A-Z_]+[A-Z]", page.read_text(encoding="utf-8")))
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


def test_the_links_of_the_readme_lead_somewhere() -> None:
    for target in filter(None, _LINK.findall(README.read_text(encoding="utf-8"))):
        assert target.startswith("http") or (README.parent / target).resolve().exists(), target
