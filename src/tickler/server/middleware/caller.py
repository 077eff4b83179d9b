"""The caller of a request, and which handlers it may use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tickler.access.tokens import SCOPES, Scope, Token
from tickler.web.problems import Refused
from tickler.web.sessions import Session

CALLER = "tickler.caller"  # key in the ASGI scope
WRONG_TOKENS = "too many wrong tokens from this address: check the token, and wait"
ADMITTED = "tickler.admitted"  # key in the ASGI scope, set once the caller may use the route


class Caller(msgspec.Struct, frozen=True):
    """An authenticated caller; or, while no token exists, anybody on this machine."""

    name: str  # in the audit log
    scopes: tuple[Scope, ...]
    owner: str | None = None
    token_id: str | None = None
    session: Session | None = None  # of a browser, authenticated by cookie

    @property
    def by_cookie(self) -> bool:
        return self.session is not None

    @property
    def client_id(self) -> str:
        """Return the id of the session, else of the token, else "local"."""
        return self.session.id if self.session is not None else self.token_id or "local"

    def can_see(self, owner: str | None) -> bool:
        return self.owner is None or self.owner == owner


LOCAL = Caller("local", SCOPES)
ANONYMOUS = Caller("anonymous", ())


def of_token(token: Token, session: Session | None = None) -> Caller:
    return Caller(token.name or f"token {token.id}", token.scopes, token.owner, token.id, session)


def caller_in(scope: Mapping[str, Any]) -> Caller:
    caller: Caller = scope[CALLER]
    return caller


def check_allowed(caller: Caller, opt: Mapping[str, Any]) -> None:
    """Check the `opt` of a handler: its token `scope`, or "nothing" if public; `all_owners` excludes bound tokens."""
    needed = opt.get("scope", "operate")
    if needed == "nothing":
        return
    if caller is ANONYMOUS:
        needs = "a token is needed: send `Authorization: Bearer tk_…`, made with `tickler token create`"
        raise Refused(401, needs, headers={"www-authenticate": "Bearer"})
    if caller.owner is not None and opt.get("all_owners"):
        bound = "this token is bound to one owner, and this path serves all owners"
        raise Refused(403, f"{bound}: create one without `--owner`, with the scope {needed!r}")
    if needed not in caller.scopes:
        raise Refused(403, f"this token lacks the scope {needed!r}: create one with `tickler token create --scope {needed}`")
