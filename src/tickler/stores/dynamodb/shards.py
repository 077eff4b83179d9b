"""Assigns items to shards by a hash, so that similar names are spread over all shards."""

from __future__ import annotations

import hashlib


def shard_of(identity: bytes, shards: int) -> int:
    return hash_of(identity) % shards


def hash_of(identity: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(identity, digest_size=8, person=b"tickler-shard").digest())
