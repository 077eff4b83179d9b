"""What keeps the house tidy: short files, few public names, and none of the words that were removed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from mutants import MUTANTS

import tickler

TESTS = Path(__file__).parent
SOURCE = Path(tickler.__file__).parent
MAX_LINES = 600
MAX_PUBLIC_NAMES = 40
# Each was replaced everywhere by what stands behind it.
BANNED_PREFIXES = {
    "MOST_": "MAX_",
    "LONGEST_": "MAX_",
    "LARGEST_": "MAX_",
    "SHORTEST_": "MIN_",
    "SMALLEST_": "MIN_",
    "LEAST_": "MIN_",
    "PATIENCE": "…_TIMEOUT_S",
    "KEPT_MS": "…_RETENTION_MS",
}
BANNED_NAMES = {
    "Acknowledgements", "Asked", "Deed", "Door", "Gathering", "Hands", "Lacks", "Misfit", "Moves", "Nothing", "Owed", "Owing",
    "Room", "Sparingly", "Standing", "Steady", "Tally", "Telling", "Told", "Touched", "Turns", "silent", "unheard", "untold",
}  # fmt: skip


def sources() -> Iterator[tuple[str, str]]:
    for file in sorted(SOURCE.rglob("*.py")):
        yield file.relative_to(SOURCE).as_posix(), file.read_text(encoding="utf-8")


def module_level_names(text: str) -> Iterator[str]:
    for node in ast.parse(text).body:
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.name
            case ast.Assign() | ast.AnnAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                yield from (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))


def banned(name: str) -> bool:
    plain = name.lstrip("_")
    return plain in BANNED_NAMES or plain.startswith(tuple(BANNED_PREFIXES))


def test_the_ban_knows_what_it_bans() -> None:
    text = "MOST_TRIES = 3\n_PATIENCE_S: float = 1\nA, LEAST_B = 1, 2\nclass Hands: ...\ndef untold(): ...\nMAX_TRIES = 3\n"
    assert [name for name in module_level_names(text) if banned(name)] == [
        "MOST_TRIES",
        "_PATIENCE_S",
        "LEAST_B",
        "Hands",
        "untold",
    ]


def test_no_module_uses_a_word_that_was_removed() -> None:
    found = [f"{file}: {name}" for file, text in sources() for name in module_level_names(text) if banned(name)]
    assert found == []


def test_no_file_is_too_long_to_read() -> None:
    assert [file for file, text in sources() if text.count("\n") > MAX_LINES] == []


def test_the_public_names_can_be_learnt_in_an_afternoon() -> None:
    assert len(tickler.__all__) <= MAX_PUBLIC_NAMES


def test_every_mutant_fits_the_code_and_names_a_test_that_exists() -> None:
    tests = "\n".join(file.read_text(encoding="utf-8") for folder in (TESTS, SOURCE / "testing") for file in folder.rglob("*.py"))
    wrong = []
    for mutant in MUTANTS:
        file, _, name = mutant.test.partition("::")
        is_found = f"def {name.rpartition('::')[2].partition('[')[0]}(" in tests or "class " + name in tests
        fits = (SOURCE / mutant.file).read_text(encoding="utf-8").count(mutant.old) == 1
        if not (fits and (TESTS.parent / file).exists() and (is_found or not name)):
            wrong.append(mutant.name)
    assert wrong == []
