"""Sessions and links of people, and tokens of programs, as every process of an installation has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from pricebook.app.pricebook import Pricebook
from pricebook.app.settings import Settings
from pricebook.people import Person
from pricebook.web.tokens import PROGRAMS, TOKEN_PREFIX, PriceToken, PriceTokens, programs
from tickler.web import Refused, Web, WebSettings

APPLICATION = "pricebook"  # its name in records and cookies
SESSION_S = 90 * 86_400  # people come by a link that somebody makes for them, and cannot ask for one each morning
SIGN_IN = "/sign-in"

ErrorPage = Callable[[Mapping[str, Any], Refused], str | None]


def make_web(book: Pricebook, settings: WebSettings | None = None, error_page: ErrorPage | None = None) -> Web[Person]:
    """Return the sessions and links of an open pricebook. Without `settings`, its own say how it may be reached."""

    async def find(subject: str) -> Person | None:
        return programs() if subject == PROGRAMS else await book.people.get(subject)

    return Web(book.t, APPLICATION, user=find, settings=settings or web_settings(book.settings), error_page=error_page)


def price_tokens(web: Web[Person]) -> PriceTokens:
    return PriceTokens(web.tokens(PriceToken, prefix=TOKEN_PREFIX, subject=lambda _: PROGRAMS))


async def sign_in_link(book: Pricebook, web: Web[Person], person: Person, lifetime: timedelta | None = None) -> str:
    """Return an address at which a person signs in once, by default within 30 minutes."""
    code = await (web.links.create(person.id) if lifetime is None else web.links.create(person.id, lifetime=lifetime))
    return book.settings.url(f"{SIGN_IN}/{code}")


def web_settings(settings: Settings, bodies: Mapping[str, int | None] | None = None) -> WebSettings:
    """Return how the application may be reached: under its own address, and under the names of this machine."""
    return WebSettings(
        hosts=(*WebSettings().hosts, settings.host),
        hosts_remedy="set PRICEBOOK_URL to the address that browsers use",
        https=settings.is_https,
        proxies=settings.proxies,
        session_s=SESSION_S,
        foreign=("/tick", "/settle"),
        probes=("/health",),
        bodies=bodies or {},
    )
