"""Problems with the disk that a store is on."""

from __future__ import annotations

import msgspec


class StorageProblem(msgspec.Struct, frozen=True):
    """A problem with the medium of a store, and its remedy."""

    says: str
    example: str
    remedy: str
