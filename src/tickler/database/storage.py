"""What may be wrong with the disk that a store lies on."""

from __future__ import annotations

import msgspec


class StorageProblem(msgspec.Struct, frozen=True):
    """What is wrong with the medium a store lies on, and what mends it."""

    says: str
    example: str
    remedy: str
