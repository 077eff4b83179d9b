"""The offline drafter: sentences of its own, filled with what happened. The same request gives the same draft."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import msgspec

from slothpost.drafting.alike import alike
from slothpost.drafting.drafter import Draft, DraftRequest
from slothpost.drafting.drawing import drawn
from slothpost.drafting.frames import Frame
from slothpost.drafting.story import Point, Story, stories_of
from slothpost.drafting.styling import styled, with_emoji
from slothpost.drafting.validate import problems_of
from slothpost.drafting.voice import style_of
from slothpost.model import DrafterName
from tickler.table import MISSING

_MOST_POINTS = {"x": 4, "threads": 6}
_MIN_POINTS = 2
_COUNTS = ("no", "one", "two", "three", "four", "five", "six")
_DRY_ANGLES = frozenset({"changelog"})  # fine now and then
_LINKED_ANGLES = frozenset({"announce", "update", "introduction", "notes", "since_last", "thanks"})
_SUBSTANCE = frozenset({"items", "fixes", "novelty", "noun", "can", "name"})
_LISTS = frozenset({"items", "fixes"})
_REMEMBERED = 6  # posts that a new one must not read like, if there is another way
_ROTATION = 3  # posts after which an angle is as good as new
_MAX_TRIED = 60


class TemplateDrafter:
    """Writes from templates, without any service. It always has a draft."""

    name: ClassVar[DrafterName] = "template"

    async def draft(self, request: DraftRequest) -> Draft:
        return write(request)


class _Attempt(msgspec.Struct, frozen=True):
    draft: Draft
    problems: tuple[str, ...]


def write(request: DraftRequest) -> Draft:
    """Write a draft. If every way to say it has a problem, the note of the one with the fewest says what it is."""
    attempts: list[_Attempt] = []
    last_angle = request.recent[0][1] if request.recent else ""
    for draft in _Writer(request).drafts():
        problems = problems_of(draft.text, request)
        if not problems and (not last_angle or draft.angle != last_angle) and not _is_repetitive(draft.text, request):
            return draft
        attempts.append(_Attempt(draft, problems))
        if len(attempts) == _MAX_TRIED:
            break
    best = min(attempts, key=lambda attempt: (len(attempt.problems), attempt.draft.angle == last_angle))
    if not best.problems:
        return best.draft
    return msgspec.structs.replace(best.draft, note=f"edit it before you approve it: {'; '.join(best.problems)}")


class _Writer:
    """Writes all drafts that a request can have, the most fitting first."""

    def __init__(self, request: DraftRequest) -> None:
        self._request = request
        self._style = style_of(request.product.voice, request.hint)

    def drafts(self) -> Iterator[Draft]:
        for story in stories_of(self._request, self._style):
            for frame in self._ordered(story):
                yield from self._filled(frame, story)

    def _ordered(self, story: Story) -> list[Frame]:
        """Return the frames that can be filled, in an order that the latest posts and the seed give."""
        available = {*story.slots, *_counted_slots(story)}
        fillable = [frame for frame in story.frames if frame.slots <= available]
        fitting = [frame for frame in fillable if not self._is_unwanted(frame)] or fillable
        return sorted(fitting, key=lambda frame: (self._penalty(frame, story), drawn(self._request, frame.text)))

    def _is_unwanted(self, frame: Frame) -> bool:
        style = self._style
        return (
            (style.questions is False and "?" in frame.text)
            or (style.lists is False and bool(frame.slots & _LISTS))
            or (style.is_short and "description" in frame.slots)
        )

    def _penalty(self, frame: Frame, story: Story) -> int:
        """Return how badly a frame fits: its angle was used lately, it says less than it could, or it is not what was asked."""
        style, angles = self._style, [angle for _, angle in self._request.recent[:_ROTATION]]
        penalty = len(angles) - angles.index(frame.angle) if frame.angle in angles else 0
        penalty += (frame.angle in _DRY_ANGLES) - 2 * ("before" in frame.slots)
        if "release" in story.slots:
            has_list, says = bool(_counted_slots(story)), bool(story.slots.keys() & _SUBSTANCE)
            penalty += 2 * (has_list and not frame.slots & _LISTS) + 3 * ((has_list or says) and not frame.slots & _SUBSTANCE)
        if (style.questions and frame.angle != "question") or (style.lists and not frame.slots & _LISTS):
            penalty += _ROTATION + 2
        return penalty

    def _filled(self, frame: Frame, story: Story) -> Iterator[Draft]:
        """Fill a frame: with as many points as fit, and without the details if they are too long."""
        if not frame.slots & _LISTS:
            for details in self._details(frame, story):
                yield self._draft(frame, story, frame.filled(story.slots), details=details)
            return
        most = min(len(story.points), _MOST_POINTS[self._request.channel])
        for count in range(most, _MIN_POINTS - 1, -1):
            shown = story.points[:count]
            lines = {"items": _lines(shown, "item"), "fixes": _lines(shown, "fixed"), "count": _COUNTS[count]}
            yield self._draft(frame, story, frame.filled({**story.slots, **lines}), shown=shown)

    def _draft(
        self, frame: Frame, story: Story, text: str, *, shown: tuple[Point, ...] = (), details: tuple[str, ...] = ()
    ) -> Draft:
        product = story.slots["product"]
        text = with_emoji(styled(text, self._style, keep=product), self._style)
        more = (styled(sentence, self._style, keep=product) for sentence in details)
        told = [
            *story.told,
            *(point.id for point in shown if point.id),
            *(id for slot in sorted(frame.slots) for id in story.tells.get(slot, ())),
        ]
        return Draft(
            text="\n\n".join((text, *more, *self._last_lines(frame))),
            used=tuple(dict.fromkeys(told)),
            drafter="template",
            angle=frame.angle,
        )

    def _details(self, frame: Frame, story: Story) -> Iterator[tuple[str, ...]]:
        """Return the sentences that may follow, the longest choice first."""
        is_on_threads = self._request.channel == "threads"
        is_wanted = is_on_threads or drawn(self._request, f"details {frame.text}")[0] % 2 == 0
        is_open = "?" not in frame.text and "description" not in frame.slots
        if story.details and is_wanted and is_open and not self._style.is_short:
            if is_on_threads and len(story.details) > 1:
                yield (" ".join(story.details[:2]),)
            yield story.details[:1]
        yield ()

    def _last_lines(self, frame: Frame) -> Iterator[str]:
        style, url = self._style, self._request.product.url
        if style.hashtags:
            yield " ".join(style.hashtags)
        is_usual = self._request.channel == "threads" and style.links is None and frame.angle in _LINKED_ANGLES
        if (style.links or is_usual) and url is not MISSING:
            yield url


def _counted_slots(story: Story) -> frozenset[str]:
    """Return the slots that the points of a story fill."""
    if len(story.points) < _MIN_POINTS:
        return frozenset()
    return frozenset({"items", "count", "fixes"} if all(point.phrase.fixed for point in story.points) else {"items", "count"})


def _lines(points: tuple[Point, ...], field: str) -> str:
    return "\n".join(f"- {getattr(point.phrase, field)}" for point in points)


def _is_repetitive(text: str, request: DraftRequest) -> bool:
    return any(alike(text, other) for other, _ in request.recent[:_REMEMBERED])
