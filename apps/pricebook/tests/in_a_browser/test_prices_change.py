"""What people do with prices in a real browser: from a draft to the price that counts, and from a file to a change set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from browser.visitor import DESK

from price_browsing import Served, Visit

HOUR = timedelta(hours=1)


async def test_a_change_is_made_by_one_person_approved_by_another_and_counts_at_its_instant(served: Served, visit: Visit) -> None:
    site = served.site
    await site.a_person("mara", "read", "edit")
    await site.a_person("tom", "read", "approve", zone="Asia/Tokyo")
    for store in ("10", "11"):
        await site.book.a_store(store, {"TEA": 249, "MILK": 99}, tz="Europe/Berlin")

    mara = await visit("mara", size=DESK)
    await mara.go("Changes")
    await mara.follow("New change set")
    await mara.fill(title="Tea is dearer", reason="The harvest was poor.", day="2026-03-29")
    await mara.press("Create the draft")
    await mara.sees("The draft is created.")
    await mara.fill(in_stores="1*", products="TEA", amount="2,99")
    await mara.press("Add to the draft")
    await mara.fill(in_stores="10", products="MILK", amount="0.89")
    await mara.press("Add to the draft")
    await mara.page.get_by_label("Choose MILK in store 10, ALL").check()
    await mara.press("Remove the chosen prices")
    assert await mara.page.locator("table.lines tbody tr").count() == 2
    await mara.press("Submit for approval")
    await mara.sees("waits for approval")

    tom = await visit("tom", size=DESK)
    await tom.follow("Tea is dearer", tom.page.get_by_role("region", name="Waiting for approval"))
    await tom.sees("no errors")
    await tom.sees("+20%")
    await tom.press("Approve", agree=False)
    await tom.press("Approve", agree=True)
    assert tom.questions[-1] == "Approve this change set? 2 prices in 2 stores will change."
    await site.work()
    await tom.sees("Settled: 0 of 2 stores")  # the page has followed it

    await tom.open("/stores/10")
    await tom.sees("Tea is dearer")
    assert "€2.49" in await tom.row("TEA", "all channels").inner_text()
    await site.until(datetime(2026, 3, 28, 22, 59, 59, tzinfo=UTC))  # a second before midnight in Berlin
    await tom.reload()
    assert "€2.49" in await tom.row("TEA", "all channels").inner_text()
    await site.until(datetime(2026, 3, 28, 23, 0, tzinfo=UTC))
    await tom.reload()
    assert "€2.99" in await tom.row("TEA", "all channels").inner_text()
    await site.until(site.book.now() + HOUR)

    await tom.open("/audit?store=10")
    await tom.sees("counts from")


async def test_a_store_is_looked_at_on_both_clocks_and_any_products_are_drawn(served: Served, visit: Visit) -> None:
    site = served.site
    await site.book.a_store("10", {f"TEA{n}": 100 + n for n in range(8)}, tz="America/New_York")
    await site.book.change({"TEA3": 150}, store="10", at=datetime(2026, 3, 29, 4, tzinfo=UTC))
    ada = await visit(size=DESK)
    await ada.go("Stores")
    await ada.page.get_by_label("Store", exact=True).fill("1")
    await ada.press("Search")
    await ada.follow("10")
    await ada.sees("Sun 29 Mar, 00:00")
    await ada.follow("My clock")
    await ada.sees("Sun 29 Mar, 06:00")
    await ada.sees("that day has 23 hours")
    drawn = ada.page.locator("svg.is-wide .lane-name")
    assert await drawn.all_text_contents() == ["TEA3"]
    await ada.page.get_by_label("Draw TEA1").check()
    await ada.press("Draw the selected products")
    assert await drawn.all_text_contents() == ["TEA1", "TEA3"]
    await ada.follow("14 days")
    assert "range=14d" in ada.path
    assert await drawn.all_text_contents() == ["TEA1", "TEA3"]


async def test_prices_switch_before_the_eyes_of_whoever_looks(served: Served, visit: Visit) -> None:
    site = served.site
    await site.book.a_store("10", {"TEA": 249, "MILK": 99})
    await site.book.change({"TEA": 299}, store="10", at=site.book.now() + timedelta(seconds=5))
    ada = await visit(size=DESK)
    await ada.page.clock.install()
    await ada.open("/stores/10")
    assert "€2.49" in await ada.row("TEA", "all channels").inner_text()
    await ada.page.get_by_label("Draw MILK").check()
    await ada.page.get_by_role("heading", name="Store 10").click()  # the focus goes elsewhere
    site.book.pass_(timedelta(seconds=6))
    await ada.page.clock.run_for(6_000)
    await ada.row("TEA", "€2.99", "all channels").wait_for()
    assert await ada.page.get_by_label("Draw MILK").is_checked()
    await ada.look()


async def test_a_file_is_uploaded_with_progress_and_its_failures_are_shown_by_line(served: Served, visit: Visit) -> None:
    site = served.site
    await site.book.a_store("10", {"TEA": 249, "MILK": 99})
    lines = ["store,product,amount,currency", "10,TEA,2.99,EUR", "10,MILK,cheap,EUR", "77,TEA,1.00,EUR"]
    content = "\n".join(lines).encode()
    file = {"name": "march.csv", "mimeType": "text/csv", "buffer": content}
    ada = await visit(size=DESK)
    await ada.go("Uploads")
    ada.refusals.add(403)
    await ada.page.get_by_role("button", name="Upload", exact=True).click()
    await ada.sees("Choose a file first.")
    await ada.page.set_input_files("#file", file)  # type: ignore[arg-type]  # a payload
    await ada.sees(f"march.csv, {len(content)} bytes")
    assert await ada.page.locator("[name=title]").input_value() == "march"
    await ada.press("Upload")
    await ada.sees("being checked")
    await site.work()
    await ada.page.locator("main .state", has_text="done").wait_for()
    assert "'cheap' is not an amount" in await ada.row("3").inner_text()
    assert "77" in await ada.row("4").inner_text()
    await ada.follow("Open the change set")
    assert "€2.99" in await ada.row("TEA").inner_text()


async def test_what_the_server_refuses_of_an_upload_is_said_on_the_page(served: Served, visit: Visit) -> None:
    ada = await visit(size=DESK)
    await ada.open("/uploads")
    ada.refusals.add(422)
    await ada.page.set_input_files("#file", {"name": "x.csv", "mimeType": "text/csv", "buffer": b"x"})
    await ada.fill(currency="E")
    await ada.page.get_by_role("button", name="Upload", exact=True).click()
    await ada.sees("is not a currency code")
    await ada.look()


async def test_all_of_it_works_without_javascript(served: Served, visit: Visit) -> None:
    site = served.site
    await site.book.a_store("10", {"TEA": 249})
    change = await site.a_submitted_change({"TEA": 299}, stores=("10",), title="Tea is dearer")
    ada = await visit(scripts=False)
    await ada.open(f"/change-sets/{change.id}")
    await ada.press("Approve")
    await ada.sees("Approved. It is carried out store by store")
    await ada.open("/uploads")
    await ada.fill(text="store,product,amount,currency\n10,TEA,3.99,EUR")
    await ada.press("Upload")
    await ada.sees("The file is here.")
    await ada.open("/new-change-set")
    await ada.fill(title="Milk", at="2026-03-28T10:00")
    await ada.press("Create the draft")
    await ada.sees("Milk")
