"""ETags: what a caller has read of a schedule, and what may be written over."""

from __future__ import annotations

import hashlib
import re

from tickler.errors import InvalidInput
from tickler.model.fire import Health, health_to_json
from tickler.model.revision import Expected, Revision
from tickler.model.schedule import StoredSchedule
from tickler.server.context import HttpRequest
from tickler.server.problems import Refused

# A version, when its schedule was made, and a digest of what moves by itself; of what somebody wrote down, the version alone.
_ETAG = re.compile(r'(?:W/)?"([1-9]\d{0,17})(?:-([0-9a-f]{1,12})(?:-[0-9a-f]{1,32})?)?"')
_REVISION = re.compile(r"([1-9]\d{0,17})-([0-9a-f]{1,12})")


def etag(stored: StoredSchedule, health: Health | None = None) -> dict[str, str]:
    """The header `ETag`. It changes with the version, and when the schedule fires, fails or ends.

    An answer without `health` has the same ETag as one with it until the first fire.
    """
    moves = f"{stored.state} {stored.next_fire_at} {stored.reason}"
    if health is not None and health != Health():
        moves += f" {health_to_json(health)}"
    digest = hashlib.blake2b(moves.encode(), digest_size=6).hexdigest()
    return {"etag": f'"{revision_text(stored)}-{digest}"'}


def is_known(request: HttpRequest, answered: str) -> bool:
    """Whether what the caller has, by `If-None-Match`, is what would be answered with this etag."""
    known = [each.removeprefix("W/") for each in _listed(request, "if-none-match")]
    return "*" in known or answered in known


def expected_by(request: HttpRequest) -> Expected | None:
    """What has to be there for a change to be made; 0: nothing; None: whatever is there, or nothing."""
    match, none_match = _listed(request, "if-match"), _listed(request, "if-none-match")
    if none_match:
        if none_match != ["*"]:
            raise Refused(400, "if-none-match: only * makes sense here: there must be none yet", "if-none-match")
        if match:
            raise Refused(422, "if-match and if-none-match contradict each other: leave one of them out", "if-match")
        return 0
    if match == ["*"]:
        return Revision()
    return [_read(each) for each in match] or None


def revision_text(stored: StoredSchedule) -> str:
    """As forms carry it."""
    return f"{stored.version}-{stored.created_at:x}"


def read_revision(text: str) -> Revision:
    """`InvalidInput` for what `revision_text` has not made."""
    found = _REVISION.fullmatch(text)
    if found is None:
        raise InvalidInput(f"version: {text[:40]!r} is not one that a schedule was shown with")
    return Revision(int(found[1]), int(found[2], 16))


def _read(text: str) -> Revision:
    found = _ETAG.fullmatch(text)
    if found is None:
        raise Refused(400, 'if-match: is not an etag as it was answered, nor a version such as "3"', "if-match")
    return Revision(int(found[1]), None if found[2] is None else int(found[2], 16))


def _listed(request: HttpRequest, header: str) -> list[str]:
    """Its etags, which have no commas in them; a header that is there has one at least."""
    return [each.strip() for line in request.headers.getall(header, []) for each in line.split(",")]
