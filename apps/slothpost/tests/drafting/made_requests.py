"""Products, activities and requests for tests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from slothpost.drafting.drafter import DraftRequest
from slothpost.model import Activity, ActivityKind, ChannelName, DrafterName, Product, Sighting, Voice
from tickler.table import MISSING

from .activity_sets import BEGIN


def a_product(
    *,
    name: str = "Plantlog",
    samples: Sequence[str] = (),
    rules: Sequence[str] = (),
    banned: Sequence[str] = (),
    drafter: DrafterName = "template",
    tells_private: bool = False,
) -> Product:
    return Product(
        id="p1",
        user="u1",
        name=name,
        description="A plant diary for people who forget to water.",
        url="https://plantlog.example.com",
        voice=Voice(samples=list(samples), rules=list(rules), banned=list(banned)),
        drafter=drafter,
        tells_private=tells_private,
        created_at=BEGIN,
    )


def an_activity(
    title: str,
    *,
    id: str = "0",
    kind: ActivityKind = "feature",
    body: str = "",
    worth: int = 70,
    is_private: bool = False,
    is_live: bool = False,
    day: float = 0,
    x_post: str | None = None,
    url: str | None = None,
) -> Activity:
    return Activity(
        product="p1",
        id=id,
        at=BEGIN + timedelta(days=day),
        kind=kind,
        title=title,
        body=body,
        worth=worth,
        is_private=is_private,
        url=MISSING if url is None else url,
        x_post=MISSING if x_post is None else x_post,
        sightings=[Sighting(source="vercel" if is_live else "github", event="push", delivery="d")],
    )


def a_request(
    *activities: Activity | str,
    product: Product | None = None,
    channel: ChannelName = "x",
    kind: ActivityKind = "feature",
    body: str = "",
    is_live: bool = False,
    seed: str = "seed",
    recent: Sequence[tuple[str, str]] = (),
    hint: str = "",
    private_names: Sequence[str] = (),
) -> DraftRequest:
    """Make a request. Titles stand for activities with ids "0", "1" and so on."""
    return DraftRequest(
        product=product or a_product(),
        channel=channel,
        activities=tuple(
            an_activity(each, id=str(number), kind=kind, body=body, is_live=is_live) if isinstance(each, str) else each
            for number, each in enumerate(activities)
        ),
        recent=recent,
        seed=seed,
        hint=hint,
        private_names=private_names,
    )
