"""The pages of change sets: a draft, its report, and what people decide about it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from price_site import EDI, PageAnswer, PageReader, PriceSite
from pricebook.change_sets import Line
from pricebook.model import PriceKey
from pricebook.money import Money
from pricebook.pages import change_set_list, change_set_view

FIFTH = datetime(2026, 3, 5, tzinfo=UTC)
DRAFT = {"title": "Spring sale", "begins": "day", "day": "2026-03-06", "ends": "never"}
LINE = {"in_stores": "1", "products": "TEA", "channel": "ALL", "type": "Base", "amount": "1.20", "currency": "EUR"}


async def a_draft(ada: PageReader, **fields: str) -> str:
    """Create a draft by its form. Returns its path."""
    return (await ada.post("/new-change-set", DRAFT | fields)).location.partition("?")[0]


async def decide(reader: PageReader, path: str, decision: str, **fields: str) -> PageAnswer:
    """Press a button of the page of a change set, with the revision that it shows."""
    rev = (await reader.get(path)).source.partition('name="rev" value="')[2].partition('"')[0]
    return await reader.post(f"{path}/{decision}", {"rev": rev} | fields)


async def test_a_draft_is_created_and_says_when_it_counts(site: PriceSite) -> None:
    ada = await site.a_reader()
    page = await ada.get(await a_draft(ada, reason="It is spring."))
    assert "Spring sale" in page.text
    assert "It is spring." in page.text
    assert "Fri 6 Mar midnight in each store" in page.text
    at = await ada.get(await a_draft(ada, begins="instant", at="2026-03-06T09:00", ends="instant", until_at="2026-03-07T09:00"))
    assert "Fri 6 Mar, 09:00 until Sat 7 Mar, 09:00" in at.text  # in Berlin, where the reader is
    assert "as soon as it is approved" in (await ada.get(await a_draft(ada, begins="now"))).text


async def test_a_form_that_is_wrong_says_why_and_keeps_what_was_typed(site: PriceSite) -> None:
    ada = await site.a_reader()
    for fields, error in (
        ({"title": " "}, "Is empty: write what is changed."),
        ({"day": "soon"}, "Choose a day, such as 2026-12-01."),
        ({"begins": "instant", "at": "then"}, "Choose a day and a time, such as 2026-12-01T09:00."),
        ({"ends": "day", "until_day": "2026-03-05"}, "Is not after the beginning: choose a later end."),
    ):
        page = await ada.post("/new-change-set", DRAFT | {"reason": "Kept."} | fields)
        assert (page.status, page.errors) == (422, [error])
        assert "Kept." in page.source
    assert "No change sets" in (await ada.get("/change-sets")).text


async def test_a_draft_is_edited_unless_somebody_else_was_first(site: PriceSite) -> None:
    ada = await site.a_reader()
    path = await a_draft(ada)
    assert 'value="Spring sale"' in (await ada.get(f"{path}/edit")).source
    answer = await ada.post(f"{path}/edit", DRAFT | {"title": "Summer sale", "rev": "1"})
    assert "notice=saved" in answer.location
    stale = await ada.post(f"{path}/edit", DRAFT | {"title": "Autumn sale", "rev": "1"})
    assert stale.status == 422
    assert "Somebody else has changed" in stale.errors[0]
    assert "Summer sale" in (await ada.get(path)).text


async def test_prices_are_added_to_several_stores_at_once_and_removed(site: PriceSite) -> None:
    ada = await site.a_reader()
    for store in ("10", "11", "30"):
        await site.book.a_store(store, {"TEA": 100})
    path = await a_draft(ada)
    await ada.post(f"{path}/lines", LINE | {"in_stores": "1*, 30", "products": "TEA MILK"})
    page = await ada.get(path)
    assert page.row("TEA", "30") == "TEA 30 ALL Base €1.20"
    assert page.source.count('name="key"') == 6
    key = '["30","ALL","Base","TEA",null]'
    answer = await ada.post(f"{path}/remove-lines", [("key", key), ("key", key.replace("30", "10"))])
    assert answer.location == f"{path}?notice=removed#lines"
    assert (await ada.get(path)).source.count('name="key"') == 4


async def test_a_line_that_is_wrong_says_why_at_its_field(site: PriceSite) -> None:
    ada = await site.a_reader()
    await site.book.a_store("1", {"TEA": 100})
    path = await a_draft(ada)
    for fields, error in (
        ({"in_stores": ""}, "Is empty: name a store, or * for all."),
        ({"in_stores": "9*"}, "No store begins with '9': check the list of stores."),
        ({"products": " , "}, "Is empty: name a product, such as PROD0003."),
        ({"amount": "cheap"}, "'cheap' is not an amount: write it with a point, such as 19.99."),
        ({"amount": "1.999"}, "'1.999' has more digits after the point than EUR: round it."),
        ({"currency": "euro"}, "'EURO' is not a currency code: use three capital letters, such as EUR."),
        ({"type": "Swap"}, "Is missing: prices of type Swap have one."),
    ):
        page = await ada.post(f"{path}/lines", LINE | fields)
        assert (page.status, page.errors) == (422, [error]), fields
    broken = await ada.post(f"{path}/remove-lines", {"key": "nonsense"})
    assert broken.status == 422
    assert "No prices yet." in (await ada.get(path)).text


async def test_a_price_may_be_taken_away_and_written_with_a_comma(site: PriceSite) -> None:
    ada = await site.a_reader()
    await site.book.a_store("1", {"TEA": 100})
    path = await a_draft(ada)
    await ada.post(f"{path}/lines", LINE | {"amount": ""})
    assert "no price" in (await ada.get(path)).row("TEA")
    await ada.post(f"{path}/lines", LINE | {"amount": "1,25"})
    assert "€1.25" in (await ada.get(path)).row("TEA")


async def test_the_report_says_what_would_happen(site: PriceSite) -> None:
    ada = await site.a_reader()
    await site.book.a_store("1", {"TEA": 100, "MILK": 100, "JAM": 100, "RICE": 100})
    change = await site.a_submitted_change({"TEA": 30, "MILK": 105, "JAM": 100, "RICE": None, "NEW": 5}, day=date(2026, 3, 6))
    page = await ada.get(f"/change-sets/{change.id}")
    assert "1 raised" in page.text
    assert "1 lowered" in page.text
    assert "1 removed" in page.text
    assert "1 added" in page.text
    assert "no errors" in page.text
    assert "1 price changes a lot TEA in store 1: changes by \N{MINUS SIGN}70%" in page.text
    assert "1 product is new in its store" in page.text
    assert "1 price stays as it is" in page.text
    assert page.row("TEA", "−70%") == "TEA 1 €1.00 €0.30 −70%"


async def test_moves_that_are_alike_in_several_stores_are_shown_as_one(site: PriceSite) -> None:
    ada = await site.a_reader()
    for store, tea in (("1", 100), ("2", 200), ("3", 100)):
        await site.book.a_store(store, {"TEA": tea, "MILK": 100})
    change = await site.a_change({"MILK": 150}, stores=("1",), day=date(2026, 3, 6))
    lines = [
        Line(PriceKey(store, "ALL", "Base", "TEA"), Money(minor, "EUR")) for store, minor in (("1", 50), ("2", 100), ("3", 50))
    ]
    await site.opened.change_sets.put_lines(EDI, change.id, lines)
    page = await ada.get(f"/change-sets/{change.id}?report=1")
    assert page.row("−50%") == "TEA 1 and 2 more €1.00 – €2.00 €0.50 – €1.00 −50%"
    assert page.row("+50%") == "MILK 1 €1.00 €1.50 +50%"


async def test_errors_of_the_report_are_shown_first(site: PriceSite) -> None:
    ada = await site.a_reader()
    await site.book.a_store("1", {"TEA": 100})
    other = await site.an_approved_change({"TEA": 110}, title="The first one", day=date(2026, 3, 6))
    change = await site.a_submitted_change({"TEA": 120}, day=date(2026, 3, 6))
    page = await ada.get(f"/change-sets/{change.id}")
    assert "1 error" in page.text
    assert f'href="/change-sets/{other.id}">See the other change set' in page.source
    assert "It cannot be approved as it is" in page.text
    assert "Approve" not in page.buttons
    refused = await decide(ada, f"/change-sets/{change.id}", "approve")
    assert refused.status == 409
    assert f"TEA in store 1 is in change set 'The first one' ({other.id}), too" in refused.text


async def test_a_change_goes_from_a_draft_to_a_price_that_counts(site: PriceSite) -> None:
    edi, april = await site.a_reader("edi", "read", "edit"), await site.a_reader("april", "read", "approve")
    await site.book.a_store("1", {"TEA": 100})
    path = await a_draft(edi, begins="instant", at="2026-03-05T01:00")
    await edi.post(f"{path}/lines", LINE)
    assert "notice=submitted" in (await decide(edi, path, "submit")).location
    assert "Approve" not in (await edi.get(path)).buttons
    waiting = await april.get(path)
    assert "Approve" in waiting.buttons
    assert "waits for approval" in waiting.text
    assert "Waiting for approval 1" in (await april.get("/")).text
    await decide(april, path, "approve")
    assert "data-follow" in (await april.get(path)).source  # the page follows it
    await site.work()
    approved = await april.get(path)
    assert "data-follow" not in approved.source
    assert "Settled: 0 of 1 store" in approved.text
    assert approved.row("1", "sealed").startswith("1 sealed Thu 5 Mar, 01:00")
    assert "€1.00" in (await april.get("/stores/1")).row("TEA", "all channels")
    await site.until(FIFTH + timedelta(minutes=10))
    assert "TEA €1.20" in (await april.get("/stores/1")).row("TEA", "all channels")
    assert "settled" in (await april.get(path)).text


async def test_whoever_has_submitted_a_change_does_not_approve_it(site: PriceSite) -> None:
    edi = await site.a_reader("edi")
    await site.book.a_store("1", {"TEA": 100})
    change = await site.a_submitted_change({"TEA": 120}, day=date(2026, 3, 6))
    page = await edi.get(f"/change-sets/{change.id}")
    assert "Approve" not in page.buttons
    assert "You have submitted this: somebody else approves it." in page.text
    refused = await edi.post(f"/change-sets/{change.id}/approve", {"rev": str(change.rev)})
    assert refused.status == 409
    assert "You have submitted change set" in refused.text


async def test_an_approval_is_refused_if_the_change_is_not_what_was_read(site: PriceSite) -> None:
    ada = await site.a_reader()
    await site.book.a_store("1", {"TEA": 100})
    change = await site.a_submitted_change({"TEA": 120}, day=date(2026, 3, 6))
    page = await ada.post(f"/change-sets/{change.id}/approve", {"rev": str(change.rev - 1)})
    assert page.status == 409
    assert "Somebody else has changed change set" in page.text
    assert (await ada.post(f"/change-sets/{change.id}/approve", {"rev": "x"})).status == 400


async def test_a_change_is_sent_back_or_cancelled_with_a_reason(site: PriceSite) -> None:
    ada = await site.a_reader()
    await site.book.a_store("1", {"TEA": 100})
    change = await site.a_submitted_change({"TEA": 120}, day=date(2026, 3, 6))
    path = f"/change-sets/{change.id}"
    await decide(ada, path, "send-back", reason="Too dear.")
    assert "Submit for approval" in (await ada.get(path)).buttons
    assert "Too dear." in (await ada.get(f"/audit?change_set={change.id}")).text
    await decide(ada, path, "cancel", reason="Never mind.")
    page = await ada.get(path)
    assert "None of its prices counts." in page.text
    assert page.buttons == set()


async def test_an_approval_is_taken_back_before_prices_count(site: PriceSite) -> None:
    ada = await site.a_reader()
    await site.book.a_store("1", {"TEA": 100})
    change = await site.an_approved_change({"TEA": 120}, day=date(2026, 3, 6))
    path = f"/change-sets/{change.id}"
    assert {"Take the approval back", "Roll back", "Cancel it"} <= (await ada.get(path)).buttons
    await decide(ada, path, "unapprove")
    await site.work()
    assert "waits for approval" in (await ada.get(path)).text
    assert "Nothing is going to change" in (await ada.get("/stores/1")).text


async def test_a_settled_change_is_rolled_back_by_another_one(site: PriceSite) -> None:
    ada = await site.a_reader()
    await site.book.a_store("1", {"TEA": 100})
    change = await site.an_approved_change({"TEA": 120}, at=FIFTH)
    await site.until(FIFTH + timedelta(minutes=10))
    path = f"/change-sets/{change.id}"
    assert (await ada.get(path)).buttons == {"Roll back"}
    rollback = (await decide(ada, path, "roll-back", reason="A mistake.")).location.partition("?")[0]
    page = await ada.get(rollback)
    assert f'href="{path}"' in page.source
    assert "It has no prices of its own" in page.text


async def test_change_sets_are_listed_by_what_has_to_be_done(site: PriceSite) -> None:
    ada = await site.a_reader()
    await site.book.a_store("1", {"TEA": 100, "MILK": 100})
    await site.a_change({"TEA": 110}, title="A draft")
    await site.a_submitted_change({"TEA": 120}, title="A submitted one", day=date(2026, 3, 6))
    await site.an_approved_change({"MILK": 120}, title="An approved one", day=date(2026, 3, 7))
    page = await ada.get("/change-sets")
    assert page.text.index("A submitted one") < page.text.index("An approved one") < page.text.index("A draft")
    only = await ada.get("/change-sets?state=draft")
    assert "A draft" in only.text
    assert "A submitted one" not in only.text
    assert "No change sets in this state" in (await ada.get("/change-sets?state=effective")).text


async def test_change_sets_that_are_over_are_listed_by_how_they_ended(site: PriceSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_set_list, "LISTED", 1)
    ada = await site.a_reader()
    await site.book.a_store("1", {"TEA": 100})
    for title in ("The first one", "The last one"):
        change = await site.a_change({"TEA": 110}, title=title)
        site.clock.advance(60)
        await site.opened.change_sets.cancel(EDI, change.id)
    assert "No change sets are open" in (await ada.get("/change-sets")).text
    page = await ada.get("/change-sets?state=cancelled")
    assert page.row("The last one") == "The last one edi Today, 01:01 Today, 01:02"  # nothing of it counts
    assert "The first one" not in page.text
    assert 'href="/change-sets?state=cancelled&amp;after=' in page.source
    following = next(part for part in page.source.split('"') if "after=" in part).replace("&amp;", "&")
    page = await ada.get(following)
    assert "The first one" in page.text
    assert 'href="/change-sets?state=cancelled">First' in page.source
    assert "No change sets in this state" in (await ada.get("/change-sets?state=settled")).text


async def test_a_large_change_set_is_reported_only_when_somebody_asks(site: PriceSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_set_view, "MAX_REPORTED", 0)
    ada = await site.a_reader()
    await site.book.a_store("1", {"TEA": 100})
    change = await site.a_submitted_change({"TEA": 120}, day=date(2026, 3, 6))
    page = await ada.get(f"/change-sets/{change.id}")
    assert "This change set is large." in page.text
    assert "1 raised" not in page.text
    assert "1 raised" in (await ada.get(f"/change-sets/{change.id}?report=1")).text
