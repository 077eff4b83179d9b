"""Reads the header Retry-After of a receiver."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime

MAX_HEADER_MS = 24 * 60 * 60 * 1000  # that a `Retry-After` header can ask for


def read_retry_after(text: str | None, now_ms: int) -> int | None:
    """Return the delay in milliseconds, at most a day. The header has seconds or a date; anything else is ignored."""
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        return min(int(text[:12]) * 1000, MAX_HEADER_MS)  # int() is slow on very long numbers
    try:
        date = parsedate_to_datetime(text)
        at_ms = int((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
    return min(max(at_ms - now_ms, 0), MAX_HEADER_MS)
