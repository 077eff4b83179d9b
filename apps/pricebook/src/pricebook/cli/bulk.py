"""`pricebook import` and `pricebook job`: prices from files."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from rich.console import Console
from rich.table import Table

from pricebook.app import Pricebook
from pricebook.bulk.failures_csv import csv_of_failures
from pricebook.bulk.format_names import read_format
from pricebook.bulk.moments import in_zone, read_moment
from pricebook.cli.progress import progress_bars
from pricebook.cli.session import OPERATOR, run
from pricebook.editions.pages import PageArgs
from pricebook.errors import InvalidField
from pricebook.loading.loader import OnProgress
from pricebook.model import BulkFailure, BulkFormat, BulkJob, BulkOptions
from tickler import RetryLater

FAILED = 1
LINES_REFUSED = 4
"""What the shell gets if a job is done, but not with all of its lines."""
READ_AT_A_TIME = 1 << 18  # bytes
LOOKED_EACH_S = 0.2
SHOWN_FAILURES = 20
FIRST_ZONE, LAST_ZONE = "Etc/GMT-14", "Etc/GMT+12"  # where each day begins first, and last

SUFFIXES: dict[str, BulkFormat] = {".csv": "csv", ".ndjson": "ndjson", ".jsonl": "ndjson"}
SPREADSHEETS = (".xlsx", ".xls", ".ods")

File = Annotated[
    str, typer.Argument(metavar="FILE", help="CSV or NDJSON, as `pricebook export` writes it; - for standard input.")
]
Format = Annotated[str, typer.Option(metavar="FORMAT", help="csv or ndjson. By default told by the name of FILE.")]
Title = Annotated[str, typer.Option(metavar="TITLE", help="Of the change set that is made.")]
Effective = Annotated[
    str,
    typer.Option(metavar="WHEN", help="2026-12-01, midnight in each store; or 2026-12-01T06:00:00+01:00. By default at once."),
]
Until = Annotated[str, typer.Option(metavar="WHEN", help="When the former prices count again.")]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why, for the audit.")]
Currency = Annotated[str, typer.Option(metavar="CODE", help="Currency of lines without one, such as EUR.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be imported, and import nothing.")]
AllOrNothing = Annotated[bool, typer.Option("--all-or-nothing", help="Import nothing if a line is refused.")]
Submit = Annotated[bool, typer.Option("--submit", help="Submit the change set when all lines are in it.")]
IdempotencyKey = Annotated[str, typer.Option(metavar="KEY", help="The same key, file and options again go on with the same job.")]
Failures = Annotated[Path | None, typer.Option(metavar="FILE", help="Write all lines that were refused to a CSV.")]
JobId = Annotated[str, typer.Argument(metavar="JOB", help="Id of an import.")]


def import_(
    file: File,
    format: Format = "",
    title: Title = "",
    effective: Effective = "",
    until: Until = "",
    reason: Reason = "",
    currency: Currency = "",
    dry_run: DryRun = False,
    all_or_nothing: AllOrNothing = False,
    submit: Submit = False,
    idempotency_key: IdempotencyKey = "",
    failures: Failures = None,
) -> None:
    """Import prices from a file into a change set. Exit code 4 if lines were refused, 1 if nothing was imported."""
    options = BulkOptions(
        format=_format_of(file, format),
        title=title or ("" if file == "-" else Path(file).name),
        effective=effective,
        until=until,
        reason=reason,
        currency=currency,
        dry_run=dry_run,
        all_or_nothing=all_or_nothing,
        submit=submit,
        idempotency_key=idempotency_key,
    )
    source, size = _open(file)

    async def work(book: Pricebook) -> int:
        with progress_bars() as on_progress:
            job = await book.bulk.start(OPERATOR, options, _pieces(source, size, on_progress))
            await _finish(book, job.id, on_progress)
        return await _report(book, job.id, failures)

    with source:
        _exit(run(work))


def job(id: JobId, failures: Failures = None) -> None:
    """Show how far an import is, and go on with it where that was interrupted."""

    async def work(book: Pricebook) -> int:
        with progress_bars() as on_progress:
            await _finish(book, id, on_progress)
        return await _report(book, id, failures)

    _exit(run(work))


async def _finish(book: Pricebook, id: str, on_progress: OnProgress) -> None:
    """Work on a job until it has ended, beside any server that does the same, and show how far it is."""
    worker = asyncio.create_task(_work(book, id))
    try:
        while (found := await book.bulk.get(OPERATOR, id)).is_open:
            _show(found, on_progress)
            if worker.done():
                worker.result()  # raises what has stopped it
            await asyncio.wait([worker], timeout=LOOKED_EACH_S)
        _show(found, on_progress)
    except asyncio.CancelledError:
        typer.echo(f"interrupted: `pricebook job {id}` goes on, and so does a server", err=True)
        raise
    finally:
        worker.cancel()
        with suppress(asyncio.CancelledError):
            await worker


async def _work(book: Pricebook, id: str) -> None:
    while True:
        try:
            await book.bulk.work(id)
        except RetryLater as later:
            await asyncio.sleep(0 if later.after is None else later.after.total_seconds())
        else:
            return


def _show(job: BulkJob, on_progress: OnProgress) -> None:
    lines = max(job.upload.lines, job.checked)
    on_progress("checking lines", job.checked, lines)
    if job.added:
        on_progress("comparing lines" if job.options.dry_run else "adding lines", job.added, lines)


async def _report(book: Pricebook, id: str, failures: Path | None) -> int:
    """Say what became of a job. Returns the exit code."""
    job = await book.bulk.get(OPERATOR, id)
    page = await book.bulk.failures(OPERATOR, id, PageArgs(first=SHOWN_FAILURES))
    if page.nodes:
        Console(stderr=True).print(_table(page.nodes))
    if page.has_next:
        typer.echo(f"and more: `pricebook job {id} --failures FILE` writes all of them", err=True)
    if failures is not None:
        with failures.open("wb") as file:
            async for piece in csv_of_failures(await book.bulk.all_failures(OPERATOR, id)):
                file.write(piece)
    typer.echo(_summary(job))
    if job.state != "done":
        return FAILED
    for line in _further(book, job):
        typer.echo(line, err=True)
    return LINES_REFUSED if job.counts.failed else 0


def _summary(job: BulkJob) -> str:
    counts = job.counts
    if job.state != "done":
        return f"job {job.id} {job.state}: {job.error}"
    verb = "would change" if job.options.dry_run else "change" if counts.changes == 1 else "changes"
    where = f" in change set {job.change_set}" if job.change_set else ""
    return (
        f"job {job.id}: {counts.changes:,} {verb}{where}, {counts.unchanged:,} unchanged, {counts.kept:,} kept, "
        f"{counts.failed:,} refused"
    )


def _further(book: Pricebook, job: BulkJob) -> Iterator[str]:
    """Yield what to know and to do next."""
    moment, now = read_moment("effective", job.options.effective), book.now()
    if moment is not None and in_zone(moment, LAST_ZONE, now) == now:
        yield f"{job.options.effective} has passed: these prices count as soon as they are approved"
    elif moment is not None and in_zone(moment, FIRST_ZONE, now) == now:
        yield f"{job.options.effective} has begun in some time zones: prices there count as soon as they are approved"
    if job.change_set:
        step = "approve" if job.options.submit else "submit"
        yield f"look at it and {step} it: {book.settings.url(f'/change-sets/{job.change_set}')}"
    elif job.options.dry_run and job.counts.changes:
        yield "nothing was imported: the same command without --dry-run makes a change set"


def _table(failures: list[BulkFailure]) -> Table:
    table = Table("line", "reason", title="refused", title_justify="left")
    table.columns[0].justify = "right"
    for each in failures:
        table.add_row(f"{each.line:,}", each.reason)
    return table


def _format_of(file: str, given: str) -> BulkFormat:
    if given:
        return read_format(given, "--format")
    suffix = Path(file).suffix.lower()
    if suffix in SPREADSHEETS:
        raise InvalidField("FILE", f"{file} is a spreadsheet: save it as CSV UTF-8")
    if suffix not in SUFFIXES:
        remedy = "name it .csv or .ndjson, or give --format csv or --format ndjson"
        raise InvalidField("FILE", f"{file} does not say by its name what it is: {remedy}")
    return SUFFIXES[suffix]


def _open(file: str) -> tuple[BinaryIO, int | None]:
    """Return a file and its size, as far as that is known."""
    if file == "-":
        return sys.stdin.buffer, None
    try:
        opened = Path(file).open("rb")  # noqa: SIM115  # the caller closes it
    except OSError as error:
        raise InvalidField("FILE", f"{file} cannot be read: {error.strerror}") from None
    return opened, os.fstat(opened.fileno()).st_size


async def _pieces(source: BinaryIO, size: int | None, on_progress: OnProgress) -> AsyncIterator[bytes]:
    read = 0
    while piece := source.read(READ_AT_A_TIME):
        yield piece
        read += len(piece)
        on_progress("reading, bytes", read, size)


def _exit(code: int) -> None:
    if code:
        raise typer.Exit(code)
