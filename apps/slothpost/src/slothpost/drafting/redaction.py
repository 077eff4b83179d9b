"""Takes what must stay private out of activity, before anything is written about it."""

from __future__ import annotations

import re
from collections.abc import Collection

from slothpost.activity.clean import clean_title
from slothpost.model import Activity
from tickler.table import MISSING, evolve

_GENERIC_NAMES = (
    "app apps web website site api server backend frontend mobile ios android main core client desktop docs landing "
    "monorepo platform service services dashboard admin ui www blog infra test tests"
)
_GENERIC = frozenset(_GENERIC_NAMES.split())
_PARTS = re.compile(r"[-_./ ]+")
_SENTENCES = re.compile(r"(?<=[.!?]) +")
_MIN_NAME = 3
_MIN_WORDS = 2


def redacted(activity: Activity, names: re.Pattern[str] | None) -> Activity | None:
    """Return a private activity without its link, without code and without names; None if nothing is left to tell."""
    title = clean_title(activity.title, names)
    if len(title.split()) < _MIN_WORDS:
        return None
    lines = [line for line in activity.body.splitlines() if names is None or names.search(line) is None]
    return evolve(activity, title=title, body="\n".join(map(_plain, lines)).strip(), url=MISSING)


def names_pattern(names: Collection[str], *, public: Collection[str]) -> re.Pattern[str] | None:
    """Return what finds names, however their parts are joined. Names that are `public` anyway are left out."""
    known = {_joined(name) for name in public}
    parts = {part for name in names for part in (name, *name.split("/")) if len(part) >= _MIN_NAME}
    hidden = sorted(part for part in parts if part.lower() not in _GENERIC and _joined(part) not in known)
    if not hidden:
        return None
    joined = (r"[-_./ ]?".join(map(re.escape, _PARTS.split(part))) for part in hidden)
    return re.compile(rf"(?<![\w])(?:{'|'.join(joined)})(?![\w])", re.IGNORECASE)


def _plain(line: str) -> str:
    """Return a line of a body without code: a point of a list cleaned, a paragraph without the sentences that have some."""
    if line.startswith("- "):
        title = clean_title(line[2:])
        return f"- {title}" if title else ""
    return " ".join(sentence for sentence in _SENTENCES.split(line) if _ends(clean_title(sentence)) == _ends(sentence))


def _ends(sentence: str) -> str:
    return sentence.strip().rstrip(".!?:")


def _joined(name: str) -> str:
    return _PARTS.sub("", name).lower()
