"""What an approval does: all stores are staged, and only then sealed; days begin where stores are; conflicts name the other."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from book import MARCH
from change_desk import APPROVER, EDITOR, ChangeDesk, lines_of, only_of, utc
from pricebook.access.caller import Caller
from pricebook.change_sets import ChangeSets, Line, NewChangeSet
from pricebook.change_sets.change_sets import CHECKED_AT_ONCE
from pricebook.change_sets.conflicts import LOOKED_AT, Conflicts
from pricebook.editions.pages import PageArgs
from pricebook.errors import HasChanged, InvalidField, LacksRole, NotAllowed, PriceConflict
from pricebook.model import ChangeSet, PriceKey
from pricebook.money import Money
from tickler.errors import InvalidInput
from tickler.table import MISSING, OpenTable

DAY = timedelta(days=1)
APRIL = MARCH + 31 * DAY


async def test_nothing_is_sealed_before_all_stores_are_staged(desk: ChangeDesk) -> None:
    await desk.stores("1", "2", "3", prices={"P1": 100})
    found = await desk.approving({store: {"P1": 90} for store in "123"}, at=APRIL)
    seen: list[list[str]] = []

    async def at_point(name: str) -> None:
        if name in ("change_set.staged", "change_set.all_staged"):
            seen.append([(await desk.editions(store))[2].state for store in "123" if 2 in await desk.editions(store)])

    watched = ChangeSets(desk.book.t, desk.book.db, desk.book.switch, at_point=at_point)
    await watched.carry_on(found.id)
    assert len(seen) == 4
    assert all(state == "open" for states in seen for state in states)
    assert [(await desk.editions(store))[2].state for store in "123"] == ["sealed"] * 3


@pytest.mark.parametrize(
    ("tz", "day", "expected"),
    [
        ("Europe/Berlin", date(2026, 3, 29), "2026-03-28T23:00"),  # the day on which clocks go forward there
        ("Europe/Berlin", date(2026, 3, 30), "2026-03-29T22:00"),
        ("America/New_York", date(2026, 11, 1), "2026-11-01T04:00"),  # and back
        ("America/New_York", date(2026, 11, 2), "2026-11-02T05:00"),
        ("Africa/Cairo", date(2026, 4, 24), "2026-04-23T22:00"),  # midnight is skipped
        ("America/Havana", date(2026, 11, 1), "2026-11-01T04:00"),  # midnight comes twice
        ("Asia/Kathmandu", date(2026, 3, 29), "2026-03-28T18:15"),
    ],
)
async def test_a_day_begins_at_midnight_where_the_store_is(desk: ChangeDesk, tz: str, day: date, expected: str) -> None:
    await desk.stores("1", tz=tz, prices={"P1": 100})
    found = await desk.approved({"1": {"P1": 90}}, day=day)
    assert found.first_at == utc(expected)
    desk.clock.set(utc(expected) - timedelta(milliseconds=1))
    assert await desk.shown() == {"P1": 100}
    desk.clock.set(utc(expected))
    assert await desk.shown() == {"P1": 90}


async def test_one_day_begins_at_several_instants_in_stores_of_several_zones(desk: ChangeDesk) -> None:
    await desk.stores("auckland", tz="Pacific/Auckland")
    await desk.stores("lima", tz="America/Lima")
    found = await desk.approved({"auckland": {"P1": 1}, "lima": {"P1": 1}}, day=date(2026, 4, 6))
    assert (found.first_at, found.last_at) == (utc("2026-04-05T12:00"), utc("2026-04-06T05:00"))
    desk.clock.set(utc("2026-04-05T12:00"))
    assert [await desk.shown(store) for store in ("auckland", "lima")] == [{"P1": 1}, {}]


async def test_a_day_ends_at_midnight_too_and_then_the_former_price_counts(desk: ChangeDesk) -> None:
    await desk.stores("1", tz="Europe/Berlin", prices={"P1": 100})
    await desk.approved({"1": {"P1": 90, "P2": 5}}, day=date(2026, 3, 28), until_day=date(2026, 3, 30))
    desk.clock.set(utc("2026-03-29T21:59:59"))
    assert await desk.shown() == {"P1": 90, "P2": 5}
    desk.clock.set(utc("2026-03-29T22:00"))
    assert await desk.shown() == {"P1": 100}
    await desk.settle("1")
    assert await desk.shown() == {"P1": 100}


async def test_a_product_without_an_amount_has_no_price_from_then_on(desk: ChangeDesk) -> None:
    await desk.stores("1", prices={"P1": 100, "P2": 200})
    await desk.approved({"1": {"P1": None}}, at=APRIL)
    desk.clock.set(APRIL)
    assert await desk.shown() == {"P2": 200}


async def test_a_late_set_counts_a_minute_from_its_sealing_and_the_audit_has_its_date(desk: ChangeDesk) -> None:
    await desk.stores("1", prices={"P1": 100})
    found = await desk.submitted({"1": {"P1": 90}}, at=APRIL)
    desk.clock.set(APRIL + DAY)
    found = await desk.carried((await desk.approve(found.id)).id)
    assert found.first_at == APRIL + DAY + desk.timing.buffer
    assert found.at == (await desk.in_store(found.id)).wanted_at == APRIL
    (price,) = (await desk.book.audit.prices_of(APPROVER, "1", 2, PageArgs())).nodes
    assert price.from_at == APRIL
    desk.pass_(desk.timing.buffer - timedelta(milliseconds=1))
    assert await desk.shown() == {"P1": 100}
    desk.pass_(timedelta(milliseconds=1))
    assert await desk.shown() == {"P1": 90}


async def test_a_set_that_was_staged_in_time_and_is_sealed_too_late_counts_a_minute_later(desk: ChangeDesk) -> None:
    await desk.stores("1", prices={"P1": 100})
    found = await desk.approving({"1": {"P1": 90}}, at=APRIL)

    async def at_point(name: str) -> None:
        if name == "change_set.all_staged":
            desk.clock.set(APRIL - timedelta(seconds=1))

    await ChangeSets(desk.book.t, desk.book.db, desk.book.switch, at_point=at_point).carry_on(found.id)
    assert (await desk.get(found.id)).first_at == APRIL - timedelta(seconds=1) + desk.timing.buffer


async def test_the_price_before_and_the_one_after_are_audited_before_anything_counts(desk: ChangeDesk) -> None:
    await desk.stores("1", prices={"P1": 100, "P2": 200})
    await desk.approved({"1": {"P1": 150}}, at=APRIL)
    await desk.approved({"1": {"P1": 90, "P2": None, "P3": 5}}, at=APRIL + DAY, reason="spring")
    prices = (await desk.book.audit.prices_of(APPROVER, "1", 3, PageArgs())).nodes
    assert [(each.product, each.before(), each.after()) for each in prices] == [
        ("P1", Money(150, "EUR"), Money(90, "EUR")),
        ("P2", Money(200, "EUR"), None),
        ("P3", None, Money(5, "EUR")),
    ]
    assert {(each.actor, each.reason) for each in prices} == {("anna", "spring")}


async def test_a_reduced_price_shows_the_lowest_one_of_thirty_days(desk: ChangeDesk) -> None:
    await desk.stores("1", prices={f"P{n}": 100 for n in range(6)})
    for minor in (80, 120):
        await desk.carried((await desk.change_now({"1": {f"P{n}": minor for n in range(6)}})).id)
        desk.pass_(5 * DAY)
        await desk.settle("1")
    await desk.approved({"1": {**{f"P{n}": 110 for n in range(5)}, "P5": 130}}, at=APRIL)
    desk.clock.set(APRIL)
    nodes = (await desk.book.prices.of_store("1", page=PageArgs())).nodes
    assert [node.lowest_30_days for node in nodes] == [Money(80, "EUR")] * 5 + [None]


async def test_a_conflict_names_the_other_change_set_on_approval_on_edit_and_on_approval_again(desk: ChangeDesk) -> None:
    await desk.stores("1", "2", prices={"P1": 100})
    first = await desk.approved({"1": {"P1": 90}, "2": {"P1": 90}}, at=APRIL)
    second = await desk.submitted({"2": {"P1": 80, "P2": 80}}, at=APRIL)
    with pytest.raises(
        PriceConflict, match=rf"P1 in store 2 is in change set '.+' \({first.id}\), too, at the same instant"
    ) as refused:
        await desk.approve(second.id)
    assert (refused.value.change_set, refused.value.store) == (first.id, "2")
    third = await desk.draft({"1": {"P1": 70}}, at=APRIL + DAY)
    with pytest.raises(PriceConflict, match=first.id):
        await desk.change_sets.edit(EDITOR, third.id, NewChangeSet(title="x", at=APRIL), rev=third.rev)
    await desk.change_sets.unapprove(APPROVER, first.id)
    await desk.carried(first.id)
    await desk.carried((await desk.approve(second.id)).id)
    with pytest.raises(PriceConflict, match=second.id):
        await desk.approve(first.id)
    await desk.change_sets.cancel(APPROVER, second.id)
    await desk.carried(second.id)
    assert (await desk.carried((await desk.approve(first.id)).id)).state == "approved"


async def test_a_conflict_of_many_lines_is_found_while_they_are_staged(desk: ChangeDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    await desk.stores("1")
    many = {f"P{n:04}": 90 for n in range(CHECKED_AT_ONCE + 1_000)}
    first = await desk.approved({"1": {"P2999": 80}}, at=APRIL)
    second = await desk.submitted({"1": many}, at=APRIL)
    get_many, rows = OpenTable.get_many, list[int]()

    async def counting(self: OpenTable, ids: Any, **options: Any) -> Any:
        rows.append(len(ids))
        return await get_many(self, ids, **options)

    with monkeypatch.context() as patch:
        patch.setattr(OpenTable, "get_many", counting)
        await desk.approve(second.id)
    assert sum(rows) <= LOOKED_AT + 500
    found = await desk.carried(second.id)
    assert found.state == "submitted"
    assert f"is in change set {first.id}, too" in str(found.refused)


async def test_other_products_channels_and_instants_are_no_conflict(desk: ChangeDesk) -> None:
    await desk.stores("1")
    await desk.approved({"1": {"P1": 90}}, at=APRIL)
    await desk.approved({"1": {"P2": 90}}, at=APRIL)
    await desk.approved({"1": {"P1": 80}}, at=APRIL + DAY)
    made = await desk.change_sets.create(EDITOR, NewChangeSet(title="web", at=APRIL))
    await desk.change_sets.put_lines(EDITOR, made.id, lines_of({"1": {"P1": 70}}, "WEB"))
    await desk.change_sets.submit(EDITOR, made.id)
    assert (await desk.carried((await desk.approve(made.id)).id)).state == "approved"
    desk.clock.set(APRIL)
    assert (await desk.shown(), await desk.shown(channel="WEB")) == ({"P1": 90, "P2": 90}, {"P1": 70, "P2": 90})


async def test_two_sets_for_one_price_that_are_approved_at_once_are_not_both_approved(desk: ChangeDesk) -> None:
    await desk.stores("1", "2", prices={"P1": 100})
    first = await desk.approving({"1": {"P1": 90}, "2": {"P1": 90}}, at=APRIL)
    second = await desk.approving({"2": {"P1": 80}, "1": {"P2": 80}}, at=APRIL)
    assert (await desk.carried(first.id)).state == "approved"
    found = await desk.carried(second.id)
    assert found.state == "submitted"
    assert f"is in change set {first.id}, too" in str(found.refused)
    assert await desk.actions(second.id) == ["create", "put_lines", "submit", "approve", "refuse", "withdrawn"]
    assert (await desk.editions("1"))[3].to_at is not MISSING
    desk.clock.set(APRIL)
    assert await desk.shown("1") == {"P1": 90}


async def test_two_sets_without_a_date_that_meet_in_one_millisecond_are_both_approved(desk: ChangeDesk) -> None:
    await desk.stores("1", prices={"P1": 100})
    first, second = [await desk.change_now({"1": {"P1": minor}}) for minor in (90, 80)]
    assert (await desk.carried(first.id)).state == "approved"
    assert (await desk.carried(second.id)).state == "approved"
    desk.pass_()
    assert await desk.shown() == {"P1": 80}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (lines_of({"1": {"P1": -1}}), "would be -0.01 EUR: a price is not negative"),
        (
            [Line(PriceKey("1", "ALL", "Base", "P1"), Money(90, "USD"))],
            "is 1.00 EUR and would be 0.90 USD: use the same currency",
        ),
        (lines_of({"nowhere": {"P1": 1}}), "there is no store nowhere"),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
async def test_what_cannot_be_approved_is_refused_and_leaves_nothing(
    desk: ChangeDesk, lines: list[Line], message: str, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.stores("1", "2", prices={"P1": 100})
    made = await desk.change_sets.create(EDITOR, NewChangeSet(title="wrong", at=APRIL))
    await desk.change_sets.put_lines(EDITOR, made.id, [*lines, *lines_of({"2": {"P1": 90}})])
    await desk.change_sets.submit(EDITOR, made.id)
    if at_once:
        with pytest.raises(NotAllowed, match=message):
            await desk.approve(made.id)
        assert await desk.editions("2") == {}
        return
    monkeypatch.setattr("pricebook.change_sets.change_sets.CHECKED_AT_ONCE", 0)  # as for a large set
    found = await desk.carried((await desk.approve(made.id)).id)
    assert found.state == "submitted"
    assert found.refused is not MISSING
    desk.clock.set(APRIL + DAY)
    await desk.settle("1", "2")
    assert [await desk.shown(store) for store in "12"] == [{"P1": 100}] * 2


async def test_an_end_before_the_beginning_is_refused(desk: ChangeDesk) -> None:
    await desk.stores("1")
    with pytest.raises(InvalidField, match="until_at: is not after the beginning"):
        await desk.draft({}, at=APRIL, until_at=APRIL)
    found = await desk.submitted({"1": {"P1": 1}}, until_at=APRIL)
    desk.clock.set(APRIL)
    with pytest.raises(NotAllowed, match="these prices would end before they count: choose a later end"):
        await desk.approve(found.id)


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ({"title": " "}, "title: is empty"),
        ({"title": "x" * 201}, "title: has 201 characters"),
        ({"title": "x", "at": APRIL, "day": APRIL.date()}, "day: cannot go with at"),
        ({"title": "x", "until_at": APRIL, "until_day": APRIL.date()}, "until_day: cannot go with until_at"),
        ({"title": "x", "at": datetime(2026, 4, 1)}, "at: has no time zone"),
        ({"title": "x", "day": date(1, 1, 1)}, "day: is in the year 1: choose one from 2000 to 2199"),
        ({"title": "x", "until_at": datetime.max.replace(tzinfo=UTC)}, "until_at: is in the year 9999"),
    ],
)
async def test_a_change_set_that_says_too_little_or_too_much_is_refused(
    desk: ChangeDesk, new: dict[str, Any], message: str
) -> None:
    with pytest.raises((InvalidField, InvalidInput), match=message):
        await desk.change_sets.create(EDITOR, NewChangeSet(**new))


async def test_a_reason_is_no_longer_than_what_is_kept_with_each_price(desk: ChangeDesk) -> None:
    await desk.stores("1", prices={"P1": 100})
    found = await desk.submitted({"1": {"P1": 90}})
    too_long = "x" * 2_001
    with pytest.raises(InvalidField, match="reason: has 2,001 characters: use at most 2,000"):
        await desk.approve(found.id, reason=too_long)
    with pytest.raises(InvalidField, match="reason: has 2,001"):
        await desk.change_sets.cancel(APPROVER, found.id, reason=too_long)
    assert await desk.get(found.id) == found


async def test_whoever_has_submitted_a_set_does_not_approve_it(desk: ChangeDesk) -> None:
    await desk.stores("1")
    draft = await desk.draft({"1": {"P1": 1}}, caller=APPROVER)
    found = await desk.change_sets.submit(APPROVER, draft.id)
    with pytest.raises(NotAllowed, match=r"you have submitted .* somebody else approves it"):
        await desk.approve(found.id)
    relaxed = ChangeSets(desk.book.t, desk.book.db, desk.book.switch, four_eyes=False)
    assert (await relaxed.approve(APPROVER, found.id, rev=found.rev)).state == "approving"


async def test_a_revision_that_was_not_looked_at_is_not_approved(desk: ChangeDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    await desk.stores("1", prices={"P1": 100})
    found = await desk.submitted({"1": {"P1": 90}}, at=APRIL)
    check = Conflicts.check

    async def slowly(self: Conflicts, checked: ChangeSet) -> None:
        await check(self, checked)
        if checked.state == "submitted":
            await desk.change_sets.send_back(APPROVER, found.id)
            await desk.change_sets.put_lines(APPROVER, found.id, lines_of({"1": {"P1": 1}}))
            await desk.change_sets.submit(APPROVER, found.id)

    monkeypatch.setattr(Conflicts, "check", slowly)
    with pytest.raises(HasChanged):
        await desk.change_sets.approve(APPROVER, found.id, rev=found.rev + 3)  # anna guesses the one that she submits herself


async def test_an_emergency_needs_both_roles_and_a_reason_and_is_audited_as_one(desk: ChangeDesk) -> None:
    await desk.stores("1", prices={"P1": 100})
    lines = lines_of({"1": {"P1": 1}})
    with pytest.raises(LacksRole, match="approve"):
        await desk.change_sets.change_now(EDITOR, lines, title="x", reason="y")
    with pytest.raises(LacksRole, match="edit"):
        await desk.change_sets.change_now(Caller("al", frozenset(["approve"])), lines, title="x", reason="y")
    with pytest.raises(InvalidField, match="reason: is empty: say why nobody else approves it"):
        await desk.change_sets.change_now(APPROVER, lines, title="x", reason=" ")
    found = await desk.carried((await desk.change_now({"1": {"P1": 1}})).id)
    desk.pass_()
    assert await desk.shown() == {"P1": 1}
    entry = (await desk.history(found.id))[3]
    assert (entry.action, entry.actor, entry.reason) == ("approve_now", "anna", "the prices were wrong")
    assert (await desk.history_of_store())[-1].reason == "the prices were wrong"


async def test_an_emergency_in_a_foreign_store_changes_nothing(desk: ChangeDesk) -> None:
    await desk.stores("1", "2")
    with pytest.raises(Exception, match="there is no such store"):
        await desk.change_sets.change_now(only_of("2"), lines_of({"2": {"P1": 1}, "1": {"P1": 1}}), title="x", reason="y")
    assert await desk.editions("2") == {}
