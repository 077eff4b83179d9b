"""A pricebook with people who look at its pages: what happens there, in few words. Prices are whole minor units of EUR."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import date, datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode

from web.asking import ask

from book import Book
from pricebook.access.caller import ROLES, Caller, Role
from pricebook.app import Pricebook, Settings, open_pricebook
from pricebook.change_sets import Line, NewChangeSet
from pricebook.demo.time_lapse import TimeLapse, work
from pricebook.model import ALL, ChangeSet, PriceKey
from pricebook.money import Money
from pricebook.people import Person
from pricebook.web.app import WebApp, create_app
from tickler import ManualClock

ORIGIN = "http://localhost"
ZONE = "Europe/Berlin"

_TOKEN = re.compile(r'name="form_token" value="([^"]+)"')
_TAGS = re.compile(r"<[^>]+>")
_ERROR = re.compile(r'<p class="error"[^>]*>(.*?)</p>', re.DOTALL)


class PageAnswer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    source: str

    @property
    def text(self) -> str:
        """What people read."""
        return " ".join(html.unescape(_TAGS.sub(" ", self.source)).split())

    @property
    def errors(self) -> list[str]:
        """What the page says is wrong with a form."""
        found = [" ".join(html.unescape(_TAGS.sub("", each)).split()) for each in _ERROR.findall(self.source)]
        return [words for words in found if words]

    @property
    def location(self) -> str:
        assert self.status == 303, (self.status, self.text)
        return self.headers["location"]

    @property
    def buttons(self) -> set[str]:
        """The labels of what changes something, without what every page has."""
        found = re.findall(r"<(?:button|summary)[^>]*>(.*?)</(?:button|summary)>", self.source, re.DOTALL)
        return {" ".join(html.unescape(_TAGS.sub("", each)).split()) for each in found} - {"Sign out", "Search", "Filter", "Show"}

    def row(self, *texts: str) -> str:
        """Return the text of the only row of a table that has these texts."""
        rows = re.findall(r"<tr.*?</tr>", self.source, re.DOTALL)
        words = [" ".join(html.unescape(_TAGS.sub(" ", row)).split()) for row in rows]
        (found,) = [row for row in words if all(text in row for text in texts)]
        return found


class PageReader:
    """A browser without JavaScript, in which somebody is signed in, or nobody."""

    def __init__(self, app: Any, cookie: str = "") -> None:
        self.app = app
        self.cookie = cookie

    async def get(self, path: str, **headers: str) -> PageAnswer:
        return await self.ask("GET", path, headers)

    async def post(
        self, path: str, fields: Mapping[str, str] | Sequence[tuple[str, str]] = (), *, token: str | None = None
    ) -> PageAnswer:
        """Send a form, by default with the token of the pages of this browser."""
        form_token = await self.form_token() if token is None else token
        pairs = list(fields.items() if isinstance(fields, Mapping) else fields)
        body = urlencode([("form_token", form_token), *pairs]).encode()
        return await self.ask("POST", path, {"content-type": "application/x-www-form-urlencoded"}, body)

    async def form_token(self, path: str = "/stores") -> str:
        """Return the token of the forms of a page."""
        found = _TOKEN.search((await self.get(path)).source)
        return "" if found is None else found[1]

    async def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> PageAnswer:
        sent = {"accept": "text/html", "origin": ORIGIN, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if self.cookie:
            sent["cookie"] = self.cookie
        got = await ask(self.app, method, path, sent, [body])
        return PageAnswer(got.status, got.headers, got.body.decode())


class PriceSite:
    def __init__(self, opened: Pricebook, app: WebApp, clock: ManualClock) -> None:
        self.opened = opened
        self.app = app
        self.clock = clock
        self.book = Book(opened.db, clock)
        self.lapse = TimeLapse(opened, clock)

    async def a_person(self, id: str = "ada", *roles: Role, stores: Sequence[str] = ("",), zone: str = ZONE) -> Person:
        return await self.opened.people.create(id.title(), roles or ROLES, stores=stores, zone=zone, id=id)

    async def a_reader(self, id: str = "ada", *roles: Role, stores: Sequence[str] = ("",), zone: str = ZONE) -> PageReader:
        """Return a browser in which a new person with these roles, or all of them, is signed in."""
        person = await self.a_person(id, *roles, stores=stores, zone=zone)
        cookie = (await self.app.web.sessions.cookie_for(person.id)).partition(";")[0]
        return PageReader(self.app.asgi, cookie)

    async def a_change(
        self,
        prices: Mapping[str, int | None],
        *,
        title: str = "Spring sale",
        stores: Sequence[str] = ("1",),
        at: datetime | None = None,
        day: date | None = None,
        until_at: datetime | None = None,
        channel: str = ALL,
    ) -> ChangeSet:
        """Return a draft of Edi's, with these prices in each of the stores."""
        changes, edi = self.opened.change_sets, EDI
        draft = await changes.create(edi, NewChangeSet(title=title, at=at, day=day, until_at=until_at))
        lines = [
            Line(PriceKey(store, channel, "Base", product), None if minor is None else Money(minor, "EUR"))
            for store in stores
            for product, minor in prices.items()
        ]
        await changes.put_lines(edi, draft.id, lines)
        return await changes.get(edi, draft.id)

    async def a_submitted_change(self, prices: Mapping[str, int | None], **options: Any) -> ChangeSet:
        return await self.opened.change_sets.submit(EDI, (await self.a_change(prices, **options)).id)

    async def an_approved_change(self, prices: Mapping[str, int | None], **options: Any) -> ChangeSet:
        submitted = await self.a_submitted_change(prices, **options)
        await self.opened.change_sets.approve(APRIL, submitted.id, rev=submitted.rev)
        await self.work()
        return await self.opened.change_sets.get(APRIL, submitted.id)

    async def work(self) -> None:
        """Do what is due now."""
        await work(self.opened)

    async def until(self, at: datetime) -> None:
        await self.lapse.until(at)


EDI = Caller("edi", frozenset(ROLES))
APRIL = Caller("april", frozenset(ROLES))


@asynccontextmanager
async def open_site(clock: ManualClock, store: str = "memory://", url: str = ORIGIN) -> AsyncIterator[PriceSite]:
    async with open_pricebook(Settings(store=store, base_url=url), clock=clock) as opened:
        yield PriceSite(opened, create_app(opened), clock)
