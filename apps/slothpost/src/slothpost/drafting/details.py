"""What the notes of a change or a release tell people: points of a list, and sentences that can stand in a post."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from slothpost.activity import change_words
from slothpost.activity.classify import classify
from slothpost.activity.clean import clean_title
from slothpost.activity.happening import Commit
from slothpost.language.acronyms import in_words, unexplained
from slothpost.language.phrases import Phrase, phrase_of

_POINT = re.compile(r"^- (?P<text>.+)$")
_HEADING = re.compile(r"^(?P<name>[^-].{0,60}):$")
_FIXES = re.compile(r"\bfix(?:es|ed)?\b|\bbugs?\b", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z“\"])")
_BEFORE = re.compile(r"(?:Until now|Until recently|Before|Previously|So far|Up to now)\b", re.IGNORECASE)
_ABOUT_THE_CHANGE = re.compile(
    r"\b(?:this|these|the) (?:pr|pull request|commit|change|changes|patch|branch|diff|mr|fix)\b|"
    r"^(?:see|todo|note|also see|depends|closes|tested|please|adds?|fix(?:es)?|updates?|removes?|refactors?|and|but|or)\b|"
    r"\b(?:review|reviewer|merge|merged|rebase|screenshot|follow-?up|staging|localhost|prod|production)\b",
    re.IGNORECASE,
)
_NO_POINT = re.compile(
    r"(?:various |minor |small |other |general |some |many )*"
    r"(?:bug ?fix(?:es)?|fixes|performance|stability|improvements?|polish)\b.{0,50}$",
    re.IGNORECASE,
)
_LEANS = re.compile(
    r"(?:they|these|those|such|then|so|therefore|instead|otherwise|also|however|he|she|that|this|it|both|each|all of them)\b",
    re.IGNORECASE,
)
"""Sentences that need the one before them."""
_MIN_SENTENCE, _MAX_SENTENCE = 20, 170
_MAX_POINT = 90


def points_of(notes: str, vocabulary: Collection[str] = ()) -> Iterator[Phrase]:
    """Read the points of release notes that say something, in their order."""
    in_fixes = False
    for line in notes.splitlines():
        heading = _HEADING.match(line)
        if heading:
            in_fixes = bool(_FIXES.search(heading["name"]))
            continue
        point = _POINT.match(line)
        if point is None or len(point["text"]) > _MAX_POINT or _NO_POINT.match(point["text"]):
            continue
        seen = classify(Commit(f"fix: {point['text']}" if in_fixes else point["text"]))
        if seen.worth > 0 and not unexplained(seen.title, vocabulary):
            yield phrase_of(in_words(seen.title), is_fix=seen.kind == "fix")


def sentences_of(notes: str, vocabulary: Collection[str] = ()) -> tuple[str, ...]:
    """Return the sentences that people understand without knowing the code, in their order."""
    return tuple(sentence for sentence in _sentences(notes) if _is_plain(sentence, vocabulary) and not _LEANS.match(sentence))


def said_points_of(notes: str, vocabulary: Collection[str] = ()) -> Iterator[Phrase]:
    """Read the sentences of release notes that have no list."""
    for sentence in _sentences(notes):
        if len(sentence) <= _MAX_POINT and _is_plain(sentence, vocabulary) and not _LEANS.match(sentence):
            yield phrase_of(in_words(sentence))


def is_before(sentence: str) -> bool:
    """Return whether a sentence tells how it was before."""
    return _BEFORE.match(sentence) is not None


def _sentences(notes: str) -> Iterator[str]:
    prose = (line for line in notes.splitlines() if line.strip() and not _POINT.match(line) and not _HEADING.match(line))
    return (sentence.strip() for line in prose for sentence in _SENTENCE.split(line))


def _is_plain(sentence: str, vocabulary: Collection[str]) -> bool:
    return (
        _MIN_SENTENCE <= len(sentence) <= _MAX_SENTENCE
        and sentence[0].isupper()
        and sentence.endswith((".", "!"))
        and clean_title(sentence).rstrip(".!") == sentence.rstrip(".!")
        and not _ABOUT_THE_CHANGE.search(sentence)
        and not change_words.INTERNAL.search(sentence)
        and not change_words.TECHNICAL.search(sentence)
        and not unexplained(sentence, vocabulary)
    )
