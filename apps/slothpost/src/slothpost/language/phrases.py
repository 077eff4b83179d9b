"""Takes the title of a change apart, so that sentences can be made of it."""

from __future__ import annotations

import re

import msgspec

from slothpost.language import nouns, verbs
from slothpost.language.articles import (
    Article,
    definite,
    is_compound,
    noun_is_sure,
    of_action,
    of_behavior,
    with_articles,
)
from slothpost.language.faults import FINITE, fault_of
from slothpost.language.names import lower_start

_READERS = r"(?:the )?(?:users?|you|people|everyone|anyone|everybody)"
_OTHERS = (
    r"(?:the )?(?:customers?|clients?|visitors?|members?|admins?|teams?|guests?|owners?|editors?|students?|players?|subscribers?)"
)
_PEOPLE = rf"(?:{_READERS}|{_OTHERS})"
_CAN = re.compile(rf"(?:now )?(?P<who>{_PEOPLE}) can(?: now)? (?P<rest>.+)", re.IGNORECASE)
_LET = re.compile(
    rf"(?:allow|let|enable|permit)(?:s|ed)? (?:for )?(?P<who>{_PEOPLE})(?: to)? (?P<rest>\w+ .+|\w+)", re.IGNORECASE
)
_ALLOW = re.compile(r"(?:allow|enable|support|permit)(?:s|ed)? (?:to )?(?P<verb>\w+)\b(?P<rest>.*)", re.IGNORECASE)
_ABILITY = re.compile(
    rf"(?:(?:add|implement|introduce|provide|create|give)\w* )?(?:{_PEOPLE} )?(?:the |an? )?"
    rf"(?P<noun>ability|possibility|way|option|choice)(?: for {_PEOPLE})? to (?P<rest>\w+ .+|\w+)",
    re.IGNORECASE,
)
_POSSIBLE = re.compile(rf"(?:made|makes?|making) it possible(?: for {_PEOPLE})? to (?P<rest>\w+ .+|\w+)", re.IGNORECASE)
_YOU = {"they": "you", "their": "your", "theirs": "yours", "themselves": "yourself"}
_THEY = re.compile(r"\b(?:they|theirs?|themselves)\b", re.IGNORECASE)
_NEGATIVE = re.compile(
    r"(?P<not>don['’]?t|do not|no longer|never|stop(?:s|ped)?) (?P<how>\w+ly )?(?P<verb>\w+)\b(?P<rest>.*)", re.IGNORECASE
)
_RELATIVE = frozenset(["you", "they", "we", "i", "he", "she", "that", "which", "who"])
_NOW = re.compile(r"\b(?:now|no longer)\b", re.IGNORECASE)
_NOUNISH_WORDS = (
    "search export import filter share print sort log load update report play copy edit record support split track rate "
    "undo bookmark drag archive sync test scan release link count limit match schedule set pin group hide back build "
    "launch"
)
_NOUNISH = frozenset(_NOUNISH_WORDS.split())
_HEADS = re.compile(
    r"\b(?:button|page|view|screen|mode|sheet|menu|tab|bar|field|options?|shortcuts?|dialog|icon|panel|builder|editor|improvements?|"
    r"support|redesign|format|count|limit)$",
    re.IGNORECASE,
)
_QUOTE = re.compile(r"[\"“”]|(?<!\w)['‘]")
_ASIDE = re.compile(r"(?<=\w{3}) +[—–-] +(?=\w)")
_ADDED_TO = re.compile(r"(?P<what>(?:(?!\b(?:in|on|from|for|of|with|as|by|when|access|due)\b).)+?) to (?P<place>.+)")
_SECOND_VERB = re.compile(r"(?:,| and| &| \+|;)(?: also)? (?=(\w+) \w)", re.IGNORECASE)
_SPLITTING = frozenset(
    ["add", "fix", "improve", "remove", "make", "allow", "show", "redesign", "simplify", "introduce", "support", "let"]
)


class Phrase(msgspec.Struct, frozen=True, kw_only=True):
    """What a title says, in the forms that sentences take; None where it has no such form. All start in lower case."""

    item: str  # in a list: "dark mode", "export invoices as CSV", "fixed a crash on startup"
    novelty: str | None = None  # after "New in Plantlog:"
    thing: str | None = None  # a noun, perhaps without its article: "share button on the plant page"
    did: str | None = None  # after "I": "added dark mode"
    noun: str | None = None  # after "has": "a share button"
    lacked: str | None = None  # after "had no": "share button"
    can: str | None = None  # after "you can": "export invoices as CSV"
    does: str | None = None  # after the product: "now shows the total"
    will: str | None = None  # after the product: "will show the total"
    says: str | None = None  # a sentence of its own: "lists load twice as fast now"
    fixed: str | None = None  # after "fixed": "a crash on startup"
    bug: str | None = None  # what was wrong, as a noun: "a crash on startup"


