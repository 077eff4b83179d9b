"""The verbs that titles of changes begin with: what each says, and its forms."""

from __future__ import annotations

from collections.abc import Mapping


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ADDS = _words("add implement introduce create build launch ship")
"""The author made something new: "add dark mode"."""

CHANGES = _words(
    "redesign rework revamp overhaul refresh restyle polish improve enhance speed optimize optimise simplify reduce "
    "shorten increase lower cut halve double make remove drop replace rename move update upgrade extend expand rebuild "
    "rewrite redo translate localize localise integrate connect automate bring finish complete switch migrate unify "
    "streamline clarify tidy tweak adjust tune refine split merge combine publish release unlock rethink retire "
    "rearrange enable support give align stabilize harden center centre tighten widen raise cap balance normalize "
    "sanitize reposition reset expose consolidate standardize position"
)
"""The author changed something: "redesign the home screen"."""

FIXES = _words("fix hotfix resolve repair correct")

OFFERS = _words(
    "export import share search filter customize customise choose pick select invite download upload copy paste "
    "duplicate reorder print scan browse bookmark compare assign attach edit undo drag rate track schedule log"
)
"""What users can do themselves: "export invoices as CSV"."""

DOES = _words(
    "show display remember keep warn ask send notify remind sync synchronize detect highlight preserve save suggest "
    "recommend load render handle respect use validate prevent avoid ensure calculate count convert generate autosave "
    "persist round estimate recognize recognise explain check confirm report follow honor honour accept reject retry "
    "reconnect restore recover tell return include refuse require read write understand limit back match preload prefill "
    "link parse allow permit receive see get retain omit enforce serve turn escape populate fill truncate delay surface "
    "provision clamp stop prefer redirect fetch transcode compress dismiss forward prepend capitalize dim verify exclude "
    "maintain autofocus store restrict"
)
"""What the product does by itself: "show the total"."""

EITHER = _words("sort group hide collapse expand skip open close cancel pause mark record play pin archive set snooze")
"""Users do it or the product does: nobody can tell from the title."""

AMBIGUOUS = _words(
    "transpose tune crop rotate resize annotate organize organise arrange toggle change delete plan order book pay sign "
    "draw listen watch follow vote comment reply react collaborate zoom swipe tap navigate jump preview embed subscribe "
    "unsubscribe mention quote capture flag mute unmute block unblock star like underline lock mirror flip trim stretch "
    "stack align nest unlink join leave start stop repeat loop shuffle queue cast stream request reserve buy sell gift "
    "donate refund charge measure weigh identify name describe summarize summarise transcribe dictate speak learn "
    "practice practise memorize train run walk ride cook bake fill clear erase paint type talk chat message call email "
    "text view visit explore discover find use try test browse pick up water feed count lend borrow return swap trade "
    "visualize analyze analyse automate personalize personalise prioritize prioritise categorize categorise color colour "
    "tint blur"
)
"""Words that are verbs and nouns: "order prints" and "order history"."""

MAINTAINS = _words(
    "bump refactor clean cleanup reformat format lint document test extract inline deprecate delete revert prepare debug "
    "silence suppress disable configure init initialize vendor apply address review backport comment uncomment annotate "
    "regenerate rerun deploy install uninstall downgrade revise restructure reorganize reorganise modernize dedupe "
    "deduplicate centralize"
)
"""Work that no user sees."""

KNOWN = ADDS | CHANGES | FIXES | OFFERS | DOES | EITHER

PARTICLES: Mapping[str, frozenset[str]] = {
    "speed": _words("up"),
    "back": _words("up"),
    "tidy": _words("up"),
    "log": _words("in out"),
}
"""Verbs that are meant only if one of these words follows."""

SYMPTOMS = _words(
    "fire appear disappear crash fail show load save open jump flicker freeze hang break overlap reset vanish stay "
    "return repeat lose ignore cause stop work duplicate scroll close use get go start send count forget delete "
    "overwrite drop ask block skip render display refresh update run stretch clip shift blink lag stall wrap cover push "
    "hide lead throw say point need take make become"
)
"""What goes wrong in titles of bugs: "reminder fires twice"."""

