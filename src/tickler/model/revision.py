"""Version tokens for optimistic locking of schedules."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tickler.errors import InvalidInput, VersionConflict


class Revision(msgspec.Struct, frozen=True):
    """A version and the creation time of its schedule, since versions restart at 1 after a delete. None matches any."""

    version: int | None = None
    created_at: int | None = None

    def fits(self, stored: Revision) -> bool:
        return self.version in (None, stored.version) and self.created_at in (None, stored.created_at)


# A version (0: there must be none), a revision, or several of which one must match.
Expected = int | Revision | Sequence[Revision]


def check_version(expected: object) -> None:
    """Raise `InvalidInput` unless `expected` is an `Expected`."""
    if isinstance(expected, bool) or not isinstance(expected, int | Revision | list | tuple):
        raise _invalid_version(expected)
    if isinstance(expected, int) and not 0 <= expected < 1 << 63:
        raise _invalid_version(expected)
    if isinstance(expected, list | tuple) and not (expected and all(isinstance(each, Revision) for each in expected)):
        raise _invalid_version(expected)


def check_expected(name: str, expected: Expected, stored: Revision | None) -> None:
    """Raise `VersionConflict` if the stored revision is not the expected one."""
    if isinstance(expected, int):
        if expected != (0 if stored is None else stored.version):
            raise VersionConflict(name, expected, 0 if stored is None else stored.version or 0)
        return
    wanted = [expected] if isinstance(expected, Revision) else expected
    if stored is None:
        raise VersionConflict(name, wanted[0].version or 0, 0)
    if not any(each.fits(stored) for each in wanted):
        same = next((each for each in wanted if each.version == stored.version), wanted[-1])
        raise VersionConflict(name, same.version or 0, stored.version or 0)


def _invalid_version(expected: object) -> InvalidInput:
    return InvalidInput(
        f"version: {str(expected)[:80]!r} is not a version: pass the version that you read, or 0 if there must be none"
    )
