"""Who sends a request: a user with a session or a token, or nobody that we know."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from tickler.access.bearer_tokens import BearerToken
from tickler.web.problems import Refused
from tickler.web.sessions import Session

VISITOR = "tickler.visitor"  # key in the ASGI scope

U = TypeVar("U")


class Visitor(msgspec.Struct, Generic[U], frozen=True):
    """The user that the application's callback found, and how the visitor proved to be that user."""

    user: U | None = None
    session: Session | None = None
    token: BearerToken | None = None

    @property
    def client_id(self) -> str:
        """Return what forms are bound to: the session, or else the token. All who have neither share one."""
        if self.session is not None:
            return self.session.id
        return "anonymous" if self.token is None else self.token.id

    @property
    def rate_key(self) -> str | None:
        """Return whose requests are counted together; None for an unknown visitor, who is counted by address."""
        if self.session is not None:
            return f"subject {self.session.subject}"
        return None if self.token is None else f"token {self.token.id}"

    def require(self, scope: str | None = None) -> U:
        """Return the user. Refuse with 401 if there is none, and with 403 a token that lacks the scope; sessions have all."""
        if self.user is None:
            raise Refused(401, "sign in, or send a valid token", headers={"www-authenticate": "Bearer"})
        if scope is not None and self.token is not None and scope not in self.token.scopes:
            raise Refused(403, f"this token lacks the scope {scope!r}: create one that has it")
        return self.user
