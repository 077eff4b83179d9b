"""Imports and their refused lines as programs see them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct

from pricebook.editions.pages import NodePage
from pricebook.model import BulkFailure, BulkFormat, BulkJob
from pricebook.model.bulk_job import BulkState
from tickler.table import MISSING


class JobAnswer(Struct, frozen=True):
    """A job as programs see it. `lines` is how many the file has; `checked` and `added` are up to which line it is."""

    id: str
    state: BulkState
    format: BulkFormat
    dry_run: bool
    created_at: datetime
    size: int
    lines: int
    checked: int
    added: int
    changes: int
    unchanged: int
    kept: int
    failed: int
    change_set: str | None
    error: str | None


class FailureAnswer(Struct, frozen=True, omit_defaults=True):
    line: int
    reason: str
    other_line: int | None = None


class PageAnswer(Struct, frozen=True):
    items: list[JobAnswer] | list[FailureAnswer]
    has_next: bool
    has_previous: bool
    start: str | None
    end: str | None


def page_answer(page: NodePage[Any], items: list[JobAnswer] | list[FailureAnswer]) -> PageAnswer:
    return PageAnswer(items, page.has_next, page.has_previous, page.start_cursor, page.end_cursor)


def job_answer(job: BulkJob) -> JobAnswer:
    counts = job.counts
    return JobAnswer(
        id=job.id,
        state=job.state,
        format=job.options.format,
        dry_run=job.options.dry_run,
        created_at=job.created_at,
        size=job.upload.size,
        lines=job.upload.lines,
        checked=job.checked,
        added=job.added,
        changes=counts.changes,
        unchanged=counts.unchanged,
        kept=counts.kept,
        failed=counts.failed,
        change_set=job.change_set or None,
        error=job.error or None,
    )


def failure_answer(failure: BulkFailure) -> FailureAnswer:
    other = None if failure.other_line is MISSING else failure.other_line
    return FailureAnswer(failure.line, failure.reason, other)
