"""Subjects: the texts that sessions, links and tokens are about, such as ids of users."""

from __future__ import annotations

from tickler.errors import InvalidInput


def check_subject(subject: object, max_bytes: int) -> None:
    try:
        size = len(subject.encode()) if isinstance(subject, str) else 0
    except UnicodeEncodeError:  # half a character
        size = 0
    if not 1 <= size <= max_bytes:
        raise InvalidInput(f"subject: is not a text of 1 to {max_bytes} bytes: pass the id of a user")
