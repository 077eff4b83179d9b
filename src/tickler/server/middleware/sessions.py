"""The sessions of the page: a cookie names the token that was used to sign in."""

from __future__ import annotations

from tickler.clock import Clock
from tickler.records.contract import RecordStore
from tickler.records.kinds import SERVER
from tickler.server.settings import ServerSettings
from tickler.web.sessions import Sessions, SessionSettings

COOKIE = "tickler_session"
LIFETIME_S = 12 * 3600


def page_sessions(records: RecordStore, clock: Clock, settings: ServerSettings) -> Sessions:
    cookie = SessionSettings(cookie=COOKIE, lifetime_s=LIFETIME_S, secure=settings.secure_cookie, same_site="Strict")
    return Sessions(records, clock, cookie, record_kind=SERVER)
