"""Decides what kind of news something is, and how much it deserves a post."""

from __future__ import annotations

import math
import re

import msgspec

from slothpost.activity import change_words as words
from slothpost.activity.clean import capitalized, clean_body, clean_title, has_code
from slothpost.activity.happening import AppVersion, Commit, Deployment, News, PullRequest, Release, Stars
from slothpost.activity.versions import is_finished, named_version, package_of, version_worth
from slothpost.language import verbs
from slothpost.model import ActivityKind

MILESTONES = frozenset(
    {10, 25, 50, *(n * 10**power for power in range(2, 7) for n in (1, 5)), *(25 * 10**n for n in range(1, 6))}
)

_PREFIX = re.compile(r"(?P<type>[A-Za-z][\w-]{1,15})(?:\((?P<scope>[^)]{1,40})\))?(?P<breaking>!)?\s?:\s+(?P<rest>\S.*)")
_TAG = re.compile(r"[\[(](?P<type>[\w /-]{1,20})[\])]\s*:?-?\s*(?P<rest>\S.*)")
_SHORTCODE = re.compile(r":([a-z_0-9]+):\s*")
_LEADING_EMOJI = re.compile(r"([\u2190-\u2bff\U0001f000-\U0001faff])[\ufe0f\u200d\U0001f3fb-\U0001f3ff]*\s*")
_NEGATIVE = re.compile(r"(?:don'?t|do not|never|no longer|stop|avoid|prevent)\b", re.IGNORECASE)
_NOW = re.compile(r"\b(?:can now|now (?:has|have|shows?|works?|supports?|with)|you can|users can)\b", re.IGNORECASE)
_VERSION_IN_NAME = re.compile(r"(v?\d+(?:\.\d+)+[\w.+-]*)")
_IMPERATIVE = re.compile(r"[A-Z]?[a-z]+ (?:the|a|an|all|every|each|only|it|its|them|your|our|my)\b")
_SENTENCE = re.compile(r"[A-Z][^.\n]{40,}\.")

_STRONG = verbs.ADDS | {
    "support",
    "enable",
    "allow",
    "let",
    "redesign",
    "revamp",
    "overhaul",
    "publish",
    "integrate",
    "translate",
}
_REPAIRS = verbs.FIXES | {"prevent", "avoid", "handle", "ensure", "restore", "recover"}
_VAGUE = frozenset(["update", "upgrade", "move", "rename", "replace", "switch", "migrate", "use", "release", "merge"])
"""What users see of these depends on what follows, and mostly that is nothing."""


class Classified(msgspec.Struct, frozen=True):
    """What is stored of news: `title` and `body` are for people. 0 is never told, and 100 is worth most."""

    kind: ActivityKind
    title: str
    body: str
    worth: int


class _Change(msgspec.Struct, frozen=True, kw_only=True):
    """A commit or a pull request, taken apart. `kind` is None if it does not say."""

    subject: str
    kind: ActivityKind | None
    type: str = ""
    scope: str = ""
    is_breaking: bool = False


def classify(news: News) -> Classified:
    """Return what kind of news this is, with texts for people. It needs no more than the news itself."""
    match news:
        case Commit(message) | Deployment(str() as message):
            return _commit(message)
        case PullRequest():
            return _change(news.title, news.body, labels=news.labels, is_pull_request=True)
        case Release():
            return _release(news)
        case AppVersion():
            return _app_version(news)
        case Stars(count):
            return classify_stars(count) or Classified("milestone", f"{count:,} stars on GitHub", "", 0)
        case Deployment():
            return Classified("deployment", "New version is live", "", 15)


def classify_stars(count: int) -> Classified | None:
    """Return the milestone that a number of stars is, None if it is none."""
    if count not in MILESTONES:
        return None
    return Classified("milestone", f"{count:,} stars on GitHub", "", min(95, int(20 + 20 * math.log10(count))))


def _commit(message: str) -> Classified:
    subject, _, body = message.strip().partition("\n")
    if words.PULL_REQUEST_MERGE.fullmatch(subject.strip()):  # the text is the title of the pull request
        subject, _, body = body.strip().partition("\n")
    return _change(subject, body)


def _change(title: str, body: str, labels: tuple[str, ...] = (), *, is_pull_request: bool = False) -> Classified:
    change = _taken_apart(" ".join(title.split())[:300], labels)
    shown = _title(change)
    kind = _kind(change)
    told = clean_body(body)
    if kind == "chore" or _is_too_short(shown, change):
        return Classified("chore", shown if " " in shown else _plain(title), told, 0)
    worth = _fix_worth(change, told) if kind == "fix" else _feature_worth(change, is_pull_request=is_pull_request)
    is_technical = words.TECHNICAL.search(change.subject) is not None or has_code(change.subject)
    worth += 8 * is_pull_request + 5 * change.is_breaking - 25 * is_technical
    worth += 6 * (kind == "feature" and _SENTENCE.search(told) is not None) - 20 * bool(
        words.USUALLY_INTERNAL.search(change.subject)
    )
    if change.kind is None and kind == "feature" and words.SMALL.search(change.subject):
        worth -= 25
    return Classified(kind, shown, told, max(5, min(100, worth)))


