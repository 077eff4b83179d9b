"""The errors of slothpost, for pages and the API: each says what to do in a sentence."""

from __future__ import annotations


class SlothpostError(Exception):
    """Base class of all of them."""


class NotFound(SlothpostError):
    """There is no such thing, or it belongs to somebody else: nobody learns which."""

    def __init__(self, what: str) -> None:
        super().__init__(f"there is no such {what}: it may have been deleted")
        self.what = what


class NotAllowed(SlothpostError):
    """What was asked for does not fit the present state."""


class InvalidField(SlothpostError):
    """A field has a value that cannot be used."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason
