"""Puts the articles in that titles of changes leave out: "Add share button to plant page" has two.

Only nouns that are known here get one: nobody can tell "add search", which needs none, from "add filter" by its form.
"""

from __future__ import annotations

import re
from typing import Literal

from slothpost.language import nouns, verbs

Article = Literal["a", "the"]

_BARE_MODES = re.compile(
    r"\b(?:dark|light|night|offline|airplane|landscape|portrait|full-?screen|compact|read(?:er|ing)?) mode$", re.IGNORECASE
)
_VOWEL_SOUND = re.compile(r"(?:[aeio]|u(?!ni|se|rl|s\b|til)|hour|honest)", re.IGNORECASE)
_SPELLED = re.compile(r"[A-Z]{2,}|[A-Z]+\d")


def with_articles(text: str, first: Article | None) -> str:
    """Return a phrase with its articles. `first` is what its own noun gets; None leaves that one as it is."""
    words = text.split()
    made: list[str] = []
    article, previous, at = first, first, 0
    while at < len(words):
        length = _noun_phrase(words, at) if article else 0
        if article and length:
            phrase = words[at : at + length]
            made += ["the", *phrase] if not at and article == "the" and _is_topic(phrase) else _articled(phrase, article)
            previous, article = article, None
            at += length
        else:
            made.append(words[at])
            article = previous if words[at].lower() in ("and", "or", "&") else _article_after(words, at)
            at += 1
    return " ".join(made)


def definite(noun: str) -> str:
    """Return the subject of a sentence with its article: "the widget", "reminders"."""
    words = noun.split()
    has_one = not words or words[0].lower() in nouns.DETERMINERS or _bare(words[-1]) not in nouns.COUNTABLE
    return noun if has_one else f"the {noun}"


def noun_is_sure(text: str) -> bool:
    """Return whether a phrase with its articles can stand in a sentence: "a share button", "reminders", "dark mode"."""
    words = text.split()
    length = _noun_phrase(words, 0)
    if not length or any(word.endswith((",", ":", ";")) for word in words[:length]):
        return False
    head = _bare(words[length - 1])
    return words[0].lower() in nouns.DETERMINERS or _is_plural(head) or _is_mass(words[:length])


def is_fault(text: str) -> bool:
    """Return whether a phrase names a fault: "a crash when opening empty lists"."""
    words = text.split()
    length = _noun_phrase(words, 0)
    head = _bare(words[length - 1]) if length else ""
    return head in nouns.FAULTS or head.removesuffix("s") in nouns.FAULTS or head.removesuffix("es") in nouns.FAULTS


def _article_after(words: list[str], at: int) -> Article | None:
    """Return the article that a noun gets after this word, if it has none."""
    word = words[at].lower()
    following = words[at + 1].lower() if at + 1 < len(words) else ""
    if word == "to" and verbs.base_of(following) == following:
        return None  # "to pin a note"
    if word in nouns.PREPOSITIONS:
        return "the"
    if word in ("as", *nouns.SUBORDINATES):
        return None if _is_gerund(following) or word == "by" else "a"
    is_infinitive = at > 0 and words[at - 1].lower() == "to" and verbs.base_of(word) == word
    return "a" if is_infinitive or verbs.base_of_gerund(word) else None


def _noun_phrase(words: list[str], at: int) -> int:
    """Return how many words from here on belong to one noun."""
    end = at
    while end < len(words) and words[end].lower() not in nouns.STOPS:
        if end > at and _is_gerund(words[end]) and end + 1 < len(words) and words[end + 1].lower() not in nouns.STOPS:
            break  # "reminders firing twice", but "photo sharing"
        end += 1
        if words[end - 1].endswith((",", ":", ";", ".")):
            break
    return end - at


def _articled(phrase: list[str], article: Article) -> list[str]:
    head = _bare(phrase[-1])
    if phrase[0].lower() in nouns.DETERMINERS or phrase[0][:1].isdigit() or _is_mass(phrase):
        return phrase
    if phrase[0].lower() in nouns.DEFINITE and len(phrase) > 1:
        return ["the", *phrase]
    if article == "the" and phrase[0].lower() not in nouns.INDEFINITE:
        is_known = head in nouns.PLACES or (head in nouns.COUNTABLE and len(phrase) > 1)
        return ["the", *phrase] if is_known else phrase
    is_agent = len(head) > 5 and head.endswith(("er", "or")) and not head.endswith(("ower", "eather"))
    return [_indefinite(phrase[0]), *phrase] if head in nouns.COUNTABLE or is_agent else phrase


def _indefinite(word: str) -> str:
    if _SPELLED.match(word):
        return "an" if word[0] in "AEFHILMNORSX" else "a"
    return "an" if _VOWEL_SOUND.match(word) else "a"


def _is_plural(head: str) -> bool:
    return head.endswith("s") and not head.endswith(("ss", "us", "is"))


def _is_topic(phrase: list[str]) -> bool:
    return len(phrase) == 1 and _bare(phrase[0]) in nouns.TOPICS


def _is_mass(phrase: list[str]) -> bool:
    return _bare(phrase[-1]) in nouns.MASS or _is_gerund(phrase[-1]) or bool(_BARE_MODES.search(" ".join(phrase)))


def _is_gerund(word: str) -> bool:
    return len(word) > 4 and _bare(word).endswith("ing") and _bare(word) not in nouns.NOT_GERUNDS


def _bare(word: str) -> str:
    return word.strip(",.:;()\"“”'").lower()
