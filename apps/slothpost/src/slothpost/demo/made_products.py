"""Three products of one made-up developer: what they are, where they are built, and when they post."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Literal

import msgspec

from slothpost.model import ChannelName
from slothpost.people.products import ProductChanges

OWNER = "fernhill"  # at GitHub and Vercel
HANDLE = "fernhill"  # on X and Threads
GITHUB_TOKEN = "github_pat_demo"  # noqa: S105  # it opens nothing but the local GitHub

ProductKey = Literal["steepwell", "plainbill", "portpeek"]

_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_HOUR = 60


class MadeProject(msgspec.Struct, frozen=True):
    """A project at Vercel."""

    id: str
    name: str


class MadeProduct(msgspec.Struct, frozen=True, kw_only=True):
    """`plans` have a time for so many days after the day on which the demo starts; those days recur each week.

    SOON stands for the next sensible time of day.
    """

    changes: ProductChanges
    plans: Mapping[ChannelName, Mapping[int, str]]
    topic: str
    repository: str
    repository_id: int
    is_private: bool = False
    stars: int = 0
    project: MadeProject | None = None
    app: int | None = None
    app_name: str = ""
    app_version: str = ""  # in the store at the beginning
    next_version: str  # what a visitor may publish
    idea: str  # what a visitor may merge


SOON = "soon"

PRODUCTS: Mapping[ProductKey, MadeProduct] = {
    "steepwell": MadeProduct(
        changes=ProductChanges(
            name="Steepwell",
            description="A tea timer that knows how long each tea takes.",
            url="https://steepwell.example.com",
            samples=[
                "Steepwell now reads the box: point the camera at it, and the timer is set.",
                "Second infusions were always a guess. In Steepwell they are a tap now.",
            ],
            rules=["No exclamation marks."],
            banned=["game-changer"],
        ),
        plans={"x": {0: SOON, 4: "09:00"}, "threads": {1: "18:00", 5: "18:00"}},
        topic="tea",
        repository=f"{OWNER}/steepwell",
        repository_id=702_114_385,
        stars=212,
        app=6_450_117_203,
        app_name="Steepwell: Tea Timer",
        app_version="2.3",
        next_version="2.5",
        idea="Add a timer for iced tea",
    ),
    "plainbill": MadeProduct(
        changes=ProductChanges(
            name="Plainbill",
            description="Invoices for people who work alone.",
            url="https://plainbill.example.com",
            lead_minutes=72 * _HOUR,
        ),
        plans={"x": {1: "09:30", 3: "17:00"}, "threads": {2: "10:00"}},
        topic="freelance",
        repository=f"{OWNER}/plainbill",
        repository_id=688_420_917,
        is_private=True,
        project=MadeProject("prj_plainbill0000000000000001", "plainbill"),
        next_version="3.2",
        idea="Add a dark mode",
    ),
    "portpeek": MadeProduct(
        changes=ProductChanges(
            name="Portpeek",
            description="A command that shows which program holds a port.",
            url="https://portpeek.example.com",
            lead_minutes=48 * _HOUR,
        ),
        plans={"x": {1: "12:00", 4: "12:00", 6: "17:30"}, "threads": {5: "08:30"}},
        topic="command line",
        repository=f"{OWNER}/portpeek",
        repository_id=735_902_648,
        stars=487,
        next_version="1.10",
        idea="Add colours that tell programs apart",
    ),
}

# For the wizards: what belongs to no product.
SPARE_REPOSITORY, SPARE_REPOSITORY_ID = f"{OWNER}/pocketlamp", 741_336_020
WEBSITE = MadeProject("prj_steepwellsite000000000001", "steepwell-website")


def week_plan(plan: Mapping[int, str], first: date, soon: str) -> dict[str, list[str]]:
    """Return a plan by days of the week. `first` is the day that 0 stands for."""
    days: dict[str, list[str]] = {}
    for offset, time in plan.items():
        weekday = _WEEKDAYS[(first + timedelta(days=offset)).weekday()]
        days.setdefault(weekday, []).append(soon if time == SOON else time)
    return days
