"""Reads what App Store Connect sends, and what the public lookup answers: versions of an app."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from slothpost.activity.app_releases import LIVE
from slothpost.activity.happening import ActivityId, AppVersion, Happening
from slothpost.sources import untrusted
from slothpost.sources.reading import Reading
from slothpost.sources.untrusted import Unreadable, decoded

LOOKUP = "lookup"  # the event of what the public lookup told

_VERSION = "appStoreVersionAppVersionStateUpdated"
_BETA = "buildBetaDetailExternalBuildStateUpdated"
_UPLOAD = "buildUploadStateUpdated"
_PINGS = frozenset({"webhookPings", "webhookPingCreated"})  # sources disagree on the name
_TOLD = {
    _VERSION: frozenset({LIVE, "IN_REVIEW"}),
    _BETA: frozenset({"BETA_APPROVED", "IN_BETA_TESTING"}),
    _UPLOAD: frozenset[str](),
}


class Ping(msgspec.Struct, frozen=True):
    ping: object = False


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """The part that every event has."""

    type: str
    id: str | None = None
    attributes: Ping = Ping()


class Delivered(msgspec.Struct, frozen=True):
    data: Envelope


class Attributes(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Each event has another name for the state."""

    new_value: str | None = None
    new_state: str | None = None
    new_external_build_state: str | None = None
    timestamp: datetime | None = None


class Instance(msgspec.Struct, frozen=True):
    id: str


class InstanceLink(msgspec.Struct, frozen=True):
    data: Instance


class Relationships(msgspec.Struct, frozen=True):
    instance: InstanceLink


class Change(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    attributes: Attributes
    relationships: Relationships


class DeliveredChange(msgspec.Struct, frozen=True):
    data: Change


class LookedUp(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An app as the public lookup describes it."""

    track_id: int
    track_name: str
    version: str
    release_notes: str | None = None
    current_version_release_date: datetime | None = None
    track_view_url: str | None = None


class Lookup(msgspec.Struct, frozen=True):
    results: Sequence[LookedUp] = ()


def read(body: bytes) -> Reading:
    """Read a verified delivery. `Unreadable` if its body is not JSON, or not as Apple documents."""
    envelope = decoded(body, Delivered).data
    reading = Reading(
        delivery=untrusted.short_name(envelope.id or hashlib.sha256(body).hexdigest()),
        event=untrusted.line(envelope.type, 80),
        is_ping=envelope.attributes.ping is True or envelope.type in _PINGS,
    )
    if reading.is_ping:
        return reading
    if envelope.type not in _TOLD:
        return replace(reading, ignored="nothing is made of this event")
    change = decoded(body, DeliveredChange).data
    state = _state(change)
    if state not in _TOLD[change.type]:
        return replace(reading, ignored=f"{untrusted.line(state, 60)} is not news")
    return replace(reading, happenings=(_happening(change, state),))


def looked_up(app: LookedUp) -> Happening:
    """The version in the App Store. The lookup does not know the id that App Store Connect has for it."""
    version = untrusted.line(app.version, 40)
    return Happening(
        id=ActivityId(f"version:{untrusted.short_name(version)}"),
        event=LOOKUP,
        news=AppVersion(version, LIVE, untrusted.text(app.release_notes)),
        at=untrusted.instant(app.current_version_release_date),
        url=untrusted.web_address(app.track_view_url),
    )


def review_id(version: str) -> str:
    """Return the id of the activity that a version waits for Apple: its release is another one, and told although this was."""
    return f"{version}:review"


def _state(change: Change) -> str:
    attributes = change.attributes
    name, state = {
        _VERSION: ("newValue", attributes.new_value),
        _BETA: ("newExternalBuildState", attributes.new_external_build_state),
        _UPLOAD: ("newState", attributes.new_state),
    }[change.type]
    if state is None:
        raise Unreadable(f"the body is not as documented: data.attributes.{name} is missing")
    return state


def _happening(change: Change, state: str) -> Happening:
    instance = untrusted.short_name(change.relationships.instance.data.id)
    id = f"beta:{instance}" if change.type == _BETA else f"version:{instance}"
    return Happening(
        id=ActivityId(review_id(id) if state == "IN_REVIEW" else id),
        event=state.lower(),
        news=AppVersion("", state),
        at=untrusted.instant(change.attributes.timestamp),
    )
