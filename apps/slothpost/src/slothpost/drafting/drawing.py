"""Stands in for chance in drafts: what is drawn for a request is the same each time."""

from __future__ import annotations

import hashlib

from slothpost.drafting.drafter import DraftRequest


def drawn(request: DraftRequest, what: str) -> bytes:
    """Return bytes that look random, and that differ for every question that is asked about a request."""
    return hashlib.blake2b(f"{request.seed}\n{request.channel}\n{request.hint}\n{what}".encode(), digest_size=8).digest()
