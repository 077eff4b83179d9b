"""docs/slothpost-security.md names tests: they exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[4]
TESTS = ROOT / "apps" / "slothpost" / "tests"
NAMED = re.compile(r"`((?:[\w]+/)*test_\w+\.py)`")


def test_every_test_that_the_page_names_exists() -> None:
    named = set(NAMED.findall((ROOT / "docs" / "slothpost-security.md").read_text(encoding="utf-8")))
    assert len(named) > 30
    assert {name for name in named if not (TESTS / name).exists() and not (ROOT / name).exists()} == set()


def test_every_test_of_this_folder_is_named_on_the_page() -> None:
    page = (ROOT / "docs" / "slothpost-security.md").read_text(encoding="utf-8")
    here = {f"security/{path.name}" for path in Path(__file__).parent.glob("test_*.py")} - {"security/test_the_page.py"}
    assert {name for name in here if f"`{name}`" not in page} == set()