def phrase_of(title: str, *, is_fix: bool = False) -> Phrase:
    """Return what a title says. Every title has at least an item."""
    text = lower_start(_ASIDE.split(title.strip().rstrip("."))[0])
    split = _split(text)
    if split is not None:
        return _joined(_read(split[0], is_fix=is_fix), _read(lower_start(split[1]), is_fix=False), text)
    return _read(text, is_fix=is_fix)


def _read(text: str, *, is_fix: bool) -> Phrase:
    offered = _offered(text)
    if offered is not None:
        return offered
    negative = _NEGATIVE.match(text)
    negated = _negated(negative) if negative else None
    if negated is not None:
        return negated
    word, _, rest = text.partition(" ")
    if verbs.is_adverb(word) and rest:
        return _behaved(word, rest, text)
    if (_is_action(word, rest) and not is_fix) or word == "let":
        return _unsure(text)
    verb = _verb(word, rest)
    if verb is None:
        return _unsure(text) if is_fix and not _NOW.search(text) else _named(text)
    if verb in verbs.FIXES:
        return _fix(verb, rest)
    return _acted(verb, rest, text)


def _offered(text: str) -> Phrase | None:
    """Read what users can do now."""
    ability = _ABILITY.match(text)
    if ability:
        can = of_action(ability["rest"])
        noun = f"an option to {can}" if ability["noun"].lower() in ("option", "choice") else f"a way to {can}"
        return Phrase(item=can, novelty=can, did=f"added {noun}", noun=noun, can=can)
    found = _CAN.fullmatch(text) or _LET.fullmatch(text) or _POSSIBLE.fullmatch(text)
    if found:
        who = found.groupdict().get("who") or "you"
        return _can(_addressed(found["rest"])) if re.fullmatch(_READERS, who, re.IGNORECASE) else _others_can(who, found["rest"])
    allowed = _ALLOW.fullmatch(text)
    if allowed:
        verb = verbs.base_of_gerund(allowed["verb"])
        if verb is not None:
            return _can(f"{verb}{allowed['rest']}")
    return None


def _can(what: str) -> Phrase:
    can = of_action(what)
    return Phrase(item=can, novelty=can, did=f"added a way to {can}", can=can)


def _others_can(who: str, what: str) -> Phrase:
    can = of_action(what)
    return Phrase(item=f"{who} can {can}", did=f"added a way for {who} to {can}", says=f"{who} can now {can}")


def _addressed(what: str) -> str:
    """Return what users can do as it is said to one of them: "the people they live with" are those you live with."""
    return _THEY.sub(lambda found: _YOU[found[0].lower()], what)


def _negated(found: re.Match[str]) -> Phrase | None:
    is_stopped = found["not"].lower().startswith("stop")
    verb = verbs.base_of_gerund(found["verb"]) if is_stopped else verbs.base_of(found["verb"]) or found["verb"].lower()
    if verb is None:
        return None
    adverb = "never" if found["not"].lower() == "never" else "no longer"
    adverb = f"{adverb} {(found['how'] or '').lower()}".strip()
    rest = with_articles(found["rest"].strip(), "the")
    does = f"{adverb} {verbs.third_person(verb)} {rest}".strip()
    return Phrase(item=does, does=does, will=f"will {adverb} {verb} {rest}".strip())


def _named(text: str) -> Phrase:
    """Read a title without a verb in front: a sentence, or the name of what is new."""
    words = text.split()
    is_clause = len(words) > 2 and words[0].endswith("s") and verbs.base_of(words[1]) == words[1] and words[1] in verbs.DOES
    active_at = _active_at(words)
    if active_at:
        said = f"{definite(' '.join(words[:active_at]))} {' '.join(words[active_at:])}"
        return Phrase(item=said, says=said)
    if is_clause or _NOW.search(text) or _is_sentence(words):
        said = with_articles(text, None)
        return Phrase(item=said, says=said)
    return _thing(text, "add")


def _is_sentence(words: list[str]) -> bool:
    """Return whether a title has a finite verb of its own: "the map is faster", but not "a metronome you can see"."""
    found = next((at for at, word in enumerate(words) if at and FINITE.fullmatch(word)), 0)
    return found == 1 or (found > 1 and words[found - 1].lower() not in _RELATIVE)


def _active_at(words: list[str]) -> int:
    """Return where the verb of a sentence such as "list sorts itself" is; 0 if it is none."""
    for at, word in enumerate(words[1:-1], start=1):
        follows = words[at + 1].lower()
        if verbs.base_of_third_person(word) and follows in nouns.PRONOUNS | nouns.DETERMINERS:
            return at
    return 0


def _thing(text: str, verb: str) -> Phrase:
    added, text = with_articles(text, "a"), _placed(text)
    noun, label = with_articles(text, "a"), with_articles(text, None)
    is_sure = noun_is_sure(noun)
    lacked = re.sub(r"^(?:an?|the) ", "", noun)
    has_lacked = is_sure and not re.match(
        r"(?:more|new|better|faster|all|two|three|every|another|improved)\b", lacked, re.IGNORECASE
    )
    return Phrase(
        item=label,
        novelty=label,
        thing=label,
        did=f"{verbs.past(verb)} {added}",
        noun=noun if is_sure else None,
        lacked=lacked if has_lacked else None,
    )


