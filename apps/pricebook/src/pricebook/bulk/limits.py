"""How large what is uploaded may be, and how much of it is worked on at a time."""

from __future__ import annotations

from datetime import timedelta

from msgspec import Struct


class BulkLimits(Struct, frozen=True):
    size: int = 1_000_000_000  # bytes of an upload
    line: int = 65_536  # bytes
    columns: int = 64
    failures: int = 10_000  # of a job: with more, the file is of another kind
    chunk: int = 240_000  # bytes of an upload in one item; with JSON around it, it has to stay below 400 KB
    batch: int = 500  # lines that are looked up together
    checkpoint: int = 50_000  # lines that are checked before it is written down how far that is
    added: int = 5_000  # lines that are added before it is written down how far that is
    slice: timedelta = timedelta(seconds=20)  # of work, after which others get their turn
    kept: timedelta = timedelta(days=30)  # jobs, their uploads and their failures
