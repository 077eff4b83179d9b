"""What a report says before the approval, in a bounded size and number of reads."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest

from book import MARCH
from change_desk import APPROVER, EDITOR, READER, ChangeDesk, lines_of, utc
from pricebook.change_sets import Finding, Line, NewChangeSet, Report
from pricebook.change_sets.report_values import MAX_FINDINGS, MAX_LARGEST
from pricebook.model import PriceKey
from pricebook.money import Money
from tickler.table import OpenTable

DAY = timedelta(days=1)
APRIL = MARCH + 31 * DAY


def found_in(report: Report) -> list[tuple[str, str, str | None]]:
    return [(each.severity, each.code, None if each.key is None else each.key.product) for each in report.findings]


async def test_a_report_says_what_would_change_by_how_much(desk: ChangeDesk) -> None:
    await desk.stores("1", prices={"P1": 100, "P2": 100, "P3": 100, "P4": 100, "P5": 100})
    draft = await desk.draft({"1": {"P1": 120, "P2": 90, "P3": 100, "P4": None, "P5": 200, "P6": 1}}, at=APRIL)
    report = await desk.change_sets.report(READER, draft.id)
    assert (report.lines, report.stores) == (6, 1)
    assert (report.added, report.removed, report.raised, report.lowered, report.unchanged) == (1, 1, 2, 1, 1)
    assert (report.first_at, report.last_at) == (APRIL, APRIL)
    assert [(each.key.product, each.share) for each in report.largest] == [("P5", 1.0), ("P1", 0.2), ("P2", -0.1)]
    assert found_in(report) == [
        ("warning", "unchanged", "P3"),
        ("warning", "large_change", "P5"),
        ("warning", "unknown_product", "P6"),
    ]
    assert report.can_approve


async def test_a_report_compares_with_what_will_count_then_and_not_with_today(desk: ChangeDesk) -> None:
    await desk.stores("1", prices={"P1": 100})
    await desk.approved({"1": {"P1": 200}}, at=APRIL)
    draft = await desk.draft({"1": {"P1": 210}}, at=APRIL + DAY)
    (line,) = (await desk.change_sets.report(READER, draft.id)).largest
    assert (line.before, line.after, line.share) == (Money(200, "EUR"), Money(210, "EUR"), 0.05)


async def test_a_channel_is_compared_with_the_price_that_it_has_from_all(desk: ChangeDesk) -> None:
    await desk.stores("1", prices={"P1": 100})
    draft = await desk.draft({})
    await desk.change_sets.put_lines(EDITOR, draft.id, lines_of({"1": {"P1": 110}}, "WEB"))
    (line,) = (await desk.change_sets.report(READER, draft.id)).largest
    assert (line.key.channel, line.before) == ("WEB", Money(100, "EUR"))


async def test_errors_prevent_the_approval_and_name_what_is_wrong(desk: ChangeDesk) -> None:
    await desk.stores("1", prices={"P1": 100, "P2": 100, "P3": 100})
    other = await desk.approved({"1": {"P3": 90}}, at=APRIL)
    draft = await desk.draft({"1": {"P1": -5, "P3": 95}, "nowhere": {"P1": 1, "P2": 2}}, at=APRIL)
    await desk.change_sets.put_lines(EDITOR, draft.id, [Line(PriceKey("1", "ALL", "Base", "P2"), Money(100, "JPY"))])
    report = await desk.change_sets.report(READER, draft.id)
    assert [each for each in found_in(report) if each[0] == "error"] == [
        ("error", "negative", "P1"),
        ("error", "currency", "P2"),
        ("error", "conflict", "P3"),
        ("error", "unknown_store", None),
    ]
    assert (report.errors, report.stores, report.lines) == (4, 2, 5)
    assert not report.can_approve
    clash = next(each for each in report.findings if each.code == "conflict")
    assert clash.other == other.id
    assert clash.message.startswith(f"P3 in store 1 is in change set {other.title!r} ({other.id}), too, at the same instant")


async def test_a_set_that_is_approved_is_compared_with_what_would_be_without_it(desk: ChangeDesk) -> None:
    await desk.stores("1", prices={"P1": 100})
    found = await desk.approved({"1": {"P1": 90}}, at=APRIL)
    report = await desk.change_sets.report(READER, found.id)
    assert report.can_approve
    assert (report.lowered, report.unchanged) == (1, 0)


async def test_a_late_set_is_warned_of_once_for_all_its_stores(desk: ChangeDesk) -> None:
    await desk.stores("1", "2", "3", tz="Pacific/Auckland")
    await desk.stores("4", tz="America/Lima")
    desk.clock.set(utc("2026-03-09T12:00"))
    draft = await desk.draft({store: {"P1": 1} for store in "1234"}, day=date(2026, 3, 10))
    report = await desk.change_sets.report(READER, draft.id)
    late = [each for each in report.findings if each.code == "late"]
    assert [(each.severity, each.message.partition(":")[0]) for each in late] == [("warning", "store 1 and 2 others")]
    assert report.first_at == utc("2026-03-09T12:01")
    assert report.last_at == utc("2026-03-10T05:00")


async def test_an_end_that_has_passed_is_an_error(desk: ChangeDesk) -> None:
    await desk.stores("1")
    draft = await desk.draft({"1": {"P1": 1}}, until_at=APRIL)
    desk.clock.set(APRIL)
    report = await desk.change_sets.report(READER, draft.id)
    assert (report.findings[0].severity, report.findings[0].code) == ("error", "late")


@pytest.mark.parametrize("is_settled", [False, True])
async def test_the_report_of_a_rollback_says_what_prices_would_be_again(desk: ChangeDesk, is_settled: bool) -> None:
    await desk.stores("1", prices={"P1": 100})
    found = await desk.approved({"1": {"P1": 80, "P2": 5}}, at=APRIL)
    desk.clock.set(APRIL + 3 * DAY)
    if is_settled:
        await desk.settle("1")
    rollback = await desk.change_sets.roll_back(APPROVER, found.id)
    report = await desk.change_sets.report(READER, rollback.id)
    assert (report.lines, report.raised, report.removed, report.errors) == (2, 1, 1, 0)
    assert [(each.before, each.after) for each in report.largest] == [(Money(80, "EUR"), Money(100, "EUR"))]


async def test_a_report_of_many_lines_is_bounded_and_read_in_few_calls(desk: ChangeDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    number = 600
    await desk.stores("1", prices={f"P{n:03}": 100 for n in range(number)})
    draft = await desk.draft({"1": {f"P{n:03}": -1 - n for n in range(number)}}, at=APRIL)
    reads: list[str] = []
    for name in ("get_many", "query", "get"):
        read = getattr(OpenTable, name)

        async def counted(self: Any, *args: Any, name: str = name, read: Any = read, **options: Any) -> Any:
            reads.append(name)
            return await read(self, *args, **options)

        monkeypatch.setattr(OpenTable, name, counted)
    report = await desk.change_sets.report(READER, draft.id)
    assert len(reads) < 10
    assert (report.errors, report.warnings) == (number, number)
    assert len(report.findings) == MAX_FINDINGS
    assert all(each.severity == "error" for each in report.findings)
    assert len(report.largest) == MAX_LARGEST
    assert report.largest[0].key.product == "P599"


async def test_a_share_that_is_just_allowed_is_not_warned_of(desk: ChangeDesk) -> None:
    await desk.stores("1", prices={"P1": 100, "P2": 100})
    made = await desk.change_sets.create(EDITOR, NewChangeSet(title="x", at=APRIL))
    await desk.change_sets.put_lines(EDITOR, made.id, lines_of({"1": {"P1": 130, "P2": 131}}))
    findings: list[Finding] = (await desk.change_sets.report(READER, made.id)).findings
    assert [(each.code, each.key and each.key.product) for each in findings] == [("large_change", "P2")]
