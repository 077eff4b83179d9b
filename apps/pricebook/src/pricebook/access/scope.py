"""Which stores something concerns, as a few prefixes of store ids, and who may see it therefore. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Set

from pricebook.access.caller import Caller

MAX_PREFIXES = 32


def widened(scope: Set[str], stores: Iterable[str], caller: Caller) -> set[str]:
    """Return a scope that covers these stores, too. It has stores of the caller only."""
    wide = set(scope)
    for store in stores:
        if not store.startswith(tuple(wide)):
            wide.add(store)
            if len(wide) > MAX_PREFIXES:
                wide = _shortened(wide, caller)
    return wide


def may_see_scope(caller: Caller, scope: Set[str], creator: str) -> bool:
    """Tell whether all stores of a scope are the caller's. What has no store yet is its creator's."""
    if caller.has_all_stores:
        return True
    return all(caller.may_see(each) for each in scope) if scope else caller.id == creator


def _shortened(scope: Set[str], caller: Caller) -> set[str]:
    """Return fewer and shorter prefixes that cover the same: as long as possible, but none shorter than those of the caller."""
    length = max(map(len, scope))
    short = set(scope)
    while len(short) > MAX_PREFIXES // 2 and length:
        length -= 1
        cut = {each if len(each) <= length else _cut(each, length, caller) for each in short}
        short = {each for each in cut if not any(each != other and each.startswith(other) for other in cut)}
    return short


def _cut(prefix: str, length: int, caller: Caller) -> str:
    own = max((len(each) for each in caller.stores if prefix.startswith(each)), default=0)
    return prefix[: max(length, own)]
