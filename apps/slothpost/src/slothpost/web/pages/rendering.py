"""Rendering, redirects and error pages, for all pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from litestar import Response
from litestar.enums import MediaType

from slothpost.model import User
from slothpost.web.context import CONTEXT, HttpRequest, now_of, slothpost_of, web_of
from slothpost.web.pages.environment import make_environment
from slothpost.web.pages.time_format import Clock
from tickler.web import FormFields, Refused

NAV = (("review", "/", "Review"), ("week", "/week", "Week"), ("activity", "/activity", "Activity"),
       ("products", "/products", "Products"), ("settings", "/settings", "Settings"))  # fmt: skip

# What a page says after a change. The address holds only the name, so that a link cannot put words on the page.
NOTICES = {
    "saved": "Saved.",
    "deleted": "The product is deleted.",
    "approved": "Approved. It goes out at its slot.",
    "unapproved": "Approval taken back. The draft waits for you again.",
    "edited": "Saved the text.",
    "regenerated": "Drafted anew.",
    "snoozed": "Snoozed.",
    "rejected": "Rejected. It will not be posted.",
    "restored": "Restored as a draft.",
    "posting": "Approved for now. It goes out in a moment.",
    "moved": "Moved.",
    "resolved": "Noted that it went out.",
    "written": "Your post waits for you in Review.",
    "created": "The product is created. Now give its channels times, and connect what you ship with.",
    "plan": "The plan is saved.",
    "paused": "Paused. Nothing is drafted or posted until you resume it.",
    "resumed": "Resumed. What passed meanwhile was not missed.",
    "connected": "Connected.",
    "disconnected": "Disconnected.",
    "account": "The channel posts with this account now.",
    "revoked": "The token is revoked. It stops working within five seconds.",
    "in": "You are signed in.",
    "out": "You are signed out.",
    "out-everywhere": "You are signed out on every device.",
}

EVERYBODY = {"open": True}  # the options of a handler that needs no session
FRAGMENT = "x-fragment"  # header of a script that wants a part of the page, with the page that it is for
QUEUE = "queue"


async def page(request: HttpRequest, name: str, section: str, status: int = 200, **values: Any) -> Response[str]:
    """Render the template `name`; `section` is the entry of the navigation that it belongs to."""
    user = web_of(request).visitor(request.scope).user
    form_token = await web_of(request).form_token(request.scope)
    counts = {} if user is None else {"review": await slothpost_of(request).review.count(user.id)}
    notice = NOTICES.get(request.query_params.get("notice", ""), "")
    shared = {**_shared(clock_of(request), user), "demo": slothpost_of(request).settings.demo}
    text = render(name, {**shared, "section": section, "form_token": form_token, "counts": counts, "notice": notice, **values})
    return Response(text, status_code=status, media_type=MediaType.HTML, headers={"cache-control": "no-store"})


async def fragment(request: HttpRequest, name: str, status: int = 200, **values: Any) -> Response[str]:
    """Render a part of a page for a script."""
    user = web_of(request).visitor(request.scope).require()
    form_token = await web_of(request).form_token(request.scope)
    text = render(name, {**_shared(clock_of(request), user), "form_token": form_token, **values})
    return Response(text, status_code=status, media_type=MediaType.HTML, headers={"cache-control": "no-store"})


def render(name: str, values: Mapping[str, Any]) -> str:
    return _templates.get_template(f"{name}.html").render(values)


def error_page(scope: Mapping[str, Any], refused: Refused) -> str:
    """Render a refusal without reading the store, hence without forms."""
    context = scope.get(CONTEXT)
    user = None if context is None else context.web.visitor(scope).user
    values = {"section": "", "form_token": "", "counts": {}, "notice": "", "refused": refused}
    return render("error", {"user": user, "nav": [] if user is None else NAV, **values})


def clock_of(request: HttpRequest) -> Clock:
    """Return the clock of the page: now, in the zone of the reader."""
    user = web_of(request).visitor(request.scope).user
    return Clock(now_of(request), "UTC" if user is None else user.zone)


def is_fragment(request: HttpRequest) -> bool:
    return FRAGMENT in request.headers


def is_for_queue(request: HttpRequest) -> bool:
    return request.headers.get(FRAGMENT) == QUEUE


async def read_form(request: HttpRequest) -> FormFields:
    """Return the fields of a form that one of our pages sent."""
    return await web_of(request).form(request.scope, await request.body())


def redirect(path: str, notice: str | None = None) -> Response[bytes]:
    """Let the browser GET this path, and show a notice there."""
    place, mark, anchor = path.partition("#")
    if notice is not None:
        place += f"{'&' if '?' in place else '?'}{urlencode({'notice': notice})}"
    return Response(b"", status_code=303, headers={"location": f"{place}{mark}{anchor}"})


async def only_sessions(request: HttpRequest) -> None:
    """Let people pass who are signed in, or everybody where a handler says so; and no tokens, whose scopes are the API's."""
    visitor = web_of(request).visitor(request.scope)
    if visitor.token is not None:
        raise Refused(403, "tokens are for the API under /api: sign in to use the pages")
    if not request.route_handler.opt.get("open"):
        visitor.require()


def _shared(clock: Clock, user: User | None) -> dict[str, Any]:
    return {
        "user": user,
        "nav": [] if user is None else NAV,
        "clock": clock,
        "time": clock.element,
        "time_of_day": clock.minute_element,
        "sentence": clock.sentence,
    }


_templates = make_environment()
