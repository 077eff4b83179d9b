"""How the page looks on which the visitor ships something."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from itertools import groupby

import msgspec

from slothpost.demo.local_services import ASKS_TO_WAIT, GOES_OUT_AND_HANGS
from slothpost.model import NETWORK_NAMES, ChannelName, Source
from slothpost.sources.setup import SOURCE_NAMES
from slothpost.sources.webhooks import Received

_STYLE = "".join(
    files(package).joinpath(name).read_text(encoding="utf-8")
    for package, name in (("slothpost.standins", "pages.css"), ("slothpost.demo", "sources.css"))
)
_ORDER: Sequence[Source] = ("github", "vercel", "appstore")


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Something at a source, the product that it is connected to, and what the forms propose."""

    id: str
    source: Source
    name: str
    product: str | None = None
    title: str = ""
    version: str = ""
    is_chosen: bool = True  # False: the connection is a webhook alone


class Said(msgspec.Struct, frozen=True):
    """What was done, and what slothpost answered."""

    what: str
    answers: tuple[Received, ...] = ()


def render(places: Sequence[Place], said: Said | None, activity_url: str) -> str:
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Local GitHub, Vercel and App Store</title><link rel="icon" href="data:,"><style>{_STYLE}</style></head>
<body><main><p class="network"><span class="sign" aria-hidden="true">↑</span>
<a href="/">Ship something</a> <span class="local">local stand-in</span></p>
{_said(said, activity_url)}
<h1>The local GitHub, Vercel and App Store</h1>
<p class="soft lead">What you do here is delivered to slothpost at once, signed as GitHub, Vercel and Apple sign it. It shows up
on the page <a href="{escape(activity_url)}">Activity</a>, and the next draft of the product tells of it.</p>
{"".join(_group(product, list(group)) for product, group in groupby(places, key=lambda place: place.product))}
<h2>When something goes wrong</h2>
<div class="places">{"".join(_network(name) for name in NETWORK_NAMES)}</div>
</main></body></html>
"""


def _group(product: str | None, places: Sequence[Place]) -> str:
    ordered = sorted(places, key=lambda place: _ORDER.index(place.source))
    cards = "".join(_card(place) for place in ordered)
    if product is not None:
        return f'<h2>{escape(product)}</h2><div class="places">{cards}</div>'
    return f"""<h2>Not connected to a product</h2>
<p class="soft lead">Connect it in slothpost: open a product, then one of its sources. Deployments that come before are kept,
and the product gets them when it is connected.</p>
<div class="places">{cards}</div>"""


def _said(said: Said | None, activity_url: str) -> str:
    if said is None:
        return ""
    is_bad = any(answer.status >= 400 for answer in said.answers)
    answers = "; ".join(f"{answer.status} {answer.reason}".strip() for answer in said.answers)
    told = f" Slothpost answered: {escape(answers)}." if answers else ""
    link = "" if is_bad or not said.answers else f' <a href="{escape(activity_url)}">See it in slothpost</a>'
    return f'<div class="card said{" bad" if is_bad else ""}" role="status"><p>{escape(said.what)}{told}{link}</p></div>'


def _card(place: Place) -> str:
    forms = {"github": _github, "vercel": _vercel, "appstore": _appstore}[place.source](place)
    return f"""<section class="card" id="{escape(place.id)}"><p class="source">{escape(SOURCE_NAMES[place.source])}</p>
<h3>{escape(place.name)}</h3>{forms}</section>"""


def _github(place: Place) -> str:
    if place.product is None:
        return '<p class="soft">It is in the list of repositories of the wizard.</p>'
    if not place.is_chosen:
        return _test(place)
    merge = _form(place, "merge", "Merge it", _input("Pull request", "title", place.title), is_main=True)
    notes = _notes(f"- {place.title}")
    release = _form(place, "release", "Publish it", _input("Version", "version", place.version) + notes)
    return f"{merge}<details><summary>Publish a release</summary>{release}</details>{_test(place)}"


def _vercel(place: Place) -> str:
    return _form(place, "deploy", "Deploy it", _input("Commit for production", "title", place.title), is_main=True)


def _appstore(place: Place) -> str:
    if not place.is_chosen:
        return _test(place)
    fields = _input("Version", "version", place.version) + _notes("- Links that share a tea with friends")
    return _form(place, "put-in-store", "Let it go live", fields, is_main=True) + _test(place)


def _test(place: Place) -> str:
    return f"<details><summary>Test the webhook</summary>{_form(place, 'test', 'Send the test')}</details>"


def _network(name: ChannelName) -> str:
    label = NETWORK_NAMES[name]
    hung = "stays unconfirmed" if name == "x" else "is found a minute later"
    return f"""<section class="card"><p class="source">{label}</p><h3>The local {label}</h3>
<p>With <code>{GOES_OUT_AND_HANGS}</code> in its text, a post goes out, and {label} does not answer: it {hung}. With
<code>{ASKS_TO_WAIT}</code>, {label} asks to wait. The same text twice in a day is refused.</p>
<form method="post" action="/revoke"><input type="hidden" name="place" value="{name}">
<button>End slothpost's access</button></form></section>"""


def _form(place: Place, action: str, label: str, fields: str = "", *, is_main: bool = False) -> str:
    return f"""<form method="post" action="/{action}"><input type="hidden" name="place" value="{escape(place.id)}">{fields}
<button{' class="main"' if is_main else ""}>{escape(label)}</button></form>"""


def _input(label: str, name: str, value: str) -> str:
    return (
        f'<label>{escape(label)}<input name="{name}" value="{escape(value)}" required maxlength="200" autocomplete="off"></label>'
    )


def _notes(text: str) -> str:
    return f'<label>What is new<textarea name="notes" rows="3">{escape(text)}</textarea></label>'
