"""ETags of schedules: conditional reads, and optimistic locking of writes."""

from __future__ import annotations

import hashlib
import re

from tickler.model.fire import Health, health_to_json
from tickler.model.revision import Expected, Revision
from tickler.model.schedule import StoredSchedule
from tickler.server.context import HttpRequest
from tickler.web.problems import Refused

# Version, creation time of the schedule, and digest of its changing state. A client may write the version alone.
_ETAG = re.compile(r'(?:W/)?"([1-9]\d{0,17})(?:-([0-9a-f]{1,12})(?:-[0-9a-f]{1,32})?)?"')
_REVISION = re.compile(r"([1-9]\d{0,17})-([0-9a-f]{1,12})")


def etag(stored: StoredSchedule, health: Health | None = None) -> dict[str, str]:
    """Return the header `ETag`. It changes with the version, and when the schedule fires, fails or ends.

    Until the first fire, it is the same with and without `health`.
    """
    state = f"{stored.state} {stored.next_fire_at} {stored.reason}"
    if health is not None and health != Health():
        state += f" {health_to_json(health)}"
    digest = hashlib.blake2b(state.encode(), digest_size=6).hexdigest()
    return {"etag": f'"{revision_text(stored)}-{digest}"'}


def is_known(request: HttpRequest, current: str) -> bool:
    """True if `If-None-Match` names the current etag: the caller's copy is up to date."""
    known = [each.removeprefix("W/") for each in _listed(request, "if-none-match")]
    return "*" in known or current in known


def expected_by(request: HttpRequest) -> Expected | None:
    """Return the revision that a change requires; 0: the schedule must not exist; None: no condition."""
    match, none_match = _listed(request, "if-match"), _listed(request, "if-none-match")
    if none_match:
        if none_match != ["*"]:
            raise Refused(400, "if-none-match: only * is supported here: create, never replace", "if-none-match")
        if match:
            raise Refused(422, "if-match and if-none-match contradict each other: leave one of them out", "if-match")
        return 0
    if match == ["*"]:
        return Revision()
    return [_read(each) for each in match] or None


def revision_text(stored: StoredSchedule) -> str:
    """Return the revision as forms carry it."""
    return f"{stored.version}-{stored.created_at:x}"


def read_revision(text: str) -> Revision:
    """Parse the text of `revision_text`, and refuse any other."""
    found = _REVISION.fullmatch(text)
    if found is None:
        raise Refused(400, "the form does not name the version that it edits: open it again")
    return Revision(int(found[1]), int(found[2], 16))


def _read(text: str) -> Revision:
    found = _ETAG.fullmatch(text)
    if found is None:
        raise Refused(400, 'if-match: is neither an etag of a response nor a version such as "3"', "if-match")
    return Revision(int(found[1]), None if found[2] is None else int(found[2], 16))


def _listed(request: HttpRequest, header: str) -> list[str]:
    """Return the etags of a header; they contain no commas. A header that is present has at least one."""
    return [each.strip() for line in request.headers.getall(header, []) for each in line.split(",")]
