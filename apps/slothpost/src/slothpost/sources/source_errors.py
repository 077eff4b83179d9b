"""Why a source did not answer as hoped. `str` of each is a sentence for people."""

from __future__ import annotations

from datetime import datetime


class SourceError(Exception):
    """Base class of all of them; by itself, the source was not reached, or failed. It is asked again at the next poll."""


class TokenRejected(SourceError):
    """The source does not accept the token: it must be connected again."""


class Throttled(SourceError):
    """Too many requests; try again at `until`."""

    def __init__(self, detail: str, until: datetime) -> None:
        super().__init__(detail)
        self.until = until


class Forbidden(SourceError):
    """The token is valid, but may not do this."""


class Missing(SourceError):
    """There is no such thing, or the token may not see it."""
