"""Raises how many file descriptors this process may have: every connection takes one, and shells allow 1,024."""

from __future__ import annotations

import logging
import sys

log = logging.getLogger("tickler")


def raise_file_limit() -> None:
    """The soft limit becomes the hard one. Where that is forbidden, as by a filter of system calls, it stays as it is."""
    if sys.platform == "win32":  # which has no such limit
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError) as error:
        log.info("the limit of file descriptors stays at %d: %s", soft, error)
