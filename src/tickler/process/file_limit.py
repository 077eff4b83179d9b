"""The limit of file descriptors: every connection needs one, and shells allow 1,024 by default."""

from __future__ import annotations

import logging

try:
    import resource
except ImportError:
    resource = None  # type: ignore[assignment]  # Windows has no such limit

log = logging.getLogger("tickler")


def file_limit() -> int | None:
    """Return how many files this process may have open, or None without a limit."""
    if resource is None:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def raise_file_limit() -> None:
    """Raise the soft limit to the hard one. Where that is forbidden, as by a system call filter, the limit stays."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError) as error:
        log.info("cannot raise the limit of file descriptors, which stays at %d: %s", soft, error)
