"""Reads what a language model answered, also if it wrote prose around its JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import msgspec

from slothpost.drafting.choose import covered
from slothpost.drafting.drafter import Draft, DrafterFailed, DraftRequest
from slothpost.model import DrafterName

MAX_TEXT = 5_000
_MAX_OBJECTS = 20
_NOT_ANGLE = re.compile(r"[^a-z_]+")


class Answer(msgspec.Struct):
    text: str
    used: tuple[int, ...] = ()
    angle: str = ""


def draft_of(answer: str, request: DraftRequest, drafter: DrafterName, service: str) -> Draft:
    """Return the draft in an answer; `DrafterFailed` with the answer if there is none."""
    found = next(_answers(answer), None)
    if found is None:
        raise DrafterFailed(f'{service} did not answer with JSON that has a "text"', answer=answer[:MAX_TEXT])
    ids = [activity.id for activity in request.activities]
    told = [ids[number - 1] for number in found.used if 0 < number <= len(ids)] or ids
    if ids[0] in told:
        told += [activity.id for activity in covered(request.activities)]
    return Draft(
        text=_tidied(found.text),
        used=tuple(dict.fromkeys(told)),
        drafter=drafter,
        angle=_NOT_ANGLE.sub("_", found.angle.lower())[:30].strip("_"),
    )


def _answers(answer: str) -> Iterator[Answer]:
    """Find the objects in a text that are answers."""
    decoder = json.JSONDecoder()
    starts = [found.start() for found in re.finditer(r"\{", answer)][:_MAX_OBJECTS]
    for start in starts:
        try:
            found, _ = decoder.raw_decode(answer, start)
            yield msgspec.convert(found, Answer)
        except (ValueError, RecursionError, msgspec.ValidationError):
            continue


def _tidied(text: str) -> str:
    """Return a text without what models put around it: quotes, blanks at the ends of lines, more than one empty line."""
    lines = "\n".join(line.rstrip() for line in text[:MAX_TEXT].replace("\r\n", "\n").strip().splitlines())
    text = re.sub(r"\n{3,}", "\n\n", lines)
    is_quoted = len(text) > 2 and text[0] in '"“' and text[-1] in '"”' and not any(quote in text[1:-1] for quote in '"“”')
    return text[1:-1].strip() if is_quoted else text