_IRREGULAR = (
    "build:built make:made rebuild:rebuilt rewrite:rewrote redo:redid bring:brought cut:cut speed:sped split:split "
    "give:gave rethink:rethought show:showed keep:kept send:sent set:set choose:chose hide:hid undo:undid tell:told "
    "read:read write:wrote understand:understood let:let get:got take:took lose:lost put:put find:found begin:began "
    "run:ran break:broke go:went forget:forgot freeze:froze overwrite:overwrote reset:reset hang:hung"
)
_PAST: Mapping[str, str] = dict(pair.split(":") for pair in _IRREGULAR.split())
_DOUBLED = _words(
    "ship drop cut split pin skip log drag scan tag zip trim swap plan map stop snap set get put let begin run clip wrap"
)
_VOWELS = "aeiou"


def past(verb: str) -> str:
    """Return the simple past: "add" becomes "added"."""
    if verb in _PAST:
        return _PAST[verb]
    if verb.endswith("e"):
        return f"{verb}d"
    if verb.endswith("y") and verb[-2:-1] not in _VOWELS:
        return f"{verb[:-1]}ied"
    return f"{verb}{verb[-1]}ed" if verb in _DOUBLED else f"{verb}ed"


def third_person(verb: str) -> str:
    """Return the form after "it": "show" becomes "shows"."""
    if verb.endswith("y") and verb[-2:-1] not in _VOWELS:
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else f"{verb}s"


def is_adverb(word: str) -> bool:
    """Return whether a word may stand before the verb of a title: "Automatically retry"."""
    word = word.lower()
    return word in ("always", "also", "only", "now", "still") or (
        word.endswith("ly")
        and word
        not in (
            "reply",
            "apply",
            "supply",
            "fly",
            "family",
            "weekly",
            "daily",
            "monthly",
            "hourly",
            "yearly",
            "nightly",
            "friendly",
            "early",
            "assembly",
            "anomaly",
            "poly",
            "fully",
        )
    )


def gerund(verb: str) -> str:
    """Return the form on -ing: "make" becomes "making"."""
    if verb.endswith("e") and not verb.endswith(("ee", "oe", "ye")):
        return f"{verb[:-1]}ing"
    return f"{verb}{verb[-1]}ing" if verb in _DOUBLED else f"{verb}ing"


_NOUN_FORMS = _words(
    "links counts reports limits matches returns reads checks loads turns stores estimates rounds delays surfaces follows"
)
"""Nouns, more often than verbs."""

_BASES: Mapping[str, str] = {
    form: verb
    for verb in sorted(KNOWN | MAINTAINS | SYMPTOMS | _words("allow let stop get run put take find"))
    for form in (gerund(verb), past(verb), third_person(verb), verb)
}


_GERUNDS: Mapping[str, str] = {gerund(verb): verb for verb in sorted(KNOWN | MAINTAINS | SYMPTOMS | AMBIGUOUS)}


def base_of(word: str) -> str | None:
    """Return the verb that a word is a form of, if it is known here: "Adding", "added" and "adds" are "add"."""
    return _BASES.get(word.lower())


def is_known(word: str) -> bool:
    """Return whether a title that begins with this word begins with a verb."""
    return base_of(word) in KNOWN | MAINTAINS | {"allow", "let", "stop"}


def base_of_gerund(word: str) -> str | None:
    """Return the verb of a known form on -ing."""
    return _GERUNDS.get(word.lower())


def is_behavior(word: str) -> bool:
    """Return whether a title that begins with this form says what the product does: "show", "shows", but not "counts"."""
    verb = base_of(word)
    is_third = verb is not None and third_person(verb) == word.lower() and word.lower() not in _NOUN_FORMS
    return verb in DOES and (verb == word.lower() or is_third)


def base_of_third_person(word: str) -> str | None:
    """Return the verb of a known form such as "fires"."""
    found = base_of(word) if word.lower().endswith("s") else None
    return found if found is not None and third_person(found) == word.lower() else None
