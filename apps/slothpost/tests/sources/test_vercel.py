"""Reading what Vercel sends, in both shapes, and what its API lists."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from slothpost.activity.happening import Deployment
from slothpost.sources import vercel
from slothpost.sources.untrusted import Unreadable
from slothpost.sources.vercel import ListedDeployment, listed

SHA = "a" * 40
NOW = datetime(2027, 3, 1, 8, 0, tzinfo=UTC)
META = {"githubCommitSha": SHA, "githubCommitMessage": "feat: Brew tea", "githubCommitRef": "main", "githubRepoId": "7"}
PAYLOAD: dict[str, Any] = {
    "team": {"id": "team_ada"},
    "user": {"id": "user_ada"},
    "deployment": {"id": "dpl_1", "url": "teapot-1.vercel.app", "name": "teapot", "meta": META},
    "target": "production",
    "project": {"id": "prj_1"},
}


def delivered(type: str = "deployment.promoted", *, envelope: dict[str, Any] | None = None, **payload: Any) -> bytes:
    content = {"type": type, "id": "hook_1", "createdAt": int(NOW.timestamp() * 1000), "payload": {**PAYLOAD, **payload}}
    return json.dumps({**content, **(envelope or {})}).encode()


def test_a_promoted_deployment_is_under_its_commit() -> None:
    reading = vercel.read(delivered())
    assert (reading.delivery, reading.event, reading.subject, reading.owner) == (
        "hook_1",
        "deployment.promoted",
        "prj_1",
        "team_ada",
    )
    (happening,) = reading.happenings
    assert (happening.id, happening.news, happening.at) == (f"commit:{SHA}", Deployment("feat: Brew tea"), NOW)
    assert (happening.url, happening.is_private, happening.repository) == ("https://teapot-1.vercel.app", None, "7")
    assert reading.name == "teapot"


@pytest.mark.parametrize(("visibility", "is_private"), [("public", False), ("private", True), ("internal", True)])
def test_vercel_may_say_whether_the_repository_is_private(visibility: str, is_private: bool) -> None:
    deployment = {**PAYLOAD["deployment"], "meta": {**META, "githubRepoVisibility": visibility}}
    assert vercel.read(delivered(deployment=deployment)).happenings[0].is_private is is_private


def test_a_deployment_without_a_commit_is_under_its_own_id_and_has_nothing_private() -> None:
    for meta in ({}, None, {"githubCommitSha": "not a hash", "githubCommitMessage": "made up"}):
        deployment = {**PAYLOAD["deployment"], "meta": meta}
        (happening,) = vercel.read(delivered(deployment=deployment)).happenings
        assert (happening.id, happening.news, happening.is_private) == ("deployment:dpl_1", Deployment(None), False)


def test_an_alias_is_the_better_address() -> None:
    assert vercel.read(delivered(alias=["teapot.example.com", "x.vercel.app"])).happenings[0].url == "https://teapot.example.com"


@pytest.mark.parametrize("type", ["deployment.succeeded", "deployment-succeeded", "deployment-ready"])
def test_a_deployment_that_succeeded_is_news_if_it_is_in_production(type: str) -> None:
    assert vercel.read(delivered(type)).happenings
    for target, shown in ((None, "preview"), ("staging", "staging"), ("", "preview")):
        reading = vercel.read(delivered(type, target=target))
        assert (reading.happenings, reading.ignored) == ((), f"its target is {shown}")


def test_the_older_shape_has_at_the_top_what_the_newer_has_in_objects() -> None:
    payload = {
        "deploymentId": "dpl_2",
        "name": "teapot",
        "url": "teapot-2.vercel.app",
        "projectId": "prj_2",
        "target": "production",
    }
    envelope = {"payload": payload, "teamId": "team_eve", "userId": "user_eve"}
    reading = vercel.read(delivered("deployment-ready", envelope=envelope))
    assert (reading.subject, reading.owner, reading.name) == ("prj_2", "team_eve", "teapot")
    assert reading.happenings[0].id == "deployment:dpl_2"


def test_the_user_is_the_owner_only_where_there_is_no_team() -> None:
    assert vercel.read(delivered(team={"id": None})).owner == "user_ada"
    assert vercel.read(delivered(team=None, user=None, envelope={"teamId": "team_x"})).owner == "team_x"
    assert vercel.read(delivered(team=None, user=None)).owner is None


@pytest.mark.parametrize(
    "type", ["deployment.created", "deployment.error", "deployment.canceled", "project.renamed", "firewall.attack", "of tomorrow"]
)
def test_other_events_are_ignored_whatever_they_have(type: str) -> None:
    assert vercel.read(delivered(type)).ignored == "only deployments to production are news"
    assert vercel.read(delivered(type, project=7, team="x", deployment=[])).subject is None


def test_a_test_of_the_webhook_is_a_ping() -> None:
    assert vercel.read(delivered("test-webhook")).is_ping


def test_instants_are_milliseconds_or_dates() -> None:
    assert vercel.read(delivered(envelope={"createdAt": "2027-03-01T08:00:00.000Z"})).happenings[0].at == NOW
    assert vercel.read(delivered(envelope={"createdAt": -1})).happenings[0].at is None


def test_without_an_id_the_digest_of_the_body_names_the_delivery() -> None:
    first, second = vercel.read(delivered(envelope={"id": None})), vercel.read(delivered(envelope={"id": None}, target="staging"))
    assert len(first.delivery) == 64
    assert first.delivery != second.delivery


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{}",
        delivered(deployment=7),
        delivered(deployment={}),
        delivered(project=7),
        delivered(team=7),
    ],
)
def test_what_is_not_as_documented_is_refused(body: bytes) -> None:
    with pytest.raises(Unreadable):
        vercel.read(body)


def test_a_listed_deployment_is_the_same_as_a_delivered_one() -> None:
    at = int(NOW.timestamp() * 1000)
    text = {"uid": "dpl_1", "projectId": "prj_1", "url": "teapot-1.vercel.app", "target": "production", "ready": at, "meta": META}
    found = msgspec.convert(text, ListedDeployment)
    delivered_one = vercel.read(delivered()).happenings[0]
    assert msgspec.structs.replace(listed(found), event=delivered_one.event) == delivered_one
    assert found.is_promoted_of("prj_1")
    assert not found.is_promoted_of("prj_2")
    assert not msgspec.structs.replace(found, ready_substate="STAGED").is_promoted_of("prj_1")
    assert not msgspec.structs.replace(found, target=None).is_promoted_of("prj_1")
