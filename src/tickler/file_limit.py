"""How many file descriptors this process may have: every connection takes one, and shells allow 1,024."""

from __future__ import annotations

import logging

try:
    import resource
except ImportError:
    resource = None  # type: ignore[assignment]  # on Windows, which has no such limit

log = logging.getLogger("tickler")


def file_limit() -> int | None:
    """How many files this process may have open; None without a limit."""
    if resource is None:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def raise_file_limit() -> None:
    """The soft limit becomes the hard one. Where that is forbidden, as by a filter of system calls, it stays as it is."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError) as error:
        log.info("the limit of file descriptors stays at %d: %s", soft, error)
