"""Users: the operator, who is the first, and those who were invited."""

from __future__ import annotations

import re
from zoneinfo import available_timezones

import msgspec

from slothpost.errors import InvalidField, NotAllowed, NotFound
from slothpost.identifiers import new_id
from slothpost.model import User
from slothpost.notices import NOTICE_PURPOSE
from slothpost.text.invisible import visible_line
from slothpost.utc_now import utc_now
from tickler import HttpTarget, Tickler, new_secret
from tickler.errors import ConditionFailed, InvalidInput
from tickler.table import MISSING, OpenTable, Transaction, evolve

MAX_NAME = 80
_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


class UserChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What a user changes about themselves; None leaves it as it is. An empty `notify_url` removes it."""

    name: str | None = None
    zone: str | None = None
    notify_url: str | None = None


class Users:
    def __init__(self, t: Tickler, db: OpenTable) -> None:
        self._t = t
        self._db = db

    async def create(self, name: str, *, zone: str = "UTC", is_operator: bool = False, id: str | None = None) -> User:
        """Create a user. The id is used in links and never changes."""
        chosen = id or new_id()
        if not _ID.fullmatch(chosen):
            raise InvalidField("id", f"{chosen!r} is invalid: use up to 40 lower-case letters, digits and -")
        now = utc_now(self._t)
        user = User(id=chosen, name=checked_name(name), zone=checked_zone(zone), is_operator=is_operator, created_at=now)
        try:
            return await self._db.create(user)
        except ConditionFailed:
            raise NotAllowed(f"there is a user {chosen!r} already: choose another id") from None

    async def get(self, id: str) -> User | None:
        return await self._db.get(User.key.id(id))

    async def everyone(self) -> list[User]:
        return [user async for user in self._db.iterate(User.everyone())]

    async def operator(self) -> User | None:
        """Return the first operator, None before the first run has made one."""
        return next((user for user in await self.everyone() if user.is_operator), None)

    async def update(self, id: str, changes: UserChanges) -> tuple[User, str | None]:
        """Change a user. A new webhook for notices has a new secret, which is returned this once."""

        async def work(tx: Transaction) -> tuple[User, str | None]:
            stored = await tx.get(User.key.id(id))
            if stored is None:
                raise NotFound("user")
            changed, secret = self._changed(stored, changes)
            tx.put(changed)
            return changed, secret

        return await self._db.transact(work)

    def _changed(self, user: User, changes: UserChanges) -> tuple[User, str | None]:
        changed, secret = user, None
        if changes.name is not None:
            changed = evolve(changed, name=checked_name(changes.name))
        if changes.zone is not None:
            changed = evolve(changed, zone=checked_zone(changes.zone))
        if changes.notify_url == "":
            changed = evolve(changed, notify_url=MISSING, notify_secret=MISSING)
        elif changes.notify_url is not None and changes.notify_url != user.notify_url:
            secret = new_secret()
            encrypted = self._t.encryption.encrypt(secret, purpose=NOTICE_PURPOSE.format(user.id))
            changed = evolve(changed, notify_url=self._checked_url(changes.notify_url), notify_secret=encrypted)
        return changed, secret

    def _checked_url(self, url: str) -> str:
        try:
            HttpTarget(url)
        except InvalidInput as error:
            raise InvalidField("notify_url", str(error)) from None
        warnings = self._t.warnings(url)
        if warnings:
            raise InvalidField("notify_url", warnings[0])
        return url


def checked_zone(zone: str) -> str:
    if zone not in available_timezones():
        raise InvalidField("zone", f"{zone!r} is not a time zone: use a name such as Europe/Paris")
    return zone


def checked_name(name: str) -> str:
    stripped = visible_line(name)
    if not 1 <= len(stripped) <= MAX_NAME:
        raise InvalidField("name", f"use 1 to {MAX_NAME} characters")
    return stripped
