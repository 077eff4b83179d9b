"""Who sees what on the pages: sign-in, roles, and forms that only our own pages send."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from price_site import EDI, PageReader, PriceSite

PAGES = ("/", "/stores", "/stores/1", "/products", "/products/TEA", "/change-sets", "/new-change-set", "/uploads", "/audit")
FORMS = (
    "/new-change-set", "/change-sets/x/edit", "/change-sets/x/lines", "/change-sets/x/remove-lines", "/change-sets/x/approve",
    "/uploads/pasted", "/uploads/file", "/uploads/x/cancel",
)  # fmt: skip


@pytest.mark.parametrize("path", PAGES)
async def test_nobody_is_sent_to_sign_in_and_comes_back_there(site: PriceSite, path: str) -> None:
    answer = await PageReader(site.app.asgi).get(path)
    assert answer.location == ("/sign-in?next=%2F" if path == "/" else f"/sign-in?next={path.replace('/', '%2F')}")


async def test_a_link_signs_in_once_and_leads_on_within_this_site(site: PriceSite) -> None:
    await site.a_person()
    await site.book.a_store("1")
    code, nobody = await site.app.web.links.create("ada"), PageReader(site.app.asgi)
    page = await nobody.get(f"/sign-in/{code}")
    assert "Welcome, Ada." in page.text
    token = await nobody.form_token(f"/sign-in/{code}")
    answer = await nobody.post(f"/sign-in/{code}", {"next": "https://elsewhere.example.com/"}, token=token)
    assert answer.location == "/?notice=in"
    ada = PageReader(site.app.asgi, answer.headers["set-cookie"].partition(";")[0])
    assert (await ada.get("/stores/1")).status == 200
    assert (await nobody.get(f"/sign-in/{code}")).status == 404
    assert (await ada.post("/sign-out")).location == "/sign-in?notice=out"
    assert (await ada.get("/stores/1")).status == 303


async def test_a_link_that_is_too_old_or_made_up_signs_nobody_in(site: PriceSite) -> None:
    await site.a_person()
    code, nobody = await site.app.web.links.create("ada"), PageReader(site.app.asgi)
    token = await nobody.form_token(f"/sign-in/{code}")
    site.book.pass_(timedelta(days=2))
    for each in (code, "made-up"):
        assert (await nobody.post(f"/sign-in/{each}", token=token)).status == 404


@pytest.mark.parametrize("path", FORMS)
async def test_forms_of_other_sites_change_nothing(site: PriceSite, path: str) -> None:
    ada, eve = await site.a_reader(), await site.a_reader("eve")
    for token in ("", "made-up", await eve.form_token()):
        assert (await ada.post(path, {"title": "x"}, token=token)).status == 403
    assert "No change sets" in (await ada.get("/change-sets")).text


async def test_tokens_of_programs_are_not_for_pages(site: PriceSite) -> None:
    _, token = await site.app.tokens.issue("a till", ["read"])
    answer = await PageReader(site.app.asgi).get("/stores", authorization=f"Bearer {token}")
    assert answer.status == 403
    assert "sign in to use the pages" in answer.text


async def test_people_see_no_buttons_that_they_may_not_use_and_their_forms_are_refused(site: PriceSite) -> None:
    rea = await site.a_reader("rea", "read")
    await site.book.a_store("1", {"TEA": 100})
    draft = await site.a_change({"TEA": 110}, day=date(2026, 3, 6))
    submitted = await site.a_submitted_change({"TEA": 120}, day=date(2026, 3, 6))
    approved = await site.an_approved_change({"TEA": 130}, day=date(2026, 3, 7))
    for change in (draft, submitted, approved):
        assert (await rea.get(f"/change-sets/{change.id}")).buttons == set()
    assert "New change set" not in (await rea.get("/change-sets")).text
    assert "Upload prices" not in (await rea.get("/uploads")).text
    assert (await rea.get("/new-change-set")).status == 403
    rev = {"rev": str(submitted.rev)}
    for decision in ("approve", "send-back", "cancel"):
        answer = await rea.post(f"/change-sets/{submitted.id}/{decision}", rev)
        assert answer.status == 403, decision
    fields = {"rev": str(draft.rev), "title": "x", "begins": "now", "ends": "never", "text": "store,product,amount"}
    of_draft = [f"/change-sets/{draft.id}/{name}" for name in ("lines", "remove-lines", "submit", "edit", "cancel")]
    for path in (*of_draft, "/new-change-set", "/uploads/pasted"):
        assert (await rea.post(path, fields)).status == 403, path
    assert (await site.opened.change_sets.get(EDI, draft.id)).rev == draft.rev


async def test_editors_do_not_approve_and_approvers_do_not_edit(site: PriceSite) -> None:
    ed, april = await site.a_reader("ed", "read", "edit"), await site.a_reader("april", "read", "approve")
    await site.book.a_store("1", {"TEA": 100})
    draft = await site.a_change({"TEA": 110}, day=date(2026, 3, 6))
    submitted = await site.a_submitted_change({"TEA": 120}, day=date(2026, 3, 6))
    assert (await ed.get(f"/change-sets/{draft.id}")).buttons >= {"Submit for approval", "Add to the draft"}
    assert (await ed.get(f"/change-sets/{submitted.id}")).buttons == {"Cancel it"}
    assert (await april.get(f"/change-sets/{draft.id}")).buttons == set()
    assert (await april.get(f"/change-sets/{submitted.id}")).buttons == {"Approve", "Send back"}


async def test_change_sets_of_other_stores_do_not_exist(site: PriceSite) -> None:
    rea = await site.a_reader("rea", stores=("2",))
    await site.book.a_store("1", {"TEA": 100})
    change = await site.an_approved_change({"TEA": 120}, title="Not for Rea", day=date(2026, 3, 6))
    for path in (f"/change-sets/{change.id}", f"/audit?change_set={change.id}", "/audit?store=1", "/audit/1/1", "/stores/1"):
        assert (await rea.get(path)).status == 404, path
    for path in ("/", "/change-sets", "/audit"):
        assert "Not for Rea" not in (await rea.get(path)).text, path


async def test_pages_that_are_not_there_say_so(site: PriceSite) -> None:
    ada = await site.a_reader()
    for path in ("/nothing", "/change-sets/nothing", "/uploads/nothing", "/change-sets/x/nothing/more"):
        page = await ada.get(path)
        assert page.status == 404
        assert "Not found" in page.text


async def test_cursors_of_other_lists_are_refused(site: PriceSite) -> None:
    ada = await site.a_reader()
    await site.book.a_store("1", {"TEA": 100})
    for path in ("/stores?after=made-up", "/stores/1?before=made-up", "/audit?after=made-up"):
        assert (await ada.get(path)).status == 422, path
