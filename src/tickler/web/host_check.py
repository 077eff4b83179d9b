"""Blocks DNS rebinding: refuses host names that are not ours."""

from __future__ import annotations

import re
from collections.abc import Collection

from tickler.errors import InvalidInput
from tickler.web.problems import Refused

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


class HostCheck:
    """Accepts the `names`, at any port; None accepts all. `remedy` tells the operator how to add one."""

    def __init__(self, names: Collection[str] | None, *, remedy: str = "add the name to `hosts`") -> None:
        if names is not None and (isinstance(names, str) or not names):
            raise InvalidInput("hosts: is not a list of host names: pass ('example.org',), or ('*',) for any")
        self._names = None if names is None else frozenset(name.lower() for name in names)
        self._remedy = remedy

    def check(self, host: str) -> None:
        """Refuse with 421 a `host` header with another name."""
        name = host.lower().rpartition(":")[0] if re.search(r":\d+$", host) else host.lower()
        if self._names is not None and name not in self._names:
            raise Refused(421, f"unknown host: use the address that the service listens on, or {self._remedy}")
