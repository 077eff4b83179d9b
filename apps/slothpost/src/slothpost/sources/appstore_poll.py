"""Looks an app up in the App Store: a version that no webhook reported, or the notes of one that did."""

from __future__ import annotations

from datetime import datetime

from slothpost.model import Connection
from slothpost.sources import untrusted
from slothpost.sources.appstore import looked_up
from slothpost.sources.itunes_api import ItunesApi
from slothpost.sources.polls import LOOK_BACK, Found, with_etags
from slothpost.sources.source_errors import Missing
from tickler.table import MISSING, evolve


class AppstorePoll:
    def __init__(self, api: ItunesApi) -> None:
        self._api = api

    async def look(self, connection: Connection, now: datetime) -> Found:
        """Look the app up, whose new version the store may show days after its date. One without a date may be years old."""
        if connection.external_id is MISSING:
            raise Missing("no app was named for this product: name one, or leave it to the webhook")
        etag = connection.etags.get("lookup")
        answer, app = await self._api.look_up(connection.external_id, connection.country, etag)
        if app is None and not answer.is_unchanged:
            raise Missing(f"the App Store of {connection.country.upper()} does not have this app")
        happening = None if app is None else looked_up(app)
        is_news = happening is not None and happening.at is not None and happening.at >= now - LOOK_BACK
        changed = connection if app is None else evolve(connection, name=untrusted.line(app.track_name, 100))
        return Found(
            connection=evolve(changed, etags=with_etags(connection.etags, lookup=answer)),
            happenings=(happening,) if happening is not None and is_news else (),
        )
