"""Rendering, redirects and error pages, for all pages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlencode

from litestar import Response
from litestar.enums import MediaType

from pricebook.model import ChangeSet
from pricebook.pages.clock import PageClock
from pricebook.pages.environment import make_environment
from pricebook.people import Person
from pricebook.web.context import CONTEXT, Context, HttpRequest, book_of, web_of
from tickler.table import MISSING
from tickler.web import FormFields, Refused

NAV = (("home", "/", "Overview"), ("stores", "/stores", "Stores"), ("products", "/products", "Products"),
       ("changes", "/change-sets", "Changes"), ("uploads", "/uploads", "Uploads"), ("audit", "/audit", "Audit"))  # fmt: skip

# What a page says after a change. The address holds only the name, so that a link cannot put words on the page.
NOTICES = {
    "created": "The draft is created. Add prices, and submit it when it is complete.",
    "saved": "Saved.",
    "added": "Added to the draft.",
    "removed": "Removed from the draft.",
    "submitted": "Submitted. Somebody who may approve it decides now.",
    "approving": "Approved. It is carried out store by store; in each store, all of its prices change together.",
    "unapproving": "The approval is being taken back, store by store.",
    "cancelled": "Cancelled.",
    "sent-back": "Sent back. It can be edited again.",
    "rolled-back": "This change set takes the other one back. It waits for approval.",
    "uploaded": "The file is here. It is checked line by line.",
    "upload-cancelled": "Cancelled. Lines that were added already stay in the draft.",
    "in": "You are signed in.",
    "out": "You are signed out.",
}

EVERYBODY = {"open": True}  # the options of a handler that needs no session


async def page(
    request: HttpRequest, name: str, section: str, status: int = 200, *, clock: PageClock | None = None, **values: Any
) -> Response[str]:
    """Render the template `name`; `section` is the entry of the navigation that it belongs to."""
    person = web_of(request).visitor(request.scope).user
    form_token = await web_of(request).form_token(request.scope)
    notice = NOTICES.get(request.query_params.get("notice", ""), "")
    shared = _shared(clock or clock_of(request), person)
    text = render(name, {**shared, "section": section, "form_token": form_token, "notice": notice, **values})
    return Response(text, status_code=status, media_type=MediaType.HTML, headers={"cache-control": "no-store"})


def render(name: str, values: Mapping[str, Any]) -> str:
    return _templates.get_template(f"{name}.html").render(values)


def error_page(scope: Mapping[str, Any], refused: Refused) -> str:
    """Render a refusal without reading the store, hence without forms."""
    context: Context | None = scope.get(CONTEXT)
    person = None if context is None else context.web.visitor(scope).user
    values = {"section": "", "form_token": "", "notice": "", "refused": refused}
    return render("error", {"person": person, "nav": [] if person is None else NAV, **values})


def clock_of(request: HttpRequest) -> PageClock:
    """Return the clock of the page: now, in the zone of the reader."""
    person = web_of(request).visitor(request.scope).user
    return PageClock(book_of(request).now(), "UTC" if person is None else person.zone)


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
    """Let people pass who are signed in, or everybody where a handler says so; and no tokens, which are for the API."""
    visitor = web_of(request).visitor(request.scope)
    if visitor.token is not None:
        raise Refused(403, "tokens are for /graphql, /bulk and /export: sign in to use the pages")
    if not request.route_handler.opt.get("open"):
        visitor.require()


def state_of(clock: PageClock, found: ChangeSet) -> str:
    """Return the state of a change set as people see it: one that is approved is effective from its first instant on."""
    is_effective = found.state == "approved" and found.first_at is not MISSING and found.first_at <= clock.now
    return "effective" if is_effective else found.state


def _shared(clock: PageClock, person: Person | None) -> dict[str, Any]:
    return {
        "person": person,
        "nav": [] if person is None else NAV,
        "clock": clock,
        "time": clock.element,
        "soon": clock.soon,
        "state_of": partial(state_of, clock),
        "may": (lambda role: False) if person is None else person.may,
    }


_templates = make_environment()
