"""What happened to a product: a feature, a release, a deployment."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from slothpost.model.table import slothpost
from tickler.table import MISSING, Attr, Entity, Index, Key, Missing, Part, attr

Source = Literal["github", "vercel", "appstore"]
ActivityKind = Literal[
    "feature",  # something users can see
    "fix",  # something users no longer suffer from
    "release",  # a version on GitHub
    "app_release",  # a version in the App Store
    "app_review",  # a version waits for or is in review, or is in beta
    "deployment",  # a production deployment of which nothing else is known
    "milestone",  # so many stars
    "chore",  # bumps, typos, refactoring: never told
]


class Sighting(Part):
    """A source that told about an activity: the same commit may come as a push, a merged pull request and a deployment."""

    source: Attr[Source]
    event: Attr[str]  # such as push, pull_request, release, deployment.promoted
    delivery: Attr[str]  # the delivery's id, or `poll`
    is_private: Attr[bool | None] = attr(default=None)  # what the source says of the repository; None: it does not say


class Activity(Entity, table=slothpost):
    """One thing that happened, however many sources told about it.

    `worth` is how much it deserves a post; 0 is never told. It is in `for_x` until a post for X has it, likewise for Threads.
    """

    product: Attr[str] = attr()
    id: Attr[str] = attr()  # commit:<sha>, release:<id>, version:<id>, stars:<n>: the same from every source
    at: Attr[datetime] = attr()
    kind: Attr[ActivityKind]
    title: Attr[str]
    body: Attr[str] = attr(default="")
    url: Attr[str | Missing] = attr(default=MISSING)
    is_private: Attr[bool] = attr(default=False)
    repository: Attr[str] = attr(default="")  # owner/name: if it is private, drafts must not have it
    worth: Attr[int] = attr()
    sightings: Attr[list[Sighting]] = attr(default=[])
    x_post: Attr[str | Missing] = attr(default=MISSING)
    threads_post: Attr[str | Missing] = attr(default=MISSING)

    key = Key("PRODUCT" / product, "ACTIVITY" / id)
    by_time = Index("gsi1", "ACTIVITIES" / product, at / id)
    for_x = Index("gsi2", "FOR_X" / product, at / id, when=x_post.missing() & (worth > 0))
    for_threads = Index("gsi3", "FOR_THREADS" / product, at / id, when=threads_post.missing() & (worth > 0))
