"""Where activity comes from: a repository, a Vercel project, an app."""

from __future__ import annotations

from datetime import datetime

from slothpost.model.activity import Source
from slothpost.model.table import slothpost
from tickler.table import MISSING, Attr, Entity, Key, Missing, Part, attr


class AppRelease(Part):
    """A version that went live in the App Store. A webhook names its instance, the public lookup its version."""

    activity: Attr[str]
    at: Attr[datetime]
    instance: Attr[str] = attr(default="")
    version: Attr[str] = attr(default="")


class Connection(Entity, table=slothpost):
    """Connects a product to one thing at a source. Secrets and tokens are encrypted.

    `broken` says why it must be connected again; while it is there, nothing is polled, and the integration of Vercel routes
    nothing here. Webhooks that are signed for this product alone may still come.
    """

    product: Attr[str] = attr()
    source: Attr[Source] = attr()
    user: Attr[str]
    external_id: Attr[str | Missing] = attr(default=MISSING)  # repository id, Vercel project id, app id
    name: Attr[str | Missing] = attr(default=MISSING)  # owner/repository, project or app name, for people
    is_private: Attr[bool] = attr(default=False)
    secret: Attr[str | Missing] = attr(default=MISSING)  # what deliveries are signed with
    token: Attr[str | Missing] = attr(default=MISSING)  # to read lists and to poll
    hook: Attr[str | Missing] = attr(default=MISSING)  # the id of the webhook at GitHub, if slothpost created it
    installation: Attr[str | Missing] = attr(default=MISSING)  # the `VercelInstallation` that proves whose project it is
    owners: Attr[list[str]] = attr(default=[])  # Vercel's ids of the team or user that has the project
    country: Attr[str] = attr(default="us")  # of the App Store in which an app is looked up
    live_at: Attr[datetime | Missing] = attr(default=MISSING)  # when the first verified delivery came
    seen_at: Attr[datetime | Missing] = attr(default=MISSING)  # when the last one came, to the minute
    ignored: Attr[int] = attr(default=0)  # deliveries of which nothing was made
    last_ignored: Attr[str | Missing] = attr(default=MISSING)  # why nothing was made of the last one
    etags: Attr[dict[str, str]] = attr(default={})  # of polled addresses
    stars: Attr[int | Missing] = attr(default=MISSING)  # how many were counted last
    releases: Attr[list[AppRelease]] = attr(default=[])  # the latest ones, the newest last
    polled_at: Attr[datetime | Missing] = attr(default=MISSING)
    poll_after: Attr[datetime | Missing] = attr(default=MISSING)  # the source asks not to be polled before
    poll_error: Attr[str | Missing] = attr(default=MISSING)
    broken: Attr[str | Missing] = attr(default=MISSING)

    key = Key("PRODUCT" / product, "CONNECTION" / source)


class VercelInstallation(Entity, table=slothpost):
    """The Vercel integration as one user installed it: proves which projects are theirs."""

    user: Attr[str] = attr()
    id: Attr[str] = attr()  # Vercel's configuration id
    token: Attr[str]  # encrypted
    team_id: Attr[str | Missing] = attr(default=MISSING)
    vercel_user_id: Attr[str | Missing] = attr(default=MISSING)
    installed_at: Attr[datetime]

    key = Key("USER" / user, "VERCEL" / id)


class VercelClaim(Entity, table=slothpost):
    """A Vercel project belongs to one product: whoever creates this item has it."""

    project: Attr[str] = attr()
    product: Attr[str]
    user: Attr[str]

    key = Key("VERCEL_PROJECT" / project, "CLAIM")
