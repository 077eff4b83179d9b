"""What was wrong, in titles of fixes."""

from __future__ import annotations

import re

from slothpost.language import nouns, verbs
from slothpost.language.articles import definite, is_fault, with_articles

FINITE = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|did|will|would|could|can|cannot|may|might|gets?|"
    r"(?:is|are|was|were|do|does|did|has|have|wo|ca|would|could)n['’]?t)\b",
    re.IGNORECASE,
)
"""Verbs that make a sentence of what is around them."""

_BUG = re.compile(
    r"(?:an? |the )?(?:\w+ )?(?:bug|issue|problem|error|case|regression)s? (?:where|when|with|that|in|of)\b", re.IGNORECASE
)
_PAUSES = (nouns.PREPOSITIONS | nouns.SUBORDINATES | {"with"}) - {"where"}
_ALONE_WORDS = (
    "crashes freezes fails flickers disappears hangs overlaps resets vanishes stops appears closes opens stays jumps "
    "hides lags stalls blinks fires crash freeze fail vanish overlap disappear"
)
_ALONE = frozenset(_ALONE_WORDS.split())


def fault_of(rest: str) -> tuple[str, bool]:
    """Return what was wrong with its articles, and whether it names the fault itself."""
    if _BUG.match(rest):
        return with_articles(rest, "a"), True
    words = rest.split()
    until = next((at for at, word in enumerate(words) if at and word.lower() in _PAUSES), len(words))
    verb_at = _verb_at(words[:until])
    if verb_at:
        after = words[verb_at + 1 :]
        is_object = bool(after) and not FINITE.fullmatch(words[verb_at]) and not after[-1].endswith("s")
        is_known = is_object and after[0].lower() in nouns.FAULTY | nouns.DEFINITE
        what = f"{'the ' * is_known}{with_articles(' '.join(after), None)}"
        return f"a bug where {definite(' '.join(words[:verb_at]))} {words[verb_at]} {what}".strip(), True
    if is_fault(rest):
        return with_articles(rest, "a"), True
    if words[0].lower() in nouns.FAULTY and len(words) > 1:
        is_plural = words[until - 1].lower().endswith("s")
        return with_articles(rest, None) if is_plural else f"a{'n' * (words[0][0] in 'aeiou')} {with_articles(rest, None)}", True
    is_participle = "not" in words[1:until] or any(verbs.base_of_gerund(word) for word in words[1 : until - 1])
    return with_articles(rest, "the"), is_participle


def _verb_at(words: list[str]) -> int:
    """Return where the verb is if these begin a sentence, such as "reminder fires twice"; 0 if they do not."""
    for at, word in enumerate(words[1:], start=1):
        if FINITE.fullmatch(word):
            return at
        verb = verbs.base_of_third_person(word)
        if verb is None and verbs.base_of(word) == word.lower() and words[at - 1].endswith("s"):
            verb = word.lower()
        if verb in verbs.SYMPTOMS and (at < len(words) - 1 or word.lower() in _ALONE):
            return at
    return 0
