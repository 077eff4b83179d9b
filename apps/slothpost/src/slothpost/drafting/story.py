"""What a post can tell of the chosen activities: which frames fit, and what goes into their slots."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from slothpost.drafting import change_frames, version_frames
from slothpost.drafting.choose import WORTH_A_POST, covered
from slothpost.drafting.details import is_before, points_of, said_points_of, sentences_of
from slothpost.drafting.drafter import DraftRequest
from slothpost.drafting.drawing import drawn
from slothpost.drafting.frames import Frame
from slothpost.drafting.own_links import without_links
from slothpost.drafting.voice import Style
from slothpost.language.acronyms import in_words, unexplained, vocabulary_of
from slothpost.language.phrases import Phrase, phrase_of
from slothpost.model import Activity

MAX_POINTS = 6
MANY = 4  # so many changes are told in a list

_TITLE = re.compile(
    r"Version (?P<version>[\d.]+(?: (?:alpha|beta|preview|release candidate)(?: \d+)?)?)"
    r"(?: of (?P<package>\S+))?(?:: (?P<name>.+))?"
)
_NAMED = re.compile(r"[Vv]ersion (?P<version>\d[\d.]*)")
_LIVE_SOURCE = "vercel"
_PLACED = re.compile(r" (?:to|on|in|for|from|into|at) ")
_WORD = re.compile(r"\w{3,}")
_MAX_DESCRIPTION = 110
_SAME_WORDS = 0.6


class Point(msgspec.Struct, frozen=True):
    """A line of a list, and the activity that it tells of: none, if it comes from release notes."""

    phrase: Phrase
    id: str | None = None


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """Frames that fit, what their slots say, the points of a list, and sentences that may follow.

    `told` are the activities that every frame tells of, and `tells` those that a frame tells of if it has the slot.
    """

    frames: tuple[Frame, ...]
    slots: Mapping[str, str]
    told: tuple[str, ...] = ()
    tells: Mapping[str, tuple[str, ...]] = {}
    points: tuple[Point, ...] = ()
    details: tuple[str, ...] = ()


class _Context(msgspec.Struct, frozen=True, kw_only=True):
    slots: Mapping[str, str]
    vocabulary: frozenset[str]


def stories_of(request: DraftRequest, style: Style) -> tuple[Story, ...]:
    """Return what can be told, the most fitting first: one activity, several, or a version with what is in it."""
    context = _context(request, style)
    lead = request.activities[0]
    match lead.kind:
        case "release" | "app_release":
            return (_version(request.activities, context),)
        case "app_review":
            return (_review(lead, context),)
        case "milestone":
            stars = lead.title.partition(" ")[0]
            return (
                Story(frames=version_frames.MILESTONE, slots={**context.slots, "stars": stars}, told=_told(request.activities)),
            )
        case "deployment":
            return (Story(frames=version_frames.DEPLOYMENT, slots=context.slots, told=(lead.id,)),)
    return _changes(request, context)


def _context(request: DraftRequest, style: Style) -> _Context:
    product = request.product
    name = without_links(product.name) if request.channel == "x" else product.name
    slots = {"product": name, "I": "I", "my": "my", "me": "me"}
    if style.is_plural:
        slots |= {"I": "we", "my": "our", "me": "us"}
    if request.recent:
        slots["since"] = ""
    description = without_links(" ".join(product.description.split()))
    if 0 < len(description) <= _MAX_DESCRIPTION and product.name.lower() not in description.lower():
        slots["description"] = description if description.endswith((".", "!", "?")) else f"{description}."
    return _Context(slots=slots, vocabulary=vocabulary_of(product.name, product.description, *product.voice.samples))


def _changes(request: DraftRequest, context: _Context) -> tuple[Story, ...]:
    """Tell one change, or several in a list. What readers would have to look up waits if something else is worth a post."""
    different = _different(request.activities)
    plain = [each for each in different if not unexplained(in_words(each.title), context.vocabulary)]
    ordered = plain if plain and plain[0].worth >= WORTH_A_POST else different
    one = _single(ordered[0], context)
    if len(ordered) == 1:
        return (one,)
    together = (_several(ordered, context), *_only_fixes(ordered, context))
    if ordered[0].worth < WORTH_A_POST:
        return together
    is_list = len(ordered) >= MANY or drawn(request, "one or several")[0] % 2 == 0
    return (*together, one) if is_list else (one, *together)


def _different(activities: Sequence[Activity]) -> Sequence[Activity]:
    """Return activities without those that say the same as another."""
    return list({activity.title.lower(): activity for activity in reversed(activities)}.values())[::-1]


def _single(activity: Activity, context: _Context) -> Story:
    phrase = _phrase(activity)
    is_live = _is_live(activity)
    if activity.kind == "fix":
        fitting = (*change_frames.FIX, *(change_frames.FIX_LIVE if is_live else change_frames.FIX_COMING))
    else:
        fitting = (*change_frames.FEATURE, *(change_frames.FEATURE_LIVE if is_live else change_frames.FEATURE_COMING))
    sentences = sentences_of(in_words(activity.body), context.vocabulary)
    before = next((sentence for sentence in sentences if is_before(sentence)), None)
    slots = {**context.slots, **_slots(phrase)}
    if before:
        slots["before"] = before
    if slots["product"].lower() in phrase.item.lower():
        fitting = (*change_frames.NAMELESS, *(frame for frame in fitting if "product" not in frame.slots))
    details = tuple(without_links(sentence) for sentence in sentences if sentence != before)
    return Story(frames=fitting, slots=slots, told=(activity.id,), details=details)


def _several(ordered: Sequence[Activity], context: _Context) -> Story:
    points = tuple(Point(_phrase(activity), activity.id) for activity in ordered[:MAX_POINTS])
    live = [_is_live(activity) for activity in ordered[:MAX_POINTS]]
    fitting = change_frames.SEVERAL
    if all(live):
        fitting += change_frames.SEVERAL_LIVE
    elif not any(live) and not any(point.phrase.fixed for point in points):
        fitting += change_frames.SEVERAL_COMING
    first, second = _slots(points[0].phrase), _slots(points[1].phrase)
    slots = {**context.slots, **first, **{f"{name}_too": value for name, value in second.items()}}
    one, two = (ordered[0].id,), (ordered[1].id,)
    tells: dict[str, tuple[str, ...]] = {**dict.fromkeys(first, one), **dict.fromkeys((f"{name}_too" for name in second), two)}
    if "did" in first and "did" in second:
        verb, _, rest = second["did"].partition(" ")
        slots["did_both"] = f"{first['did']} and {rest if first['did'].startswith(f'{verb} ') else second['did']}"
        tells["did_both"] = one + two
    return Story(frames=fitting, slots=slots, tells=tells, points=points)


def _only_fixes(ordered: Sequence[Activity], context: _Context) -> tuple[Story, ...]:
    points = tuple(Point(_phrase(activity), activity.id) for activity in ordered[:MAX_POINTS])
    if not all(point.phrase.fixed for point in points):
        return ()
    return (Story(frames=change_frames.FIXES, slots=context.slots, points=points),)


def _version(activities: Sequence[Activity], context: _Context) -> Story:
    """Tell of a version: with its notes, or with the changes that came before it."""
    lead, others = activities[0], [each for each in activities[1:] if each.kind in ("feature", "fix")]
    notes = in_words(lead.body)
    noted = [Point(phrase) for phrase in points_of(without_links(notes), context.vocabulary)]
    noted = noted or [Point(phrase) for phrase in said_points_of(without_links(notes), context.vocabulary)]
    points = noted or [Point(_phrase(each), each.id) for each in others if not unexplained(each.title, context.vocabulary)]
    slots = {**context.slots, **_version_slots(lead, context.slots["product"])}
    tells: dict[str, tuple[str, ...]] = {}
    if points:
        highlight = _slots(points[0].phrase)
        slots |= highlight
        tells = dict.fromkeys(highlight, (points[0].id,)) if points[0].id else {}
    return Story(
        frames=version_frames.APP_RELEASE if lead.kind == "app_release" else version_frames.RELEASE,
        slots=slots,
        told=(*_told(activities), *(each.id for each in others if noted and _is_noted(each, noted))),
        tells=tells,
        points=tuple(points[:MAX_POINTS]),
        details=() if noted else sentences_of(notes, context.vocabulary),
    )


def _version_slots(lead: Activity, product: str) -> dict[str, str]:
    found = _TITLE.match(lead.title) or _NAMED.search(lead.title)
    if found is None:
        return {"release": f"a new version of {product}"}
    parts = found.groupdict()
    version, package = parts["version"], parts.get("package")
    slots = {"release": f"{package} {version} for {product}" if package else f"{product} {version}", "version": version}
    if parts.get("name"):
        slots["name"] = without_links(parts["name"])
    return slots


def _review(lead: Activity, context: _Context) -> Story:
    slots = {**context.slots, **_version_slots(lead, context.slots["product"])}
    slots["upcoming"] = f"version {slots['version']}" if "version" in slots else "the next version"
    is_beta = "beta" in lead.title.lower()
    return Story(frames=version_frames.BETA if is_beta else version_frames.REVIEW, slots=slots, told=(lead.id,))


def _phrase(activity: Activity) -> Phrase:
    return phrase_of(without_links(in_words(activity.title)), is_fix=activity.kind == "fix")


def _slots(phrase: Phrase) -> dict[str, str]:
    slots: dict[str, str] = {name: value for name in phrase.__struct_fields__ if (value := getattr(phrase, name)) is not None}
    if phrase.did and phrase.thing and phrase.did.startswith("added ") and not _PLACED.search(phrase.did):
        slots["added"] = phrase.did.removeprefix("added ")
    return slots


def _told(activities: Sequence[Activity]) -> tuple[str, ...]:
    return (activities[0].id, *(each.id for each in covered(activities)))


def _is_live(activity: Activity) -> bool:
    """Return whether users have it: it was deployed. Otherwise it waits for a release, as far as is known."""
    return any(sighting.source == _LIVE_SOURCE for sighting in activity.sightings)


def _is_noted(activity: Activity, noted: Sequence[Point]) -> bool:
    """Return whether the notes of a version tell of a change."""
    words = set(_WORD.findall(_phrase(activity).item.lower()))
    return any(
        len(words & set(_WORD.findall(point.phrase.item.lower()))) > _SAME_WORDS * len(words) for point in noted
    )  # fmt: skip
