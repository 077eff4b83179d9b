"""Names of versions, as people say them."""

from __future__ import annotations

import re

_VERSION = re.compile(
    r"(?<![\d.])v?(\d{1,4}(?:\.\d{1,4}){1,3})(?:[-.+ ]?(alpha|beta|rc|preview|pre|a|b)[-. ]?(\d{1,3})?)?(?![\d.])", re.I
)
_WHOLE = re.compile(r"v(\d{1,3})")
_SCOPED = re.compile(r"(?:@[\w-]+/)?([a-z][\w-]*)(?:@v?|-v|/v)(?=\d)")
_UNFINISHED = re.compile(
    r"nightly|canary|snapshot|continuous|latest|\bdev\b|\bci\b|\btest\b|\bnext\b|\bedge\b|insiders?|experimental", re.I
)
_STAGES = {"a": "alpha", "b": "beta", "pre": "preview", "rc": "release candidate"}


def named_version(text: str) -> str:
    """Return the version in a tag or a name as people say it: "v1.4.0" is "1.4", and "2.0.0-beta.2" is "2.0 beta 2"."""
    found = _VERSION.search(text)
    if found is None:
        whole = _WHOLE.fullmatch(text.strip())
        return whole[1] if whole else ""
    numbers = found[1].split(".")
    while len(numbers) > 2 and int(numbers[-1]) == 0:
        numbers.pop()
    stage = (found[2] or "").lower()
    return " ".join(part for part in (".".join(numbers), _STAGES.get(stage, stage), found[3] or "") if part)


def package_of(tag: str) -> str:
    """Return which package of a repository a tag is for: "cli" for "cli@1.2.3"; empty if it does not say."""
    found = _SCOPED.match(tag)
    return found[1] if found else ""


def is_finished(tag: str) -> bool:
    """Return whether a tag is for users, and not one that every push moves."""
    return _UNFINISHED.search(tag) is None


def version_worth(version: str) -> int:
    """Return how much a version deserves a post, without knowing what is in it: a patch less than others."""
    numbers = version.split(" ")[0].split(".")
    return 58 if len(numbers) > 2 else 72
