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
_KEEPS = frozenset(
    ["preserve", "keep", "remember", "restore", "respect", "save", "retain", "honor", "follow", "match", "render", "load"]
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
            made += _definite(phrase) if not at and article == "the" else _articled(phrase, article)
            previous, article = article, None
            at += length
        else:
            made.append(words[at])
            article = previous if words[at].lower() in ("and", "or", "&") else _article_after(words, at)
            at += 1
    return " ".join(made)


def of_action(action: str) -> str:
    """Return what users can do with its articles: "pin a note", "hide the sidebar"."""
    verb, _, rest = action.partition(" ")
    words = rest.split()
    length = _noun_phrase(words, 0) if words else 0
    is_unique = bool(length) and _bare(words[length - 1]) in nouns.UNIQUE
    return f"{verb} {with_articles(rest, 'the' if is_unique else 'a')}".strip()


def of_behavior(verb: str, rest: str) -> str:
    """Return what a product does something to with its articles: "remembers the last filter", "sends a summary"."""
    if verb in _KEEPS:
        return with_articles(rest, "the")
    done = with_articles(rest, "a")
    words = rest.split()
    is_bare = done == with_articles(rest, None) and not _is_mass(words[: _noun_phrase(words, 0)] or words)
    return with_articles(rest, "the") if is_bare else done


def definite(noun: str) -> str:
    """Return the subject of a sentence with its article: "the widget", "reminders"."""
    words = noun.split()
    has_one = not words or words[0].lower() in nouns.DETERMINERS or _bare(words[-1]) not in nouns.COUNTABLE
    return noun if has_one else f"the {noun}"


def is_compound(words: list[str]) -> bool:
    """Return whether words end as the name of one thing does: "focus timer", "order history"."""
    return _is_mass(words) or _is_countable(_bare(words[-1]))


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
        if end > at and words[end].lower() in nouns.ADVERBS | nouns.DETERMINERS:
            break
        if end > at and _is_participle(words, end):
            break
        end += 1
        if words[end - 1].endswith((",", ":", ";", ".")):
            break
    return end - at


def _is_participle(words: list[str], at: int) -> bool:
    """Return whether a form on -ing tells what a noun does: "reminders firing twice", but not "photo sharing"."""
    if not _is_gerund(words[at]) or at + 1 == len(words) or words[at + 1].lower() in nouns.STOPS:
        return False
    return _is_plural(_bare(words[at - 1])) or words[at + 1].lower() in nouns.ADVERBS | nouns.DETERMINERS | nouns.PRONOUNS


def _articled(phrase: list[str], article: Article) -> list[str]:
    head = _bare(phrase[-1])
    if _has_none(phrase) or _is_mass(phrase):
        return phrase
    if phrase[0].lower() in nouns.DEFINITE and len(phrase) > 1:
        return ["the", *phrase]
    if article == "the" and phrase[0].lower() not in nouns.INDEFINITE:
        is_known = head in nouns.PLACES or (head in nouns.COUNTABLE and len(phrase) > 1)
        return ["the", *phrase] if is_known else phrase
    return [_indefinite(phrase[0]), *phrase] if _is_countable(head) else phrase


def _definite(phrase: list[str]) -> list[str]:
    """Return what a verb such as "improve" is about: one thing that is there already has its article."""
    last = phrase[-1]
    is_one = last[:1].islower() and not _is_plural(_bare(last)) and not _BARE_MODES.search(" ".join(phrase))
    return phrase if _has_none(phrase) or not is_one else ["the", *phrase]


def _has_none(phrase: list[str]) -> bool:
    """Return whether words take no article: they have one, or are a pronoun, an adverb, a number or somebody's."""
    first = phrase[0].lower()
    if len(phrase) > 1 and verbs.base_of_gerund(first):
        return True
    is_other = (
        first in nouns.DETERMINERS | nouns.PRONOUNS | nouns.ADVERBS or first.endswith(("'s", "’s")) or verbs.is_adverb(first)
    )
    return is_other or first[:1].isdigit() or _bare(phrase[-1]) in nouns.ADVERBS


def _indefinite(word: str) -> str:
    if _SPELLED.match(word):
        return "an" if word[0] in "AEFHILMNORSX" else "a"
    return "an" if _VOWEL_SOUND.match(word) else "a"


def _is_countable(head: str) -> bool:
    is_agent = len(head) > 5 and head.endswith(("er", "or")) and not head.endswith(("ower", "eather"))
    return head in nouns.COUNTABLE or is_agent


def _is_plural(head: str) -> bool:
    return head.endswith("s") and not head.endswith(("ss", "us", "is"))


def _is_mass(phrase: list[str]) -> bool:
    return _bare(phrase[-1]) in nouns.MASS or _is_gerund(phrase[-1]) or bool(_BARE_MODES.search(" ".join(phrase)))


def _is_gerund(word: str) -> bool:
    return len(word) > 4 and _bare(word).endswith("ing") and _bare(word) not in nouns.NOT_GERUNDS


def _bare(word: str) -> str:
    return word.strip(",.:;()\"“”'").lower()
