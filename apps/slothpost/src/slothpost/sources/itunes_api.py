"""The public lookup of the App Store, which needs no account."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from slothpost.errors import InvalidField
from slothpost.sources.api import LEAST_PAUSE, Answer, Api, Call, OpenSession
from slothpost.sources.appstore import LookedUp, Lookup
from slothpost.sources.source_errors import Forbidden, Throttled

_APP = re.compile(r"[0-9]{1,20}")
_COUNTRY = re.compile(r"[a-z]{2}")
_PAUSE = 15 * LEAST_PAUSE


class ItunesApi:
    def __init__(self, url: str, open_session: OpenSession, now: Callable[[], datetime]) -> None:
        self._api = Api("The App Store", url, open_session, now)
        self._now = now

    async def look_up(self, app: str, country: str, etag: str | None = None) -> tuple[Answer, LookedUp | None]:
        """Return an app as a country's store has it; None if it does not, or if nothing has changed since the ETag."""
        call = Call(path="/lookup", query={"id": checked_app(app), "country": checked_country(country)}, etag=etag)
        try:
            answer = await self._api.send(call)
        except Forbidden as error:  # its word for too many requests
            raise Throttled(str(error), self._now() + _PAUSE) from None
        if answer.is_unchanged:
            return answer, None
        found = self._api.decode(answer, Lookup).results
        return answer, next((each for each in found if str(each.track_id) == app), None)


def checked_app(app: str) -> str:
    if not _APP.fullmatch(app):
        raise InvalidField("app_id", f"{app[:40]!r} is not the id of an app: use the number after `id` in its App Store address")
    return app


def checked_country(country: str) -> str:
    if not _COUNTRY.fullmatch(country):
        raise InvalidField("country", f"{country[:20]!r} is not a country: use two letters, such as us")
    return country
