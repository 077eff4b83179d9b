"""Who asks, and what they may do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tickler.access.tokens import SCOPES, Scope, Token
from tickler.server.middleware.sessions import Session
from tickler.server.problems import Refused

KEY = "tickler.who"  # in an ASGI scope
ADMITTED = "tickler.admitted"  # there too, once the route is found and the caller may use it


class Caller(msgspec.Struct, frozen=True):
    """Somebody who proved who they are, or, where no token exists, anybody on this machine."""

    name: str  # as deeds remember it
    scopes: tuple[Scope, ...]
    owner: str | None = None
    token_id: str | None = None
    session: Session | None = None  # of a browser that sent its cookie by itself

    @property
    def by_cookie(self) -> bool:
        return self.session is not None

    @property
    def asking(self) -> str:
        """Whom a form is for: a session, a token, or whoever needs neither."""
        return self.session.id if self.session is not None else self.token_id or "local"

    def may_see(self, owner: str | None) -> bool:
        return self.owner is None or self.owner == owner


LOCAL = Caller("local", SCOPES)
NOBODY = Caller("nobody", ())


def of_token(token: Token, session: Session | None = None) -> Caller:
    return Caller(token.name or f"token {token.id}", token.scopes, token.owner, token.id, session)


def caller_of(scope: Mapping[str, Any]) -> Caller:
    who: Caller = scope[KEY]
    return who


def check_allowed(who: Caller, opt: Mapping[str, Any]) -> None:
    """`opt` is a handler's: `scope` says what it takes, "nothing" where everybody may; `all_owners`, that it is about all."""
    needed = opt.get("scope", "operate")
    if needed == "nothing":
        return
    if who is NOBODY:
        raise Refused(
            401,
            "a token is needed: send `Authorization: Bearer tk_…`, made with `tickler token create`",
            headers={"www-authenticate": "Bearer"},
        )
    if who.owner is not None and opt.get("all_owners"):
        raise Refused(
            403,
            "this token is bound to one owner, and this path serves all owners: "
            f"create one without `--owner`, with the scope {needed!r}",
        )
    if needed not in who.scopes:
        raise Refused(403, f"this token lacks the scope {needed!r}: create one with `tickler token create --scope {needed}`")
