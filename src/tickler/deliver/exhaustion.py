"""Recognises that this process or machine has run out of something: no fault of the target that was to be reached."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator

# File descriptors of the process and of the machine, buffers of the network, memory.
EXHAUSTED_ERRNOS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class NoThread(OSError):
    """The system starts no more threads."""

    def __init__(self) -> None:
        super().__init__(errno.EAGAIN, "no thread could be started")


def exhaustion(error: BaseException) -> str | None:
    """What has run out, in lower case, if that is why; None otherwise."""
    for each in _chain(error):
        if isinstance(each, NoThread):
            return "no thread could be started"
        if isinstance(each, MemoryError):
            return "no memory is left"
        if isinstance(each, OSError) and each.errno in EXHAUSTED_ERRNOS:
            return os.strerror(each.errno).lower()
    return None


def raise_if_exhausted() -> None:
    """`OSError` with its true reason, where no socket can be made: lookups of names do not say why they fail."""
    socket.socket().close()


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it was made from. Bounded: somebody else's errors may be in it, and go in circles."""
    current: BaseException | None = error
    for _ in range(8):
        if current is None:
            return
        yield current
        inner = getattr(current, "os_error", None)
        current = inner if isinstance(inner, BaseException) else current.__cause__ or current.__context__
