"""The templates, and the functions that they call."""

from __future__ import annotations

import re

from jinja2 import Environment, PackageLoader, StrictUndefined

from slothpost.model import NETWORK_NAMES, Channel
from slothpost.web.pages.assets import ASSETS
from slothpost.web.pages.preview import card_domain, pieces_of
from slothpost.web.pages.time_format import span

SOURCES = {"github": "GitHub", "vercel": "Vercel", "appstore": "App Store"}
DRAFTERS = {"template": "Templates", "anthropic": "Anthropic", "openai": "OpenAI-compatible", "you": "written by you"}
DAYS = {
    "mon": "Monday",
    "tue": "Tuesday",
    "wed": "Wednesday",
    "thu": "Thursday",
    "fri": "Friday",
    "sat": "Saturday",
    "sun": "Sunday",
}
KINDS = {
    "feature": "feature",
    "fix": "fix",
    "release": "release",
    "app_release": "app release",
    "app_review": "app review",
    "deployment": "deployment",
    "milestone": "milestone",
    "chore": "chore",
}
STATES = {
    "drafted": "draft",
    "approved": "approved",
    "publishing": "publishing",
    "published": "published",
    "unconfirmed": "unconfirmed",
    "missed": "missed",
    "failed": "failed",
    "skipped": "rejected",
}


def dollars(microdollars: int) -> str:
    """Return a price such as $0.015 or $0.20; free where it costs nothing."""
    if not microdollars:
        return "free"
    whole, cents = f"{microdollars / 1_000_000:.6f}".rstrip("0").split(".")
    return f"${whole}.{cents:0<2}"


_WORD = re.compile(r"[a-z]+(?![\w.:/])")


def sentence_case(text: str) -> str:
    """Begin with a capital letter, unless that is of a name such as mon.enabled, and end with a full stop."""
    if not text:
        return ""
    first = text[0].upper() if _WORD.match(text) else text[0]
    return f"{first}{text[1:]}{'' if text.endswith(('.', '!', '?', '…')) else '.'}"


def count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def plan_words(channel: Channel) -> str:
    """Return a plan in a line: Tue 09:00 · Thu 09:00, 17:30."""
    return " · ".join(f"{day.capitalize()} {', '.join(times)}" for day in DAYS if (times := channel.days.get(day)))


def first_words(text: str, length: int = 80) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1].rsplit(' ', 1)[0]}…"


def initial(name: str) -> str:
    return name.strip()[:1].upper() or "?"


def make_environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("slothpost.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update({
        "dollars": dollars, "sentence_case": sentence_case, "count": count, "plan_words": plan_words,
        "first_words": first_words, "initial": initial, "span": span,
    })  # fmt: skip
    environment.globals.update({
        "asset": ASSETS.url, "pieces_of": pieces_of, "card_domain": card_domain, "network_names": NETWORK_NAMES,
        "source_names": SOURCES, "drafter_names": DRAFTERS, "day_names": DAYS, "kind_names": KINDS, "state_names": STATES,
    })  # fmt: skip
    return environment