def _taken_apart(title: str, labels: tuple[str, ...]) -> _Change:
    title = _SHORTCODE.sub(lambda found: f"{words.SHORTCODES.get(found[1], '')} ", title, count=1) if title[:1] == ":" else title
    emoji = _LEADING_EMOJI.match(title)
    kind = words.EMOJI.get(emoji[1]) if emoji else None
    subject = title[emoji.end() :] if emoji else title
    for label in labels:
        kind = words.LABELS.get(label.lower()) or kind
    prefix = _PREFIX.match(subject) or _TAG.match(subject)
    if prefix is None or (words.NOISE.match(subject) and prefix["type"].lower() not in words.TYPES):
        return _Change(subject=subject, kind="chore" if words.NOISE.match(subject) else kind)
    found = prefix.groupdict()
    type, rest, scope = found["type"].lower(), found["rest"], (found.get("scope") or "").lower()
    if words.NOISE.match(rest) or scope in words.MAINTAINED_SCOPES:
        return _Change(subject=rest, kind="chore")
    if type in words.TYPES:
        kind = "chore" if kind == "chore" else words.TYPES[type]
        return _Change(subject=rest, kind=kind, type=type, scope=scope, is_breaking=bool(found.get("breaking")))
    if type in words.MAINTAINED_SCOPES:
        return _Change(subject=rest, kind="chore")
    is_scope = type in words.PLATFORMS or verbs.base_of(rest.split()[0]) is not None or found["type"].islower()
    return _Change(subject=rest if is_scope else subject, kind=kind, scope=type if is_scope else "")


def _title(change: _Change) -> str:
    """Return the subject for people. A fix whose title names only what was wrong says that it is one."""
    title = clean_title(change.subject)
    platform = words.PLATFORMS.get(change.scope)
    if title and platform and platform.lower() not in title.lower() and " on " not in title:
        title = f"{title} on {platform}"
    says_so = bool(_NEGATIVE.match(title) or _NOW.search(title) or _IMPERATIVE.match(title)) or _is_imperative(title)
    return f"Fix {_lower_start(title)}" if title and change.kind == "fix" and not says_so else capitalized(title)


def _is_imperative(title: str) -> bool:
    """Return whether a title begins with a verb, as commits do."""
    word, _, rest = title.partition(" ")
    return verbs.is_known(word) or (word.lower() in verbs.AMBIGUOUS and bool(rest))


def _plain(title: str) -> str:
    """Return a title of which too little is left for people, as it is."""
    return title[:100].strip() or "A change without a title"


def _kind(change: _Change) -> ActivityKind:
    if change.kind == "chore" or words.INTERNAL.search(change.subject):
        return "chore"
    verb = _verb(change)
    if change.kind is None and (verb in verbs.MAINTAINS or verb in _VAGUE or words.USUALLY_INTERNAL.search(change.subject)):
        return "chore"
    if change.kind is not None:
        return change.kind
    return "fix" if verb in _REPAIRS or _NEGATIVE.match(change.subject) else "feature"


def _verb(change: _Change) -> str | None:
    first = re.match(r"[A-Za-z-]+", change.subject)
    return verbs.base_of(first[0]) if first else None


def _feature_worth(change: _Change, *, is_pull_request: bool) -> int:
    if change.type in words.PERFORMANCE:
        return 50
    verb = _verb(change)
    if change.kind == "feature":
        return 70
    if verb in _STRONG or _NOW.search(change.subject):
        return 62
    if verb in ("remove", "drop"):
        return 24
    if verb is not None:
        return 48
    return 34 if is_pull_request else 22  # a title without a verb may be anything


def _fix_worth(change: _Change, body: str) -> int:
    """A fix has a story if people have noticed what was wrong, or if its author explains it."""
    return 28 + 14 * bool(words.SYMPTOM.search(change.subject)) + 14 * bool(_SENTENCE.search(body))


def _is_too_short(title: str, change: _Change) -> bool:
    if change.type and change.kind == "feature":
        return len(title) < 4
    return len(title) < 7 or " " not in title


def _release(news: Release) -> Classified:
    version = named_version(news.version) or named_version(news.name)
    notes = clean_body(news.notes)
    title = _release_title(news.name, version)
    if not is_finished(news.version) or not title:
        return Classified("chore", title or "A build", notes, 0)
    worth = 45 if news.is_prerelease else version_worth(version) + 5 * bool(notes)
    package = package_of(news.version)
    if package and version:  # one of several in a repository
        return Classified("release", f"Version {version} of {package}", notes, worth - 20)
    return Classified("release", title, notes, worth)


def _release_title(name: str, version: str) -> str:
    """Return "Version 1.4", with the name of the release if it has one."""
    if not version:
        return clean_title(name)
    before, number, after = _VERSION_IN_NAME.split(name, maxsplit=1) if _VERSION_IN_NAME.search(name) else (name, "", "")
    more = clean_title(after if number else before).strip('()[]"“” ')
    is_name = bool(more) if number else len(more.split()) > 1
    return f"Version {version}: {more}" if is_name else f"Version {version}"


def _app_version(news: AppVersion) -> Classified:
    version = named_version(news.version) or clean_title(news.version)
    named = f"Version {version}" if version else "A new version"
    notes = clean_body(news.notes)
    match news.state:
        case "READY_FOR_DISTRIBUTION":
            return Classified("app_release", f"{named} in the App Store", notes, 90)
        case "IN_REVIEW":
            return Classified("app_review", f"{named} in review at Apple", notes, 42)
        case "BETA_APPROVED" | "IN_BETA_TESTING":
            return Classified(
                "app_review", f"Beta of version {version} with testers" if version else "A new beta with testers", notes, 50
            )
    return Classified("chore", f"{named}: {clean_title(news.state.replace('_', ' ').lower()).lower()}", notes, 0)


def _lower_start(text: str) -> str:
    first = text.split(" ", 1)[0]
    return text if any(c.isupper() for c in first[1:]) else text[:1].lower() + text[1:]
