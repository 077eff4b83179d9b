"""Reads the checked-in activity sets, and makes the drafts for both channels as slothpost would, one post after the other."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from slothpost.activity.classify import classify
from slothpost.activity.happening import AppVersion, Commit, News, PullRequest, Release, Stars
from slothpost.drafting.choose import choose
from slothpost.drafting.drafter import Draft, DraftRequest
from slothpost.drafting.template import write
from slothpost.model import Activity, ChannelName, Product, Sighting, Source, Voice
from slothpost.text.check import check_text

HERE = Path(__file__).parent
CHANNELS: Sequence[ChannelName] = ("x", "threads")
BEGIN = datetime(2027, 3, 1, 8, 0, tzinfo=UTC)


class ActivitySet(msgspec.Struct, frozen=True):
    news: tuple[Mapping[str, str | int | list[str]], ...]


class MadeProduct(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    description: str
    url: str
    sources: tuple[Source, ...]
    sets: tuple[ActivitySet, ...]
    domains: tuple[str, ...] = ()
    is_private: bool = False
    private_names: tuple[str, ...] = ()
    samples: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    banned: tuple[str, ...] = ()

    @property
    def product(self) -> Product:
        return Product(
            id=self.name.lower(),
            user="u1",
            name=self.name,
            description=self.description,
            url=self.url,
            domains=list(self.domains),
            voice=Voice(samples=list(self.samples), rules=list(self.rules), banned=list(self.banned)),
            created_at=BEGIN,
        )


class MadeDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A draft for a channel, with the request that it was made for."""

    activities: tuple[Activity, ...]
    request: DraftRequest
    draft: Draft

    @property
    def product(self) -> Product:
        return self.request.product

    @property
    def channel(self) -> ChannelName:
        return self.request.channel


class _Sets(msgspec.Struct, frozen=True):
    products: tuple[MadeProduct, ...]


def made_products() -> tuple[MadeProduct, ...]:
    return msgspec.convert(tomllib.loads((HERE / "activity_sets.toml").read_text()), _Sets).products


def drafts_of(made: MadeProduct, channel: ChannelName) -> Iterator[MadeDraft]:
    """Make the drafts of a product's sets, each with the earlier ones as its latest posts."""
    recent: list[tuple[str, str]] = []
    for number, each in enumerate(made.sets):
        activities = tuple(_activities(made, number, each))
        choice = choose(activities, product=made.product, private_names=made.private_names)
        assert choice.activities, f"{made.name}, set {number + 1}: {choice.nothing}"
        request = DraftRequest(
            product=made.product,
            channel=channel,
            activities=choice.activities,
            recent=tuple(recent),
            seed=f"{made.name} {number}",
            private_names=made.private_names,
        )
        draft = write(request)
        recent.insert(0, (draft.text, draft.angle))
        yield MadeDraft(activities=activities, request=request, draft=draft)


def readable(made: MadeProduct) -> str:
    """Write down a product's drafts as they are checked in."""
    parts = [f"# {made.name}\n\n{made.description}\n"]
    for number, (on_x, on_threads) in enumerate(zip(drafts_of(made, "x"), drafts_of(made, "threads"), strict=True), start=1):
        parts.append(f"## {number}\n")
        parts.append("\n".join(f"- {_reported(each)} → {_classified(each, on_x, on_threads)}" for each in on_x.activities) + "\n")
        for name, each in (("X", on_x), ("Threads", on_threads)):
            check = check_text(each.channel, each.draft.text)
            parts.append(f"**{name}**, {each.draft.angle}, {check.length} of {check.limit}:\n\n{_quoted(each.draft.text)}\n")
    return "\n".join(parts)


def _activities(made: MadeProduct, number: int, each: ActivitySet) -> Iterator[Activity]:
    for position, reported in enumerate(each.news):
        news = _news(reported)
        seen = classify(news)
        source: Source = "appstore" if isinstance(news, AppVersion) else "github"
        sources = (source,) if isinstance(news, AppVersion | Release | Stars) else made.sources
        yield Activity(
            product=made.name.lower(),
            id=f"{number}-{position}",
            at=BEGIN + timedelta(days=3 * number, minutes=-position),
            kind=seen.kind,
            title=seen.title,
            body=seen.body,
            worth=seen.worth,
            is_private=made.is_private and source == "github",
            sightings=[Sighting(source=name, event="push", delivery="d") for name in sources],
        )


def _news(reported: Mapping[str, str | int | list[str]]) -> News:
    match reported:
        case {"commit": str(message)}:
            return Commit(message)
        case {"pull_request": str(title)}:
            labels = reported.get("labels", [])
            return PullRequest(title, str(reported.get("body", "")), tuple(labels) if isinstance(labels, list) else ())
        case {"release": str(version)}:
            return Release(str(reported.get("name", "")), version, str(reported.get("notes", "")))
        case {"app_version": str(version), "state": str(state)}:
            return AppVersion(version, state, str(reported.get("notes", "")))
        case {"stars": int(count)}:
            return Stars(count)
    raise ValueError(f"unknown news in the sets: {reported}")


def _reported(activity: Activity) -> str:
    return activity.title


def _classified(activity: Activity, *drafts: MadeDraft) -> str:
    told = [each.channel for each in drafts if activity.id in each.draft.used]
    return f"{activity.kind}, {activity.worth}{', told on ' + ' and '.join(told) if told else ''}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())
