"""An import of prices as a job: what was uploaded, how far it is, and what was wrong with it, line by line."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pricebook.model.table import pricebook
from tickler.table import MISSING, Attr, Entity, Index, Key, Missing, Part, attr

BulkFormat = Literal["csv", "ndjson"]
BulkState = Literal["checking", "adding", "done", "failed", "cancelled"]


class BulkOptions(Part):
    """What to do with an upload.

    `effective` and `until` are texts: empty, a date such as 2026-12-01, which begins where each store is, or an instant with an
    offset. `currency` is for lines without one. The same `idempotency_key` with the same content and options is the same job.
    """

    format: Attr[BulkFormat]
    title: Attr[str] = attr(default="")
    effective: Attr[str] = attr(default="")
    until: Attr[str] = attr(default="")
    reason: Attr[str] = attr(default="")
    currency: Attr[str] = attr(default="")
    dry_run: Attr[bool] = attr(default=False)
    all_or_nothing: Attr[bool] = attr(default=False)
    submit: Attr[bool] = attr(default=False)
    idempotency_key: Attr[str] = attr(default="")


class BulkUpload(Part):
    """Where the content of a job is kept, and how much it is. `lines` is their number, for progress.

    All chunks but the last have `chunk` bytes, so that reading begins anywhere.
    """

    id: Attr[str]
    chunks: Attr[int]
    chunk: Attr[int]
    size: Attr[int]
    lines: Attr[int]
    digest: Attr[str]


class BulkActor(Part):
    """Who has made a job: it changes no prices that they may not change."""

    id: Attr[str]
    roles: Attr[set[str]]
    stores: Attr[list[str]]


class BulkCounts(Part):
    """What became of the lines. Those with an empty price are `kept`; those whose price is as it would be anyway `unchanged`."""

    changes: Attr[int] = attr(default=0)
    unchanged: Attr[int] = attr(default=0)
    kept: Attr[int] = attr(default=0)
    failed: Attr[int] = attr(default=0)


class BulkJob(Entity, table=pricebook):
    """First all lines are checked, then the good ones are added to a change set. A dry run only finds out what it would add.

    `checked` and `added` are line numbers of the upload up to which that is done, and `offset` is the byte behind that line,
    where whoever works on it goes on. Each write of them is conditional on where it was, so that no line counts twice.
    Several may work on it at once: all but one of them find that out at their next write.
    """

    id: Attr[str] = attr()
    state: Attr[BulkState] = attr()
    options: Attr[BulkOptions]
    upload: Attr[BulkUpload]
    actor: Attr[BulkActor]
    request: Attr[str] = attr(default="")  # that started it, for the audit
    created_at: Attr[datetime] = attr()
    checked: Attr[int] = attr(default=0)
    added: Attr[int] = attr(default=0)
    offset: Attr[int] = attr(default=0)
    counts: Attr[BulkCounts] = attr(default=BulkCounts())
    change_set: Attr[str] = attr(default="")
    ends: Attr[Literal["failed", "cancelled"] | Missing] = attr(default=MISSING)  # what it becomes once nothing of it is left
    error: Attr[str] = attr(default="")  # why it failed as a whole
    fires: Attr[int] = attr(default=1)  # how often the engine was asked to work on it
    expires_at: Attr[datetime | Missing] = attr(default=MISSING, expires=True)

    key = Key("BULK" / id, "!JOB")
    all = Index("gsi1", "BULK_JOBS", created_at / id)
    open = Index("gsi2", "BULK", created_at / id, when=state.one_of(["checking", "adding"]))

    @property
    def is_open(self) -> bool:
        return self.state in ("checking", "adding")


class BulkFailure(Entity, table=pricebook):
    """Why a line was refused. `other_line` is one with the same price."""

    job: Attr[str] = attr()
    line: Attr[int] = attr()
    reason: Attr[str]
    other_line: Attr[int | Missing] = attr(default=MISSING)
    expires_at: Attr[datetime | Missing] = attr(default=MISSING, expires=True)

    key = Key("BULK" / job, "FAILURE" / line)


class BulkChunk(Entity, table=pricebook):
    """A piece of an upload, compressed."""

    upload: Attr[str] = attr()
    number: Attr[int] = attr()
    data: Attr[bytes]
    expires_at: Attr[datetime | Missing] = attr(default=MISSING, expires=True)

    key = Key("UPLOAD" / upload, "CHUNK" / number)


class BulkDigests(Entity, table=pricebook):
    """Digests of the prices of some lines, with their numbers, until duplicates were looked for. `run` is the first of them."""

    upload: Attr[str] = attr()
    partition: Attr[int] = attr()
    run: Attr[int] = attr()
    records: Attr[bytes]
    expires_at: Attr[datetime | Missing] = attr(default=MISSING, expires=True)

    key = Key("UPLOAD" / upload, "DIGESTS" / partition / run)
