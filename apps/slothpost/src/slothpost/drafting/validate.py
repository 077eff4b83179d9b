"""Our own check of every draft, whoever wrote it: what is wrong with it, in sentences that its author can act on."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator

from slothpost.drafting.alike import alike
from slothpost.drafting.drafter import DraftRequest
from slothpost.drafting.own_links import allowed_domains, foreign_links
from slothpost.drafting.redaction import names_pattern
from slothpost.text.check import check_text

_MENTION = re.compile(r"(?<![\w/.])@\w+")
_HASHTAG = re.compile(r"(?<![\w&/])#(?=\w*[^\W\d])\w+")
_TICKET = re.compile(r"(?<![\w&/])#\d+\b|\b(?!UTF-|SHA-|ISO-|GPT-|COVID-)[A-Z][A-Z0-9]{1,9}-\d{2,}\b")
_HASH = re.compile(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b")
_PATH = re.compile(
    r"(?<![\w:/.])(?:(?:[\w.-]+/)*[\w-]+\.(?:py|jsx?|tsx?|swift|kt|java|go|rs|rb|php|css|scss|ya?ml|toml|lock)\b|"
    r"(?:\.{1,2}|~|src|lib|tests?|packages)/[\w./-]+)"
)
_RESIDUE = re.compile(
    r"```|</?[a-z][\w-]*>|\{\{|\}\}|\{\w+\}|\[(?:link|url|name|product|emoji|insert|your|image|screenshot)[^\]]*\]|^\s*[{\[]\s*\"|"
    r"\bas an ai\b|\blanguage model\b.{0,30}\bI\b|^(?:sure|certainly|of course|okay|here(?:'s| is| are))\b.{0,60}:|"
    r"^(?:draft|post|tweet|text|option \d|version \d|output|final)\s*:|"
    r"\b(?:system prompt|previous instructions|the activity data)\b",
    re.IGNORECASE,
)
_HYPE = re.compile(
    r"\b(?:(?:super |so |very |really )?(?:excited|thrilled|proud|stoked|pumped|happy|delighted|pleased) to "
    r"(?:announce|share|introduce|release|launch|say)|"
    r"game[- ]?chang\w+|revolutioni[sz]\w+|unlock the power|take .{1,30} to the next level|supercharg\w+|"
    r"seamless(?:ly)?|cutting[- ]edge|"
    r"in today's (?:fast-paced )?world|say goodbye to|buckle up|big news|huge news)\b",
    re.IGNORECASE,
)
_INVISIBLE = re.compile(r"[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\u00ad\U000e0000-\U000e001f]")


def problems_of(text: str, request: DraftRequest) -> tuple[str, ...]:
    """Return what is wrong with a draft; nothing if it can be shown to its author."""
    if not text.strip():
        return ("the text is empty",)
    return tuple(_problems(text, request))


def banned_in(text: str, words: Collection[str]) -> tuple[str, ...]:
    """Return the words that occur in a text as words, whatever their case."""
    return tuple(word for word in words if word.strip() and _whole(word).search(_normal(text)))


def _problems(text: str, request: DraftRequest) -> Iterator[str]:
    product = request.product
    check = check_text(request.channel, text)
    yield from check.problems
    if found := foreign_links(text, check.links, product):
        own = ", ".join(sorted(allowed_domains(product))) or "none is known, so write no link at all"
        yield f"it links to {', '.join(found)}; links may only lead to the product's own domains: {own}"
    if found := tuple(_MENTION.findall(text)):
        yield f"it mentions {', '.join(found)}: name no accounts"
    asked = {tag.lower() for rule in (*product.voice.rules, request.hint) for tag in _HASHTAG.findall(rule)}
    if found := tuple(tag for tag in _HASHTAG.findall(text) if tag.lower() not in asked):
        yield f"it has the hashtag {found[0]}, which the author's rules do not ask for"
    if found := banned_in(text, product.voice.banned):
        yield f"it has words that the author has banned: {', '.join(found)}"
    hidden = None if product.tells_private else names_pattern(request.private_names, public=(product.name,))
    if hidden is not None and hidden.search(text):
        yield "it names a private repository"
    yield from _leftovers(text)
    yield from _repetitions(text, request)


def _leftovers(text: str) -> Iterator[str]:
    """Find what nobody wants in a post: marks of how it was made, code, and advertising."""
    for pattern, complaint in (
        (_RESIDUE, "it has “{}”, which is not part of a post: write only the text itself"),
        (_TICKET, "it has the ticket number {}: readers do not know it"),
        (_HASH, "it has the hash {}: readers do not know it"),
        (_PATH, "it has the path {}: name no files"),
        (_HYPE, "“{}” sounds like advertising: say plainly what changed"),
    ):
        found = pattern.search(text)
        if found:
            yield complaint.format(found[0].strip()[:60])
    if _INVISIBLE.search(text):
        yield "it has invisible characters"


def _repetitions(text: str, request: DraftRequest) -> Iterator[str]:
    recent = [other for other, _ in request.recent]
    if _normal(text) in {_normal(other) for other in recent}:
        yield "it is the same text as a recent post"
    elif recent and alike(text, recent[0]):
        yield "it reads like the last post: begin differently"


def _whole(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(_normal(word))}(?!\w)")


def _normal(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().replace("’", "'").split())
