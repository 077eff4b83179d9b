"""Recognises errors of an exhausted process or machine, which are not the target's fault."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator

# File descriptors of the process and of the machine, network buffers, memory.
EXHAUSTED_ERRNOS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class NoThread(OSError):
    """The system refused to start a thread."""

    def __init__(self) -> None:
        super().__init__(errno.EAGAIN, "cannot start a thread")


def exhaustion(error: BaseException) -> str | None:
    """Return what is exhausted, in lower case, if that caused the error; None otherwise."""
    for each in _chain(error):
        if isinstance(each, NoThread):
            return "cannot start a thread"
        if isinstance(each, MemoryError):
            return "out of memory"
        if isinstance(each, OSError) and each.errno in EXHAUSTED_ERRNOS:
            return os.strerror(each.errno).lower()
    return None


def raise_if_exhausted() -> None:
    """Raise the true `OSError` if no socket can be made: failed name lookups do not tell."""
    socket.socket().close()


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Iterate over the error and its causes. Bounded, because errors of other libraries may form a cycle."""
    current: BaseException | None = error
    for _ in range(8):
        if current is None:
            return
        yield current
        inner = getattr(current, "os_error", None)
        current = inner if isinstance(inner, BaseException) else current.__cause__ or current.__context__
