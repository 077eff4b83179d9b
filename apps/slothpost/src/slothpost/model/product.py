"""What a user builds, and how posts about it sound."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from slothpost.model.table import slothpost
from tickler.table import MISSING, Attr, Entity, Index, Key, Missing, Part, attr

Undecided = Literal["hold", "next_slot"]
DrafterName = Literal["template", "anthropic", "openai"]


class Voice(Part):
    """How the user writes: a few posts of theirs, rules in their words, and words that must not occur."""

    samples: Attr[list[str]] = attr(default=[])
    rules: Attr[list[str]] = attr(default=[])
    banned: Attr[list[str]] = attr(default=[])


class Product(Entity, table=slothpost):
    """Has channels, connections and activity, which are in its partition.

    It is in `by_vercel_project` only while a Vercel project is connected: deployments are routed by that index.
    """

    id: Attr[str] = attr()
    user: Attr[str] = attr()
    name: Attr[str]
    description: Attr[str] = attr(default="")  # one sentence, for drafts
    url: Attr[str | Missing] = attr(default=MISSING)
    domains: Attr[list[str]] = attr(default=[])  # the only ones that drafts may link to
    voice: Attr[Voice]
    drafter: Attr[DrafterName] = attr(default="template")
    drafter_url: Attr[str | Missing] = attr(default=MISSING)  # of a model that the user has, for this drafter
    drafter_model: Attr[str | Missing] = attr(default=MISSING)
    drafter_key: Attr[str | Missing] = attr(default=MISSING)  # encrypted
    lead_minutes: Attr[int] = attr(default=12 * 60)
    grace_minutes: Attr[int] = attr(default=60)
    undecided: Attr[Undecided] = attr(default="hold")
    tells_private: Attr[bool] = attr(default=False)  # whether drafts may name what is in private repositories
    paused: Attr[bool] = attr(default=False)
    vercel_project: Attr[str | Missing] = attr(default=MISSING)
    created_at: Attr[datetime]

    key = Key("PRODUCT" / id, "PRODUCT")
    of_user = Index("gsi1", "PRODUCTS" / user, id)
    by_vercel_project = Index("gsi2", "VERCEL" / vercel_project, id)
