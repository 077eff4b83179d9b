"""Uploads on the pages: a file from the script, lines that are pasted, and what was wrong with them."""

from __future__ import annotations

from price_site import PageAnswer, PageReader, PriceSite

LINES = "store,product,amount,currency\n1,TEA,1.20,EUR\n1,TEA,1.30,EUR\n99,TEA,1.20,EUR\n1,MILK,0.95,EUR\n"
OPTIONS = {"title": "New prices", "begins": "day", "day": "2026-03-06", "currency": "EUR", "format": "csv"}


async def send_file(reader: PageReader, body: str, token: str | None = None, query: str = "format=csv&begins=now") -> PageAnswer:
    """Send a file as the script of the page does."""
    form_token = await reader.form_token() if token is None else token
    headers = {"content-type": "application/octet-stream", "x-form-token": form_token, "accept": "application/json"}
    return await reader.ask("POST", f"/uploads/file?{query}", headers, body.encode())


async def test_pasted_lines_become_a_change_set_and_wrong_ones_say_why(site: PriceSite) -> None:
    ada = await site.a_reader()
    await site.book.a_store("1", {"TEA": 100, "MILK": 100})
    path = (await ada.post("/uploads/pasted", OPTIONS | {"text": LINES})).location.partition("?")[0]
    waiting = await ada.get(path)
    assert "being checked" in waiting.text
    assert "data-follow" in waiting.source
    await site.work()
    done = await ada.get(path)
    assert "data-follow" not in done.source
    assert "Changes 1" in done.text
    assert "Refused lines 3" in done.text
    assert "line 3" in done.row("2 ")
    assert "99" in done.row("no store")
    change = done.source.partition('href="/change-sets/')[2].partition('"')[0]
    page = await ada.get(f"/change-sets/{change}")
    assert "New prices" in page.text
    assert page.row("MILK") == "MILK 1 ALL Base €0.95"
    assert "3" in (await ada.get("/uploads")).row("New prices")


async def test_a_file_is_taken_from_the_script_with_the_token_of_the_page(site: PriceSite) -> None:
    ada = await site.a_reader()
    await site.book.a_store("1", {"TEA": 100})
    answer = await send_file(ada, LINES, query="format=csv&begins=instant&at=2026-03-06T09:00&dry_run=yes&title=Checked")
    assert answer.status == 201
    await site.work()
    page = await ada.get(answer.source.partition('"location":"')[2].partition('"')[0])
    assert "The file is here." in page.text
    assert "It is only checked." in page.text
    assert "Open the change set" not in page.text
    assert (await ada.get("/change-sets")).text.count("Checked") == 0


async def test_a_file_without_the_token_of_the_page_is_refused(site: PriceSite) -> None:
    ada, eve = await site.a_reader(), await site.a_reader("eve")
    for token in ("", "made-up", await eve.form_token()):
        assert (await send_file(ada, LINES, token)).status == 403
    assert "No files" in (await ada.get("/")).text


async def test_readers_upload_nothing(site: PriceSite) -> None:
    rea = await site.a_reader("rea", "read")
    assert (await send_file(rea, LINES)).status == 403


async def test_a_form_that_is_wrong_says_why_and_keeps_what_was_pasted(site: PriceSite) -> None:
    ada = await site.a_reader()
    for fields, error in (
        ({"text": " "}, "Is empty: paste lines, the names of the columns first."),
        ({"begins": "instant", "at": "soon"}, "Choose a day and a time, such as 2026-12-01T09:00."),
        ({"format": "pdf"}, "Choose CSV or NDJSON."),
        ({"currency": "e"}, "'E' is not a currency code: use three capital letters, such as EUR."),
    ):
        page = await ada.post("/uploads/pasted", OPTIONS | {"text": LINES} | fields)
        assert (page.status, page.errors) == (422, [error])
        assert "New prices" in page.source
        assert fields.get("text") or "99,TEA,1.20,EUR" in page.source


async def test_an_upload_is_cancelled(site: PriceSite) -> None:
    ada = await site.a_reader()
    await site.book.a_store("1", {"TEA": 100})
    path = (await ada.post("/uploads/pasted", OPTIONS | {"text": LINES})).location.partition("?")[0]
    assert (await ada.post(f"{path}/cancel")).location == f"{path}?notice=upload-cancelled"
    page = await ada.get(path)
    assert "cancelled" in page.text
    assert "Cancel it" not in page.buttons
