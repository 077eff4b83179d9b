"""How long a receiver asks to be left alone, in its header Retry-After."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime

MAX_RETRY_AFTER_MS = 24 * 60 * 60 * 1000


def read_retry_after(text: str | None, now_ms: int) -> int | None:
    """Milliseconds from now, at most a day: seconds or a date are understood, anything else is as if it were not there."""
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        return min(int(text[:12]) * 1000, MAX_RETRY_AFTER_MS)  # the first twelve digits are long enough, and quick to read
    try:
        date = parsedate_to_datetime(text)
        at_ms = int((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
    return min(max(at_ms - now_ms, 0), MAX_RETRY_AFTER_MS)
