"""Reads what Vercel sends and answers: deployments to production."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from slothpost.activity.happening import ActivityId, Deployment, Happening
from slothpost.sources import untrusted
from slothpost.sources.reading import Reading
from slothpost.sources.untrusted import Unreadable, decoded

PROMOTED = "deployment.promoted"  # became production, by hand or by itself; not by a rollback
SUCCEEDED = frozenset({"deployment.succeeded", "deployment-succeeded", "deployment-ready"})  # news if its target is production
TEST = "test-webhook"
PRODUCTION = "production"


class Meta(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What Vercel knows of the commit. Whoever deploys by the command line may write anything in it."""

    github_commit_sha: str | None = None
    github_commit_message: str | None = None
    github_repo_id: str | int | None = None
    github_repo_visibility: str | None = None
    github_org: str | None = None
    github_repo: str | None = None

    @property
    def repository_name(self) -> str:
        return untrusted.line("/".join(filter(None, (self.github_org, self.github_repo))), 140)


class Id(msgspec.Struct, frozen=True, kw_only=True):
    id: str | None = None
    name: str | None = None


class About(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The part of a payload that routes it. In the older shape, what the newer one has in objects is at the top."""

    team: Id | None = None
    user: Id | None = None
    project: Id | str | None = None
    project_id: str | None = None

    @property
    def subject(self) -> str | None:
        return (self.project.id if isinstance(self.project, Id) else None) or self.project_id


class DeploymentObject(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str | None = None
    url: str | None = None
    meta: Meta | None = None


class Payload(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a deployment has, in both shapes."""

    deployment: DeploymentObject | None = None
    deployment_id: str | None = None
    name: str | None = None
    url: str | None = None
    target: str | None = None
    alias: Sequence[str] | None = None


class Envelope(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    type: str
    id: str | None = None
    created_at: int | float | datetime | None = None  # milliseconds, or a date as the documentation says
    payload: msgspec.Raw = msgspec.Raw(b"{}")
    team_id: str | None = None
    user_id: str | None = None


class ListedDeployment(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A deployment as the API lists it."""

    uid: str
    name: str | None = None
    project_id: str | None = None
    url: str | None = None
    target: str | None = None
    ready_substate: str | None = None
    created: int | float | None = None
    ready: int | float | None = None
    meta: Meta | None = None

    def is_promoted_of(self, project: str) -> bool:
        """Tell whether it is one of a project, and in production: a staged one has yet to be promoted."""
        return self.project_id == project and self.target == PRODUCTION and self.ready_substate != "STAGED"

    @property
    def at(self) -> datetime | None:
        return untrusted.instant_of_ms(self.ready or self.created)


def read(body: bytes) -> Reading:
    """Read a verified delivery. `Unreadable` if its body is not JSON, or not as Vercel documents."""
    envelope = decoded(body, Envelope)
    is_deployed = envelope.type == PROMOTED or envelope.type in SUCCEEDED
    about = _about(envelope) if is_deployed else _about_any(envelope)
    owner = (about.team.id if about.team else None) or envelope.team_id or (about.user.id if about.user else None)
    reading = Reading(
        delivery=untrusted.short_name(envelope.id or hashlib.sha256(body).hexdigest()),
        event=untrusted.line(envelope.type, 60),
        subject=untrusted.short_name(about.subject) if about.subject else None,
        owner=untrusted.short_name(owner or envelope.user_id or "") or None,
        name=untrusted.line(about.project.name if isinstance(about.project, Id) else None, 100),
        is_ping=envelope.type == TEST,
    )
    if reading.is_ping:
        return reading
    if not is_deployed:
        return replace(reading, ignored="only deployments to production are news")
    return _deployed(reading, envelope)


def listed(deployment: ListedDeployment) -> Happening:
    """A deployment that was polled."""
    plain = DeploymentObject(id=deployment.uid, url=deployment.url, meta=deployment.meta)
    return _happening(plain, event="deployment", at=deployment.at, alias=None)


def _deployed(reading: Reading, envelope: Envelope) -> Reading:
    payload = decoded(envelope.payload, Payload)
    deployment = _deployment(payload)
    if envelope.type != PROMOTED and payload.target != PRODUCTION:
        return replace(reading, ignored=f"its target is {untrusted.line(payload.target or 'preview', 60)}")
    if deployment is None:
        return replace(reading, ignored="it does not say which deployment")
    at = envelope.created_at
    happening = _happening(
        deployment,
        event=reading.event,
        at=untrusted.instant(at) if isinstance(at, datetime) else untrusted.instant_of_ms(at),
        alias=next(iter(payload.alias or ()), None),
    )
    name = reading.name or untrusted.line(deployment.name or payload.name, 100)
    return replace(reading, happenings=(happening,), name=name)


def _happening(deployment: DeploymentObject, *, event: str, at: datetime | None, alias: str | None) -> Happening:
    """A deployment to production, under the id of its commit. One without a commit has nothing private."""
    meta = deployment.meta or Meta()
    commit = untrusted.commit_id(meta.github_commit_sha)
    message = untrusted.text(meta.github_commit_message) if commit else None
    return Happening(
        id=commit or ActivityId(f"deployment:{untrusted.short_name(deployment.id)}"),
        event=event,
        news=Deployment(message or None),
        at=at,
        url=_address(alias or deployment.url),
        is_private=_is_private(meta) if commit else False,
        repository=None if meta.github_repo_id is None else untrusted.short_name(str(meta.github_repo_id)),
        repository_name=meta.repository_name,
    )


def _is_private(meta: Meta) -> bool | None:
    return None if meta.github_repo_visibility is None else meta.github_repo_visibility != "public"


def _about(envelope: Envelope) -> About:
    return decoded(envelope.payload, About)


def _about_any(envelope: Envelope) -> About:
    """Read what an event of another kind may have: it is not used, so it may have anything in it."""
    try:
        return _about(envelope)
    except Unreadable:
        return About()


def _deployment(payload: Payload) -> DeploymentObject | None:
    found = payload.deployment
    if found is not None:
        return found if found.url else replace(found, url=payload.url)
    return None if payload.deployment_id is None else DeploymentObject(id=payload.deployment_id, url=payload.url)


def _address(url: str | None) -> str | None:
    """Vercel writes host names without a scheme."""
    return None if not url else untrusted.web_address(url if "://" in url else f"https://{url}")
