"""The pages that people see on a stand-in: consent, a post, and the posts of an account."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files

import msgspec
from aiohttp import web

from slothpost.standins.local_post import LocalPost

_STYLE = files("slothpost.standins").joinpath("pages.css").read_text(encoding="utf-8")


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """How a stand-in looks."""

    name: str
    sign: str  # a character or two
    home: str = "/"
    profile: str  # the path of an account, with {handle}


class Consent(msgspec.Struct, frozen=True, kw_only=True):
    """What an application asks a person for. `fields` come back with the form, which is sent to the page itself."""

    app: str
    scopes: Iterable[str]
    fields: Mapping[str, str]
    handle: str


def consent_page(site: Site, consent: Consent) -> web.Response:
    scopes = "".join(f"<li><code>{escape(scope)}</code></li>" for scope in consent.scopes)
    hidden = "".join(
        f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">' for name, value in consent.fields.items()
    )
    body = f"""<div class="card"><h1>{escape(consent.app)} wants to use your {escape(site.name)} account</h1>
<p class="soft">It asks for</p><ul>{scopes}</ul>
<form method="post">{hidden}
<label>Connect as
<input name="handle" value="{escape(consent.handle)}" pattern="[A-Za-z0-9_]{{1,15}}" autocomplete="off" required></label>
<div class="buttons"><button class="main" name="decision" value="allow">Authorize app</button>
<button name="decision" value="deny" formnovalidate>Cancel</button></div></form></div>
<p class="soft">Any name will do: this {escape(site.name)} runs on your computer, and nothing leaves it.</p>"""
    return _page(site, f"Authorize {consent.app}", body)


def choice_page(site: Site, title: str, choices: Mapping[str, str]) -> web.Response:
    """Show links by what they say."""
    links = "".join(f'<li><a href="{escape(url)}">{escape(label)}</a></li>' for label, url in choices.items())
    body = f"""<div class="card"><h1>{escape(title)}</h1><ul>{links}</ul></div>
<p class="soft">This {escape(site.name)} runs on your computer, and nothing leaves it.</p>"""
    return _page(site, title, body)


def post_page(site: Site, post: LocalPost) -> web.Response:
    return _page(site, f"@{post.handle} on {site.name}", _card(site, post))


def posts_page(site: Site, title: str, posts: Iterable[LocalPost]) -> web.Response:
    cards = "".join(_card(site, post) for post in posts)
    empty = '<p class="soft">Nothing was posted yet.</p>'
    return _page(site, title, f"<h1>{escape(title)}</h1>{cards or empty}")


def error_page(site: Site, status: int, reason: str) -> web.Response:
    return _page(site, reason, f'<div class="card"><h1>{escape(reason)}</h1></div>', status)


def _card(site: Site, post: LocalPost) -> str:
    topic = "" if post.topic_tag is None else f' <span class="topic">› {escape(post.topic_tag)}</span>'
    profile = escape(site.profile.format(handle=post.handle))
    return f"""<article class="card"><div class="who"><span class="face" aria-hidden="true">{escape(post.handle[:1])}</span>
<a href="{profile}">@{escape(post.handle)}</a>{topic}</div>
<p class="text">{escape(post.text)}</p>
<time datetime="{post.at.isoformat()}"><a href="{escape(post.url)}">{post.at:%d %b %Y, %H:%M} UTC</a></time></article>"""


def _page(site: Site, title: str, body: str, status: int = 200) -> web.Response:
    text = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title><link rel="icon" href="data:,"><style>{_STYLE}</style></head>
<body><main><p class="network"><span class="sign" aria-hidden="true">{escape(site.sign)}</span>
<a href="{escape(site.home)}">{escape(site.name)}</a> <span class="local">local stand-in</span></p>
{body}</main></body></html>
"""
    return web.Response(text=text, content_type="text/html", status=status)
