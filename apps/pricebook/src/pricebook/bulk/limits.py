"""How large what is uploaded may be."""

from __future__ import annotations

from datetime import timedelta

from msgspec import Struct


class BulkLimits(Struct, frozen=True):
    size: int = 1_000_000_000  # bytes of an upload
    line: int = 65_536  # bytes
    columns: int = 64
    failures: int = 10_000  # of a job: with more, the file is of another kind
    chunk: int = 240_000  # bytes of an upload in one item; with JSON around it, it has to stay below 400 KB
    batch: int = 500  # lines that are looked up and added together
    lease: timedelta = timedelta(seconds=60)  # how long after the death of a process another one goes on
    kept: timedelta = timedelta(days=30)  # jobs and their failures
