"""Reading what App Store Connect sends, whose events name their states differently, and what the lookup answers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from slothpost.activity.happening import AppVersion
from slothpost.sources import appstore
from slothpost.sources.appstore import LookedUp, looked_up
from slothpost.sources.untrusted import Unreadable

# As Apple's documentation shows it.
DOCUMENTED = {
    "data": {
        "type": "appStoreVersionAppVersionStateUpdated",
        "id": "5fd8c2cb-8e07-4b13-bcf3-9bd9b1ea1b29",
        "version": 1,
        "attributes": {
            "oldValue": "PREPARE_FOR_SUBMISSION",
            "newValue": "READY_FOR_REVIEW",
            "timestamp": "2025-04-16T05:00:52.745Z",
        },
        "relationships": {"instance": {"data": {"type": "appStoreVersions", "id": "i-1"}, "links": {"self": "https://x"}}},
    }
}


def delivered(type: str, attributes: dict[str, Any], instance: object = None) -> bytes:
    link = {"data": {"type": "things", "id": "i-1"}} if instance is None else instance
    data = {"type": type, "id": "d-1", "version": 1, "attributes": attributes, "relationships": {"instance": link}}
    return json.dumps({"data": data}).encode()


def version(state: str) -> bytes:
    return delivered(
        "appStoreVersionAppVersionStateUpdated", {"oldValue": "X", "newValue": state, "timestamp": "2027-03-01T08:00:00Z"}
    )


def test_what_apple_documents_is_read_and_is_no_news_yet() -> None:
    reading = appstore.read(json.dumps(DOCUMENTED).encode())
    assert (reading.delivery, reading.ignored) == ("5fd8c2cb-8e07-4b13-bcf3-9bd9b1ea1b29", "READY_FOR_REVIEW is not news")


def test_a_version_that_is_live_is_news() -> None:
    (happening,) = appstore.read(version("READY_FOR_DISTRIBUTION")).happenings
    assert (happening.id, happening.event) == ("version:i-1", "ready_for_distribution")
    assert happening.news == AppVersion("", "READY_FOR_DISTRIBUTION")
    assert happening.at == datetime(2027, 3, 1, 8, 0, tzinfo=UTC)


def test_a_version_in_review_is_other_news_than_its_release() -> None:
    assert appstore.read(version("IN_REVIEW")).happenings[0].id == "version:i-1:review"


@pytest.mark.parametrize(
    "state", ["REJECTED", "WAITING_FOR_REVIEW", "PENDING_DEVELOPER_RELEASE", "METADATA_REJECTED", "OF_TOMORROW"]
)
def test_other_states_are_no_news(state: str) -> None:
    assert appstore.read(version(state)).ignored == f"{state} is not news"


def test_each_event_has_its_own_name_for_the_state() -> None:
    type = "buildBetaDetailExternalBuildStateUpdated"
    beta = appstore.read(delivered(type, {"oldExternalBuildState": "X", "newExternalBuildState": "IN_BETA_TESTING"}))
    assert (beta.happenings[0].id, beta.happenings[0].at) == ("beta:i-1", None)
    upload = appstore.read(delivered("buildUploadStateUpdated", {"oldState": "PROCESSING", "newState": "COMPLETE"}))
    assert upload.ignored == "COMPLETE is not news"
    with pytest.raises(Unreadable, match="newExternalBuildState is missing"):
        appstore.read(delivered(type, {"newValue": "IN_BETA_TESTING"}))


@pytest.mark.parametrize("type", ["betaFeedbackCrashSubmissionCreated", "backgroundAssetVersionStateUpdated", "of tomorrow"])
def test_other_events_are_ignored_whatever_they_have(type: str) -> None:
    assert (
        appstore.read(delivered(type, {"timestamp": "x"}, instance={"id": "i", "type": "t"})).ignored
        == "nothing is made of this event"
    )


def test_a_ping_is_one_by_its_type_or_by_its_attribute() -> None:
    for body in (delivered("webhookPings", {}), delivered("webhookPingCreated", {}), delivered("whatever", {"ping": True})):
        assert appstore.read(body).is_ping
    assert not appstore.read(delivered("whatever", {"ping": "no"})).is_ping


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"{}", b'{"data": []}', b'{"data": {}}', version("IN_REVIEW").replace(b'"i-1"', b"7")]
)
def test_what_is_not_as_documented_is_refused(body: bytes) -> None:
    with pytest.raises(Unreadable):
        appstore.read(body)


def test_a_version_that_was_looked_up_has_its_notes() -> None:
    app = LookedUp(
        track_id=42,
        track_name="Teapot",
        version="1.1 beta/2",
        release_notes="Tea for two.\r\nAnd more.",
        current_version_release_date=datetime(2027, 3, 1, 8, 0, tzinfo=UTC),
        track_view_url="javascript:alert(1)",
    )
    happening = looked_up(app)
    assert happening.id.startswith("version:")
    assert happening.news == AppVersion("1.1 beta/2", "READY_FOR_DISTRIBUTION", "Tea for two.\nAnd more.")
    assert happening.url is None
