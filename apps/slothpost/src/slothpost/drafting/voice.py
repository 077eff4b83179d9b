"""How an author writes: what templates can follow of sample posts and rules."""

from __future__ import annotations

import re
from collections import Counter

import msgspec

from slothpost.model import Voice

_EMOJI = re.compile(r"[\u2600-\u27bf\u2b50\u2b55\U0001f300-\U0001faff]\ufe0f?")
_SENTENCE_START = re.compile(r"(?:^|[.!?]\s+|\n+(?:[-–•*]\s*)?)([A-Za-z])")
_HASHTAG = re.compile(r"#\w+")
_NEGATION = re.compile(r"\b(?:no|not|never|don'?t|do not|without|avoid|skip|stop|less|fewer|zero)\b", re.IGNORECASE)
_WE = re.compile(r"\b(?:we|we're|we've|our|us)\b", re.IGNORECASE)
_I = re.compile(r"\b(?:i|i'm|i've|my|me)\b", re.IGNORECASE)


class Style(msgspec.Struct, frozen=True, kw_only=True):
    """What templates follow. None: the author has not said."""

    emoji: str = ""  # the one to use; empty: none
    is_lower_case: bool = False
    is_plural: bool = False  # "we" rather than "I"
    ends_open: bool = False  # no full stop at the end
    is_short: bool = False
    hashtags: tuple[str, ...] = ()
    lists: bool | None = None
    questions: bool | None = None
    links: bool | None = None


def style_of(voice: Voice, hint: str = "") -> Style:
    """Return the style of an author. Rules count more than samples, and the hint for this draft counts most."""
    rules = [*voice.rules, *([hint] if hint else [])]
    samples = [sample.strip() for sample in voice.samples if sample.strip()]
    emoji = _emoji(samples)
    wants_emoji = _asked(rules, r"emojis?|emoticons?")
    if wants_emoji is False:
        emoji = ""
    lower = _asked(rules, r"lower[- ]?case|no capitals|capital letters")
    plural = _asked(rules, r"[\"'“”]?we[\"'“”]?(?= form| not| instead|,|\.|$)|first person plural|plural")
    return Style(
        emoji=emoji or ("🎉" if wants_emoji else ""),
        is_lower_case=_starts_lower(samples) if lower is None else lower,
        is_plural=_says_we(samples) if plural is None else plural,
        ends_open=bool(samples) and not any(sample.rstrip()[-1] in ".!?…" for sample in samples),
        is_short=bool(_asked(rules, r"shorter|short|brief|concise|one sentence|one line")),
        hashtags=_hashtags(rules),
        lists=_asked(rules, r"lists?|bullets?|bullet points?"),
        questions=_asked(rules, r"questions?|ask\b"),
        links=_asked(rules, r"links?|urls?"),
    )


def _asked(rules: list[str], words: str) -> bool | None:
    """Return whether a rule asks for something (True) or against it (False); the last rule that names it decides."""
    asked = None
    for rule in rules:
        for clause in re.split(r"[.;\n]|, (?=\w+ )|\bbut\b", rule):
            found = re.search(rf"\b(?:{words})", clause, re.IGNORECASE)
            if found:
                asked = _NEGATION.search(clause[: found.start()]) is None
    return asked


def _emoji(samples: list[str]) -> str:
    """Return the emoji that most samples have; empty if most have none."""
    having = [set(_EMOJI.findall(sample)) for sample in samples]
    if sum(map(bool, having)) * 2 <= len(samples):
        return ""
    counted: Counter[str] = Counter(emoji for found in having for emoji in sorted(found))
    return max(counted, key=lambda emoji: counted[emoji])


def _starts_lower(samples: list[str]) -> bool:
    starts = [start for sample in samples for start in _SENTENCE_START.findall(sample)]
    return bool(starts) and sum(start.islower() for start in starts) * 3 > 2 * len(starts)


def _says_we(samples: list[str]) -> bool:
    text = " ".join(samples)
    return len(_WE.findall(text)) > len(_I.findall(text))


def _hashtags(rules: list[str]) -> tuple[str, ...]:
    asked = [rule for rule in rules if _HASHTAG.search(rule) and not _NEGATION.search(rule)]
    return tuple(dict.fromkeys(tag for rule in asked for tag in _HASHTAG.findall(rule)))[:3]
