"""Imports as jobs: what becomes of each line, with each option."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime

import msgspec
import pytest

from book import staged
from imports import ADA, Imports, csv_of
from pricebook.access.caller import Caller
from pricebook.app import Pricebook
from pricebook.bulk import BulkLimits
from pricebook.editions.pages import PageArgs
from pricebook.errors import InvalidField, LacksRole, NotAllowed, NotFound
from pricebook.model import BulkChunk, BulkCounts, BulkDigests, BulkOptions, ChangeSet
from tickler import ManualClock
from tickler.table import MISSING

NORTH = Caller("north", frozenset({"read", "edit"}), ("1",))
SOUTH = Caller("south", frozenset({"read", "edit"}), ("2",))
READER = Caller("reader", frozenset({"read"}))


@pytest.fixture
async def imports(opened: Pricebook) -> Imports:
    made = Imports(opened)
    await made.stores({"1": {f"P{n}": 100 + n for n in range(20)}, "2": {"P1": 100}})
    return made


async def test_good_lines_are_added_to_one_change_set(imports: Imports) -> None:
    job = await imports.run(csv_of([f"1,P{n},5.{n:02},EUR" for n in range(20)]))
    assert (job.state, job.checked, job.added) == ("done", 21, 21)
    assert job.counts == BulkCounts(changes=20)
    change_set = await imports.change_set(job)
    assert change_set is not None
    assert (change_set.state, change_set.title, change_set.created_by) == ("draft", "Import", "ada")
    assert await imports.lines(job) == {f"1/ALL/P{n}": 500 + n for n in range(20)}


async def test_each_kind_of_line_is_counted(imports: Imports) -> None:
    header = "store,channel,product,amount,currency,delete"
    job = await imports.run(
        csv_of(
            [
                "1,,P1,1.01,EUR,",  # as it is
                "1,WEB,P1,1.01,EUR,",  # a price of its own
                "1,,P2,1.02,SEK,",  # another currency
                "1,,P3,,,",  # stays
                "1,,P4,,,yes",
                "1,WEB,P4,,,yes",  # has none
                "1,,NEW,7,EUR,",
                "1,,NONE,,,yes",  # has none
                "3,,P1,7,EUR,",
                "1,,P5,-7,EUR,",
            ],
            header,
        )
    )
    assert job.state == "done"
    assert job.counts == BulkCounts(changes=4, unchanged=3, kept=1, failed=2)
    assert await imports.lines(job) == {"1/WEB/P1": 101, "1/ALL/P2": 102, "1/ALL/P4": None, "1/ALL/NEW": 700}
    assert await imports.failures(job.id) == {
        10: "there is no store '3': check its name",
        11: "amount: is -7.00 EUR: a price is not negative",
    }


async def test_all_lines_about_one_price_are_refused_and_name_each_other(imports: Imports) -> None:
    lines = ["1,P1,5,EUR", "1,P2,5,EUR", "1,P1,5,EUR", "2,P1,5,EUR", "1,P3,,", "1,P1,6,EUR", "1,P3,5,EUR"]
    job = await imports.run(csv_of(lines))
    assert await imports.pairs(job.id) == {(2, 4), (4, 2), (7, 2), (6, 8), (8, 6)}
    assert (await imports.failures(job.id))[7] == "is about the same price as line 2: leave one of them out"
    assert await imports.lines(job, "1", "2") == {"1/ALL/P2": 500, "2/ALL/P1": 500}


async def test_duplicates_are_found_across_the_runs_of_a_large_file(imports: Imports) -> None:
    lines = [f"1,P{n % 50},{n}.00,EUR" for n in range(100)]
    job = await imports.run(csv_of([*lines, "1,ONCE,5,EUR"]))
    assert await imports.pairs(job.id) == {(n + 2, n + 52) for n in range(50)} | {(n + 52, n + 2) for n in range(50)}
    assert await imports.lines(job) == {"1/ALL/ONCE": 500}


async def test_a_dry_run_says_what_would_be_imported_and_imports_nothing(imports: Imports) -> None:
    content = csv_of(["1,P1,1.01,EUR", *(f"1,P{n},9,EUR" for n in range(2, 18)), "1,P18,,", "1,P19,x,EUR"])
    dry = await imports.run(content, dry_run=True)
    assert (dry.state, dry.change_set) == ("done", "")
    assert dry.counts == BulkCounts(changes=16, unchanged=1, kept=1, failed=1)
    assert [each async for each in imports.db.iterate(ChangeSet.open())] == []
    assert (await imports.run(content)).counts == dry.counts


async def test_all_or_nothing_imports_nothing_if_a_line_is_refused(imports: Imports) -> None:
    content = csv_of(["1,P1,5,EUR", "1,P2,x,EUR", "1,P3,5,EUR"])
    job = await imports.run(content, all_or_nothing=True)
    assert (job.state, job.change_set) == ("failed", "")
    assert job.error == "file: 1 of 4 lines were refused: correct them. Nothing was imported"
    assert list(await imports.failures(job.id)) == [3]
    good = await imports.run(csv_of(["1,P1,5,EUR", "1,P3,5,EUR"]), all_or_nothing=True)
    assert good.counts == BulkCounts(changes=2)


async def test_a_change_set_is_submitted_if_that_is_asked_for(imports: Imports) -> None:
    texts = {"title": "Spring", "reason": "season", "effective": "2026-04-01", "until": "2026-05-01"}
    job = await imports.run(csv_of(["1,P1,5,EUR"]), caller=ADA, submit=True, **texts)
    change_set = await imports.change_set(job)
    assert change_set is not None
    assert (change_set.state, change_set.title, change_set.reason) == ("submitted", "Spring", "season")
    assert (change_set.day, change_set.until_day, change_set.at) == (date(2026, 4, 1), date(2026, 5, 1), MISSING)


async def test_an_import_without_a_change_makes_no_change_set(imports: Imports) -> None:
    job = await imports.run(csv_of([f"1,P{n},1.{n:02},EUR" for n in range(20)]), submit=True)
    assert (job.state, job.change_set) == ("done", "")
    assert job.counts == BulkCounts(unchanged=20)


async def test_lines_are_compared_with_the_prices_of_the_instant_at_which_they_are_to_count(
    opened: Pricebook, clock: ManualClock
) -> None:
    imports = Imports(opened)
    await imports.stores({"1": {"P1": 100}}, tz="Europe/Berlin")
    await imports.stores({"2": {"P1": 100}}, tz="America/New_York")
    number = await opened.switch.open_edition("1", datetime(2026, 3, 31, 23, tzinfo=UTC))
    await opened.switch.stage("1", number, staged({"P1": 200}))
    await opened.switch.seal("1", number)
    lines = csv_of(["1,P1,2,EUR", "2,P1,2,EUR"])
    assert (await imports.run(lines, effective="2026-04-01")).counts == BulkCounts(changes=2)  # Berlin: 22:00 in UTC
    assert (await imports.run(lines, effective="2026-04-02")).counts == BulkCounts(changes=1, unchanged=1)
    assert (await imports.run(lines, effective="2026-04-01T00:00:00+01:00")).counts == BulkCounts(changes=1, unchanged=1)
    assert (await imports.run(lines)).counts == BulkCounts(changes=2)


async def test_ndjson_is_imported_likewise(imports: Imports) -> None:
    content = b'{"store":"1","product":"P1","amount":"5"}\nnonsense\n{"store":"1","product":"P2","delete":true}\n'
    job = await imports.run(content, format="ndjson", currency="EUR")
    assert job.counts == BulkCounts(changes=2, failed=1)
    assert await imports.lines(job) == {"1/ALL/P1": 500, "1/ALL/P2": None}


async def test_lines_of_stores_of_others_are_refused_as_if_these_did_not_exist(imports: Imports) -> None:
    job = await imports.run(csv_of(["1,P1,5,EUR", "2,P1,5,EUR"]), caller=NORTH)
    assert await imports.failures(job.id) == {3: "there is no store '2': check its name"}
    assert await imports.lines(job, "1", "2") == {"1/ALL/P1": 500}


async def test_a_person_who_may_do_less_meanwhile_imports_less(imports: Imports) -> None:
    await imports.opened.people.create("Ada", ["edit"], id="ada", stores=["2"])
    job = await imports.run(csv_of(["1,P1,5,EUR", "2,P1,5,EUR"]))
    assert await imports.lines(job, "1", "2") == {"2/ALL/P1": 500}
    await imports.opened.people.create("Reader", ["read"], id="reader")
    began_as_editor = msgspec.structs.replace(READER, roles=frozenset({"edit"}))
    job = await imports.run(csv_of(["1,P1,5,EUR"]), caller=began_as_editor)
    assert (job.state, job.change_set) == ("failed", "")
    assert "lacks the role 'edit'" in job.error


async def test_only_editors_start_and_cancel_and_jobs_of_other_stores_do_not_exist(imports: Imports) -> None:
    with pytest.raises(LacksRole):
        await imports.start(csv_of([]), caller=READER)
    job = await imports.start(csv_of(["1,P1,5,EUR"]), caller=NORTH)
    with pytest.raises(LacksRole):
        await imports.jobs.cancel(READER, job.id)
    for call in (imports.jobs.get, imports.jobs.cancel):
        with pytest.raises(NotFound):
            await call(SOUTH, job.id)
    with pytest.raises(NotFound):
        await imports.jobs.failures(SOUTH, job.id, PageArgs())
    with pytest.raises(NotFound):
        await imports.jobs.get(ADA, "none")
    with pytest.raises(NotFound):
        await imports.jobs.get(ADA, "")
    assert [each.id for each in (await imports.jobs.recent(NORTH, PageArgs())).nodes] == [job.id]
    assert (await imports.jobs.recent(SOUTH, PageArgs())).nodes == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"effective": "tomorrow"}, "effective: 'tomorrow' is not a moment"),
        ({"effective": "2026-04-02", "until": "2026-04-01"}, "until: is not after the beginning"),
        ({"currency": "euro"}, "currency: 'euro' is not a currency code"),
        ({"title": "x" * 300}, "title: has 300 characters"),
        ({"idempotency_key": "x" * 300}, "idempotency_key: is longer than 200 characters"),
        ({"format": "xml"}, "format: 'xml' is unknown: use csv or ndjson"),
    ],
)
async def test_bad_options_are_refused_before_anything_is_read(imports: Imports, options: dict[str, str], says: str) -> None:
    async def source() -> AsyncIterator[bytes]:
        raise AssertionError
        yield b""

    with pytest.raises(Exception, match=says):
        await imports.jobs.start(ADA, BulkOptions(**({"format": "csv"} | options)), source())  # type: ignore[arg-type]


async def test_a_file_that_cannot_be_read_fails_the_job_and_not_the_engine(imports: Imports) -> None:
    job = await imports.run(b"product\nP1\n")
    assert (job.state, job.error) == ("failed", "file: the column 'store' is missing: the first line names the columns")
    open_quote = await imports.run(csv_of([f"1,P{n},5,EUR" for n in range(20)] + ['1,"P20,5,EUR']))
    assert (open_quote.state, open_quote.change_set) == ("failed", "")
    assert "opened in line 22 is not closed" in open_quote.error


async def test_a_file_with_too_many_bad_lines_fails_as_a_whole(opened: Pricebook) -> None:
    imports = Imports(opened, BulkLimits(batch=3, checkpoint=7, failures=10))
    await imports.stores({"1": {}})
    job = await imports.run(csv_of([f"1,P{n},x,EUR" for n in range(30)]))
    assert job.error == "file: more than 10 lines were refused: is it of another kind? Nothing was imported"
    twice = await imports.run(csv_of([f"1,P{n % 6},5,EUR" for n in range(12)]))
    assert (twice.state, twice.error) == ("failed", job.error)
    assert (await imports.run(csv_of([f"1,P{n},x,EUR" for n in range(10)]))).state == "done"


async def test_the_same_key_content_and_options_are_the_same_job(imports: Imports) -> None:
    content = csv_of(["1,P1,5,EUR"])
    job = await imports.run(content, idempotency_key="monday")
    again = await imports.run(content, idempotency_key="monday")
    assert again == job
    assert len((await imports.jobs.recent(ADA, PageArgs())).nodes) == 1
    for other in ({"content": csv_of(["1,P1,6,EUR"])}, {"content": content, "dry_run": True}):
        with pytest.raises(NotAllowed, match="the idempotency key was used on 2026-03-01 at 00:00 UTC for other content"):
            await imports.start(**{"idempotency_key": "monday", **other})  # type: ignore[arg-type]
    theirs = await imports.start(content, caller=NORTH, idempotency_key="monday")
    assert theirs.id != job.id
    await imports.work(theirs.id)
    assert await _left(imports) == 0


async def test_an_upload_that_breaks_off_leaves_nothing(imports: Imports) -> None:
    async def source() -> AsyncIterator[bytes]:
        yield b"store,product,amount\n" * 100
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        await imports.jobs.start(ADA, BulkOptions(format="csv"), source())
    assert await _left(imports) == 0
    assert (await imports.jobs.recent(ADA, PageArgs())).nodes == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\x1f\x8b\x08\x00", "is compressed: send plain text"),
        (b"PK\x03\x04sheet.xlsx", r"is a spreadsheet \(\.xlsx\) or an archive: save it as CSV UTF-8"),
        ("store,product,amount".encode("utf-16"), "is in UTF-16"),
        (b"", "is empty"),
        (b"x" * 2_001, "is larger than 2,000 bytes: split it"),
    ],
)
async def test_what_is_no_text_or_too_large_is_refused_and_leaves_nothing(opened: Pricebook, content: bytes, says: str) -> None:
    imports = Imports(opened, BulkLimits(chunk=64, size=2_000))
    with pytest.raises(InvalidField, match=says):
        await imports.start(content)
    assert await _left(imports) == 0


async def test_an_upload_is_deleted_when_its_job_has_ended_and_the_job_expires(imports: Imports, clock: ManualClock) -> None:
    job = await imports.start(csv_of([f"1,P{n},5,EUR" for n in range(20)]))
    assert await _left(imports) > 2
    await imports.work(job.id)
    assert await _left(imports) == 0
    clock.advance(30 * 86_400)
    with pytest.raises(NotFound):
        await imports.get(job.id)


async def test_an_upload_that_has_expired_fails_its_job(imports: Imports) -> None:
    job = await imports.start(csv_of(["1,P1,5,EUR"]))
    await imports.db.delete(BulkChunk.key.id(job.upload.id, 0))
    await imports.work(job.id)
    assert (await imports.get(job.id)).error == "file: is not kept any more: upload it again"


async def test_a_job_is_cancelled_before_it_begins_and_stays_as_it_is_when_it_has_ended(imports: Imports) -> None:
    job = await imports.start(csv_of(["1,P1,5,EUR"]))
    cancelled = await imports.jobs.cancel(ADA, job.id)
    assert (cancelled.state, cancelled.error) == ("cancelled", "ada has cancelled it")
    assert await imports.jobs.work(job.id) == "nothing to do: the job is cancelled"
    assert await _left(imports) == 0
    done = await imports.run(csv_of(["1,P1,5,EUR"]))
    assert await imports.jobs.cancel(ADA, done.id) == done
    assert await imports.jobs.work(done.id) == "nothing to do: the job is done"
    assert await imports.jobs.work("none") == "nothing to do: the job is not there"


async def test_jobs_are_listed_newest_first_and_failures_by_line_in_pages(imports: Imports, clock: ManualClock) -> None:
    ids = []
    for n in range(5):
        ids.append((await imports.start(csv_of([f"1,P{n},x,EUR"]))).id)
        clock.advance(0 if n == 2 else 1)  # two of one instant
    listed, after = [], None
    while True:
        page = await imports.jobs.recent(ADA, PageArgs(first=2, after=after))
        assert page.has_previous is (after is not None)
        listed += [job.id for job in page.nodes]
        if not page.has_next:
            break
        after = page.end_cursor
    assert (sorted(listed), listed[:1], listed[-2:]) == (sorted(ids), ids[-1:], ids[1::-1])
    job = await imports.run(csv_of([f"1,P{n},x,EUR" for n in range(30)]))
    page_of_failures = await imports.jobs.failures(ADA, job.id, PageArgs(last=2))
    assert [each.line for each in page_of_failures.nodes] == [30, 31]
    assert [each.line async for each in await imports.jobs.all_failures(ADA, job.id)] == list(range(2, 32))


async def test_what_is_imported_is_read_wherever_its_chunks_and_batches_are_cut(opened: Pricebook) -> None:
    content = csv_of([f'1,"P\r\n{n}",{n},EUR' for n in range(12)] + ['1,"bad"x,1,EUR', "1,P\r1,1,EUR", "9,P,1,EUR"])
    first = Imports(opened)
    await first.stores({"1": {}})
    expected = await first.run(content)
    assert (expected.counts.changes, expected.counts.failed) == (12, 3)
    for chunk, batch, checkpoint in ((5, 1, 1), (7, 2, 3), (64, 5, 10_000), (10_000, 1, 2)):
        imports = Imports(opened, BulkLimits(chunk=chunk, batch=batch, checkpoint=checkpoint, added=checkpoint))
        job = await imports.run(content)
        assert job.counts == expected.counts
        assert await imports.lines(job) == await first.lines(expected)
        assert await imports.failures(job.id) == await first.failures(expected.id)


async def _left(imports: Imports) -> int:
    """Return how many items of uploads there are."""
    measured = await imports.db.measure(sample=None)
    return sum(measured.table.items.get(each.__name__, 0) for each in (BulkChunk, BulkDigests))
