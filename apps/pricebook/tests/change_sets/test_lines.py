"""Lines of a draft: any number of them, in pages of all stores or of one, counted when the draft is submitted."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest

from change_desk import APPROVER, EDITOR, READER, ChangeDesk, lines_of, only_of
from pricebook.access.scope import MAX_PREFIXES, may_see_scope, widened
from pricebook.change_sets import line_writer
from pricebook.change_sets.writer import ChangeSetWriter, Write
from pricebook.editions.pages import NodePage, PageArgs
from pricebook.errors import HasChanged, InvalidCursor, InvalidField, NotFound
from pricebook.model import ChangeLine, ChangeSet, PriceKey
from pricebook.model.price import MAX_KEY_BYTES


async def test_a_line_of_the_same_price_replaces_the_former_one(desk: ChangeDesk) -> None:
    draft = await desk.draft({"1": {"P1": 1, "P2": 2}})
    assert await desk.change_sets.put_lines(EDITOR, draft.id, lines_of({"1": {"P2": 3}, "2": {"P1": None}})) == 2
    assert await desk.change_sets.remove_lines(EDITOR, draft.id, [_key("1", "P1"), _key("1", "P9")]) == 1
    assert _shown(await desk.change_sets.lines(READER, draft.id, PageArgs())) == [("1", "P2", 3), ("2", "P1", None)]
    found = await desk.change_sets.submit(EDITOR, draft.id)
    assert (found.stores, found.lines) == (2, 2)
    entries = await desk.history(draft.id)
    assert [(each.action, each.lines) for each in entries[1:4]] == [("put_lines", 2), ("put_lines", 2), ("remove_lines", 1)]


async def test_a_store_without_lines_is_no_longer_one_of_the_set(desk: ChangeDesk) -> None:
    draft = await desk.draft({"1": {"P1": 1}, "2": {"P1": 1}})
    await desk.change_sets.remove_lines(EDITOR, draft.id, [_key("2", "P1")])
    found = await desk.change_sets.submit(EDITOR, draft.id)
    assert (found.stores, found.scope) == (1, {"1"})
    assert [each.store for each in (await desk.change_sets.stores(READER, found.id, PageArgs())).nodes] == ["1"]


async def test_lines_are_not_lost_if_others_take_their_store_out_meanwhile(
    desk: ChangeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = await desk.draft({"2": {"P": 1}})
    first, last = lines_of({"1": {f"P{n:03}": 1 for n in range(line_writer.WRITTEN_AT_A_TIME)}}), lines_of({"1": {"Q": 1}})
    write, writes = ChangeSetWriter.write, itertools.count()

    async def slowly(self: ChangeSetWriter, id: str, given: Write) -> ChangeSet:
        if given.action == "put_lines" and next(writes) == 1:  # others take out what the first batch has brought
            await desk.change_sets.remove_lines(EDITOR, id, [line.key for line in first])
            await desk.change_sets.submit(EDITOR, id)
            await desk.change_sets.send_back(APPROVER, id)
        return await write(self, id, given)

    with monkeypatch.context() as patch:
        patch.setattr(ChangeSetWriter, "write", slowly)
        await desk.change_sets.put_lines(EDITOR, draft.id, iter([*first, *last]))
    found = await desk.change_sets.submit(EDITOR, draft.id)
    assert (found.stores, found.lines) == (2, 2)


async def test_lines_that_come_while_a_set_is_submitted_refuse_that(desk: ChangeDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    draft = await desk.draft({"1": {"P": 1}, "2": {"P": 1}})
    await desk.change_sets.remove_lines(EDITOR, draft.id, [_key("2", "P")])
    count = line_writer.LineWriter.count

    async def slowly(self: line_writer.LineWriter, id: str) -> dict[str, int]:
        counted = await count(self, id)
        await desk.change_sets.put_lines(EDITOR, id, lines_of({"2": {"P": 2}}))
        return counted

    with monkeypatch.context() as patch:
        patch.setattr(line_writer.LineWriter, "count", slowly)
        with pytest.raises(HasChanged):
            await desk.change_sets.submit(EDITOR, draft.id)
    assert (await desk.change_sets.submit(EDITOR, draft.id)).lines == 2


async def test_a_refused_line_of_a_list_refuses_all_of_it(desk: ChangeDesk) -> None:
    mine = only_of("1")
    draft = await desk.draft({}, caller=mine)
    with pytest.raises(NotFound, match="store"):
        await desk.change_sets.put_lines(mine, draft.id, lines_of({"1": {"P1": 1}, "2": {"P1": 1}}))
    assert (await desk.change_sets.lines(mine, draft.id, PageArgs())).nodes == []


async def test_names_that_do_not_fit_wherever_prices_are_kept_are_refused(desk: ChangeDesk) -> None:
    draft = await desk.draft({})
    for product in ("P" * 1_000, "P\0", "P\ud800"):
        with pytest.raises(InvalidField, match=r"longer than 900 bytes|NUL|half a character"):
            await desk.change_sets.put_lines(EDITOR, draft.id, lines_of({"1": {"P1": 1, product: 1}}))
    assert (await desk.change_sets.lines(EDITOR, draft.id, PageArgs())).nodes == []


async def test_a_price_of_the_longest_name_is_audited_settled_and_kept_when_it_is_past(desk: ChangeDesk) -> None:
    room = MAX_KEY_BYTES - len("STORE#1" + "ALL#Base##")
    for products, channel in (({"P" * room: 1}, "ALL"), ({"P": 1}, "C" * (room + len("ALL") - 1))):
        await desk.stores("1")
        for minor in (3, 2, 1):
            draft = await desk.draft({})
            lines = lines_of({"1": dict.fromkeys(products, minor)}, channel)
            await desk.change_sets.put_lines(EDITOR, draft.id, lines)
            await desk.change_sets.submit(EDITOR, draft.id)
            await desk.carried((await desk.approve(draft.id)).id)
            desk.pass_(timedelta(days=2))
            await desk.settle("1")
            assert (await desk.get(draft.id)).state == "settled"
        assert products.items() <= (await desk.shown(channel=channel)).items()


async def test_many_lines_are_written_in_batches_by_an_iterator_too(desk: ChangeDesk) -> None:
    draft = await desk.draft({})
    number = 2 * line_writer.WRITTEN_AT_A_TIME + 1
    lines = lines_of({"1": {f"P{n:04}": n for n in range(number)}})
    assert await desk.change_sets.put_lines(EDITOR, draft.id, iter(lines)) == number
    assert (await desk.change_sets.submit(EDITOR, draft.id)).lines == number
    assert [entry.lines for entry in await desk.history(draft.id) if entry.action == "put_lines"] == [500, 500, 1]


@pytest.mark.parametrize("size", [1, 3, 7, 100])
async def test_pages_of_lines_of_all_stores_are_whole_in_both_directions(desk: ChangeDesk, size: int) -> None:
    draft = await desk.draft({f"{store:02}": {f"P{n}": n for n in range(store % 4)} for store in range(20)})
    expected = [(f"{store:02}", f"P{n}", n) for store in range(20) for n in range(store % 4)]
    forward: list[tuple[str, str, int | None]] = []
    page = await desk.change_sets.lines(READER, draft.id, PageArgs(first=size))
    while True:
        assert page.has_previous == bool(forward)
        forward += _shown(page)
        assert page.has_next == (len(forward) < len(expected))
        if not page.has_next:
            break
        page = await desk.change_sets.lines(READER, draft.id, PageArgs(first=size, after=page.end_cursor))
    assert forward == expected
    backward: list[tuple[str, str, int | None]] = []
    page = await desk.change_sets.lines(READER, draft.id, PageArgs(last=size))
    while page.nodes:
        assert page.has_next == bool(backward)
        backward = _shown(page) + backward
        assert page.has_previous == (len(backward) < len(expected))
        page = await desk.change_sets.lines(READER, draft.id, PageArgs(last=size, before=page.start_cursor))
    assert backward == expected


async def test_lines_of_one_store_have_cursors_of_their_own(desk: ChangeDesk) -> None:
    draft = await desk.draft({"1": {"P1": 1, "P2": 2}, "2": {"P1": 1}})
    page = await desk.change_sets.lines(READER, draft.id, PageArgs(first=1), store="1")
    assert (_shown(page), page.has_next) == ([("1", "P1", 1)], True)
    with pytest.raises(InvalidCursor, match="belongs to another query"):
        await desk.change_sets.lines(READER, draft.id, PageArgs(first=1, after=page.end_cursor), store="2")


async def test_open_sets_are_listed_newest_first_until_they_are_over(desk: ChangeDesk) -> None:
    await desk.stores("1")
    made: list[ChangeSet] = []
    for n in range(4):
        made.append(await desk.draft({"1": {"P1": n}}))
        desk.clock.advance(1)
    await desk.change_sets.cancel(EDITOR, made[1].id)
    page = await desk.change_sets.open(READER, PageArgs(first=2))
    assert [each.id for each in page.nodes] == [made[3].id, made[2].id]
    assert (page.has_next, page.has_previous) == (True, False)
    await desk.change_sets.cancel(EDITOR, made[2].id)  # the cursor points at something that is gone
    page = await desk.change_sets.open(READER, PageArgs(first=2, after=page.end_cursor))
    assert [each.id for each in page.nodes] == [made[0].id]
    assert (page.has_next, page.has_previous) == (False, True)
    page = await desk.change_sets.open(READER, PageArgs(last=1))
    assert [each.id for each in page.nodes] == [made[0].id]
    assert page.has_previous


async def test_sets_that_are_over_are_listed_by_state_and_those_that_ended_last_first(desk: ChangeDesk) -> None:
    await desk.stores("1")
    made = [await desk.draft({"1": {"P1": n}}) for n in range(3)]
    for n in (1, 2, 0):
        desk.clock.advance(1)
        await desk.change_sets.cancel(EDITOR, made[n].id)
    page = await desk.change_sets.ended(READER, "cancelled", PageArgs(first=2))
    assert [each.id for each in page.nodes] == [made[0].id, made[2].id]
    assert (page.has_next, page.has_previous) == (True, False)
    page = await desk.change_sets.ended(READER, "cancelled", PageArgs(first=2, after=page.end_cursor))
    assert [each.id for each in page.nodes] == [made[1].id]
    assert (page.has_next, page.has_previous) == (False, True)
    with pytest.raises(InvalidCursor, match="belongs to another query"):
        await desk.change_sets.ended(READER, "settled", PageArgs(after=page.end_cursor))
    assert await desk.ended("settled") == []


def test_a_scope_covers_all_stores_with_few_prefixes_and_never_more_than_those_of_its_maker() -> None:
    stores = [f"{n:05}" for n in range(8_000)]
    scope = widened(set(), stores, APPROVER)
    assert len(scope) <= MAX_PREFIXES
    assert all(store.startswith(tuple(scope)) for store in stores)
    mine = only_of([f"0{n}" for n in range(100, 200)])
    own = widened(set(), [f"0{n}5" for n in range(100, 200)], mine)
    assert may_see_scope(mine, own, "")
    assert not may_see_scope(only_of(["0100"]), own, "")
    assert widened({"1"}, ["10", "2"], APPROVER) == {"1", "2"}


def _key(store: str, product: str) -> PriceKey:
    return PriceKey(store, "ALL", "Base", product)


def _shown(page: NodePage[ChangeLine]) -> list[tuple[str, str, int | None]]:
    amounts = [each.money() for each in page.nodes]
    return [
        (each.store, each.product, None if amount is None else amount.minor)
        for each, amount in zip(page.nodes, amounts, strict=True)
    ]