def _placed(text: str) -> str:
    """Return what was added as a noun: "share button to plant page" is a share button on it."""
    found = _ADDED_TO.match(text)
    if found is None or verbs.base_of(found["place"].split()[0]) is not None or _QUOTE.search(text):
        return text
    head = found["place"].split()[-1]
    return f"{found['what']} {'on' if head in nouns.PLACES_ON else 'in' if head in nouns.PLACES_IN else 'for'} {found['place']}"


def _behaved(adverb: str, rest: str, text: str) -> Phrase:
    """Read a title such as "automatically retry uploads"."""
    word, _, more = rest.partition(" ")
    verb = _verb(word, more)
    if verb not in verbs.DOES:
        return _unsure(text)
    done = f"{verbs.third_person(verb)} {of_behavior(verb, more)}"
    return Phrase(item=f"{adverb} {done}", does=f"now {adverb} {done}", will=f"will {adverb} {verb} {of_behavior(verb, more)}")


def _acted(verb: str, rest: str, text: str) -> Phrase:
    if (
        rest.startswith(("and ", "& ", "or ", "/")) and verb not in verbs.OFFERS
    ):  # "recognize and style": nobody can tell what belongs to which
        return _unsure(text)
    if verb in verbs.ADDS:
        return _thing(rest, "add" if verb == "implement" else verb)
    if verb == "support":
        supported = with_articles(rest, None)
        return Phrase(
            item=f"support for {supported}",
            novelty=f"support for {supported}",
            thing=f"support for {supported}",
            did=f"added support for {supported}",
            noun=f"support for {supported}",
            lacked=f"support for {supported}",
            does=f"now supports {supported}",
            will=f"will support {supported}",
        )
    if verb in verbs.CHANGES:
        particle, _, more = rest.partition(" ") if rest.partition(" ")[0] in verbs.PARTICLES.get(verb, ()) else ("", "", rest)
        first: Article | None = None if verb in ("enable", "give", "switch") else "the"
        did = " ".join(f"{verbs.past(verb)} {particle} {with_articles(more, first)}".split())
        return Phrase(item=did, did=did)
    if verb in verbs.OFFERS:
        return _can(f"{verb} {rest}")
    if verb in verbs.DOES:
        done = of_behavior(verb, rest)
        return Phrase(
            item=f"{verbs.third_person(verb)} {done}",
            does=f"now {verbs.third_person(verb)} {done}",
            will=f"will {verb} {done}",
        )
    return _unsure(text)


def _unsure(text: str) -> Phrase:
    """Read what users do or the product does: nobody can tell which."""
    label = with_articles(text, None)
    return Phrase(item=label, novelty=label)


def _is_action(word: str, rest: str) -> bool:
    """Return whether a word that may be a noun is a verb here: "order prints" and not "order history"."""
    words = rest.split()
    until = next((at for at, each in enumerate(words) if each.lower() in nouns.STOPS), len(words))
    return word.lower() in verbs.AMBIGUOUS and bool(words) and not (0 < until <= 2 and is_compound(words[:until]))


def _fix(verb: str, rest: str) -> Phrase:
    past = verbs.past("fix" if verb == "hotfix" else verb)
    fixed, is_bug = fault_of(rest)
    return Phrase(item=f"{past} {fixed}", did=f"{past} {fixed}", fixed=fixed, bug=fixed if is_bug else None)


def _verb(word: str, rest: str) -> str | None:
    """Return the verb that a title begins with, None if it begins with another word."""
    verb = verbs.base_of(word)
    if verb not in verbs.KNOWN or not rest or _is_noun(word, rest):
        return None
    if verb in verbs.ADDS | verbs.CHANGES | verbs.FIXES or word.lower() == verb:
        return verb
    return verb if verbs.is_behavior(word) else None  # "saved searches" are a noun


def _is_noun(word: str, rest: str) -> bool:
    """Return whether a word that may be a verb is none here: "copy button for codes"."""
    particles = verbs.PARTICLES.get(verbs.base_of(word) or "")
    first = rest.partition(" ")[0].lower()
    if particles is not None:
        return first not in particles and word.lower() != "log"
    if word.lower() not in _NOUNISH:
        return False
    until = next((at for at, each in enumerate(rest.split()) if each.lower() in nouns.STOPS), len(rest.split()))
    named = rest.split()[:until]
    return first == "for" or (0 < len(named) <= 2 and bool(_HEADS.search(" ".join(named))))


def _split(text: str) -> tuple[str, str] | None:
    """Return the two changes that a title names, None if it is one."""
    if verbs.base_of(text.partition(" ")[0]) is None:
        return None
    for found in _SECOND_VERB.finditer(text):
        if verbs.base_of(found[1]) in _SPLITTING and found.start() > 0:
            return text[: found.start()], text[found.end() :]
    return None


def _joined(first: Phrase, second: Phrase, text: str) -> Phrase:
    did = f"{first.did} and {second.did}" if first.did and second.did else None
    return Phrase(item=did or with_articles(text, None), did=did)
