"""The offline drafter: sentences of its own, filled with what happened. The same request gives the same draft."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import ClassVar

import msgspec

from slothpost.drafting.alike import alike
from slothpost.drafting.drafter import Draft, DraftRequest
from slothpost.drafting.frames import Frame
from slothpost.drafting.story import Point, Story, stories_of
from slothpost.drafting.styling import styled, with_emoji
from slothpost.drafting.validate import problems_of
from slothpost.drafting.voice import Style, style_of
from slothpost.model import DrafterName
from tickler.table import MISSING

_MOST_POINTS = {"x": 4, "threads": 6}
_MIN_POINTS = 2
_COUNTS = ("no", "one", "two", "three", "four", "five", "six")
_LINKED_ANGLES = frozenset({"announce", "update", "introduction", "notes", "since_last", "thanks"})
_SUBSTANCE = frozenset({"items", "fixes", "novelty", "noun", "can", "name"})
_REMEMBERED = 6  # posts that a new one must not read like, if there is another way
_ROTATION = 3  # posts after which an angle is as good as new
_MAX_TRIED = 60


class _Attempt(msgspec.Struct, frozen=True):
    draft: Draft
    problems: tuple[str, ...]


class TemplateDrafter:
    """Writes from templates, without any service. It always has a draft."""

    name: ClassVar[DrafterName] = "template"

    async def draft(self, request: DraftRequest) -> Draft:
        return write(request)

    async def close(self) -> None:
        """There is nothing to close."""


def write(request: DraftRequest) -> Draft:
    """Write a draft. If every way to say it has a problem, the note of the one with the fewest says what it is."""
    attempts: list[_Attempt] = []
    last_angle = request.recent[0][1] if request.recent else ""
    for number, draft in enumerate(_drafts(request)):
        problems = problems_of(draft.text, request)
        if not problems and (not last_angle or draft.angle != last_angle) and not _is_repetitive(draft.text, request):
            return draft
        attempts.append(_Attempt(draft, problems))
        if number >= _MAX_TRIED:
            break
    best = min(attempts, key=lambda attempt: (len(attempt.problems), attempt.draft.angle == last_angle))
    if not best.problems:
        return best.draft
    return msgspec.structs.replace(best.draft, note=f"edit it before you approve it: {'; '.join(best.problems)}")


def _drafts(request: DraftRequest) -> Iterator[Draft]:
    """Write all drafts that there can be, the most fitting first."""
    style = style_of(request.product.voice, request.hint)
    for story in stories_of(request, style):
        for frame in _ordered(story, style, request):
            yield from _filled(frame, story, style, request)


def _ordered(story: Story, style: Style, request: DraftRequest) -> list[Frame]:
    """Return the frames of a story that can be filled, in an order that the seed and the latest posts give."""
    available = {*story.slots, *_counted_slots(story)}
    fitting = [frame for frame in story.frames if frame.slots <= available and not _is_unwanted(frame, style)]
    fitting = fitting or [frame for frame in story.frames if frame.slots <= available]
    return sorted(fitting, key=lambda frame: (_penalty(frame, story, style, request), _drawn(request, frame.text)))


def _counted_slots(story: Story) -> set[str]:
    if len(story.points) < _MIN_POINTS:
        return set()
    fixed = all(point.phrase.fixed for point in story.points)
    return {"items", "count", "fixes"} if fixed else {"items", "count"}


def _is_unwanted(frame: Frame, style: Style) -> bool:
    is_list = bool(frame.slots & {"items", "fixes"})
    return (
        (style.questions is False and "?" in frame.text)
        or (style.lists is False and is_list)
        or (style.is_short and frame.angle in ("introduction", "before_after"))
    )


def _penalty(frame: Frame, story: Story, style: Style, request: DraftRequest) -> int:
    """Return how badly a frame fits: angles that were used lately, or lists where the author asked for none."""
    angles = [angle for _, angle in request.recent[:_ROTATION]]
    penalty = len(angles) - angles.index(frame.angle) if frame.angle in angles else 0
    if _counted_slots(story) and "version" in story.slots and "items" not in frame.slots:
        penalty += 2
    if story.slots.keys() & _SUBSTANCE and "release" in story.slots and not frame.slots & _SUBSTANCE:
        penalty += 3
    if (style.questions and frame.angle != "question") or (style.lists and not frame.slots & {"items", "fixes"}):
        penalty += _ROTATION + 1
    return penalty


def _filled(frame: Frame, story: Story, style: Style, request: DraftRequest) -> Iterator[Draft]:
    """Fill a frame: with as many points as fit, and without the details if they are too long."""
    if frame.slots & {"items", "fixes"}:
        most = min(len(story.points), _MOST_POINTS[request.channel])
        for count in range(most, _MIN_POINTS - 1, -1):
            shown = story.points[:count]
            lines = {"items": _lines(shown, "item"), "fixes": _lines(shown, "fixed"), "count": _COUNTS[count]}
            yield _draft(frame, frame.filled({**story.slots, **lines}), story, style, request, shown)
        return
    text = frame.filled(story.slots)
    for details in _details(frame, story, style, request):
        yield _draft(frame, "\n\n".join((text, *details)), story, style, request, ())


def _draft(frame: Frame, text: str, story: Story, style: Style, request: DraftRequest, shown: tuple[Point, ...]) -> Draft:
    text = with_emoji(styled(text, style, keep=story.slots["product"]), style)
    told = [
        *story.told,
        *(point.id for point in shown if point.id),
        *(story.tells[slot] for slot in sorted(frame.slots & story.tells.keys())),
    ]
    return Draft(
        text="\n\n".join((text, *_last_lines(frame, style, request))),
        used=tuple(dict.fromkeys(told)),
        drafter="template",
        angle=frame.angle,
    )


def _details(frame: Frame, story: Story, style: Style, request: DraftRequest) -> Iterator[tuple[str, ...]]:
    """Return the sentences that may follow, the longest choice first."""
    is_wanted = request.channel == "threads" or _drawn(request, f"details {frame.text}")[0] % 2 == 0
    if story.details and is_wanted and not style.is_short and "?" not in frame.text and "description" not in frame.slots:
        if request.channel == "threads" and len(story.details) > 1:
            yield (" ".join(story.details[:2]),)
        yield story.details[:1]
    yield ()


def _last_lines(frame: Frame, style: Style, request: DraftRequest) -> Iterator[str]:
    if style.hashtags:
        yield " ".join(style.hashtags)
    url = request.product.url
    wanted = style.links or (request.channel == "threads" and style.links is None and frame.angle in _LINKED_ANGLES)
    if wanted and url is not MISSING:
        yield url


def _lines(points: tuple[Point, ...], field: str) -> str:
    return "\n".join(f"- {getattr(point.phrase, field)}" for point in points)


def _is_repetitive(text: str, request: DraftRequest) -> bool:
    return any(alike(text, other) for other, _ in request.recent[:_REMEMBERED])


def _drawn(request: DraftRequest, what: str) -> bytes:
    """Return what stands for chance: the same for the same request."""
    return hashlib.blake2b(f"{request.seed}\n{request.channel}\n{request.hint}\n{what}".encode(), digest_size=8).digest()
