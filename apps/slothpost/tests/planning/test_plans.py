"""Plans of channels and the schedules that they become, on every store."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from installation import ZONE, Installation, berlin
from slothpost.errors import NotFound
from slothpost.identifiers import draft_key
from slothpost.model import Channel
from slothpost.planning.circumstances import ChannelState, Circumstances
from tickler.errors import InvalidWhen

TUESDAY_AND_THURSDAY = {"tue": "09:00", "thu": "09:00"}


async def test_a_plan_becomes_a_schedule_that_drafts_half_a_day_earlier(anywhere: Installation) -> None:
    product = await anywhere.a_channel(TUESDAY_AND_THURSDAY)
    view = await anywhere.app.plans.view("ada", product.id, "x")
    assert view.is_scheduled
    assert (view.next_draft, view.next_slot) == (berlin("2027-03-01 21:00"), berlin("2027-03-02 09:00"))
    assert view.why is not None
    assert await anywhere.app.t.index.next_due() == anywhere.app.t.now_ms() + 12 * 3_600_000


async def test_an_enabled_flag_is_refused_and_changes_nothing(anywhere: Installation) -> None:
    product = await anywhere.a_channel(TUESDAY_AND_THURSDAY)
    with pytest.raises(InvalidWhen, match=r"mon\.enabled is an unknown field: a day is on when it has a 'time'"):
        await anywhere.app.plans.set_plan("ada", product.id, "x", {"mon": {"enabled": True}})
    view = await anywhere.app.plans.view("ada", product.id, "x")
    assert view.state.channel.days == {"tue": ["09:00"], "thu": ["09:00"]}
    assert view.next_slot == berlin("2027-03-02 09:00")


async def test_a_plan_without_a_time_is_not_scheduled_and_has_no_schedule(anywhere: Installation) -> None:
    product = await anywhere.a_channel(TUESDAY_AND_THURSDAY)
    await anywhere.app.plans.set_plan("ada", product.id, "x", {"tue": None, "thu": []})
    view = await anywhere.app.plans.view("ada", product.id, "x")
    assert (view.is_scheduled, view.next_draft, view.next_slot, view.why) == (False, None, None, None)
    assert await anywhere.app.t.schedules.get("ada", draft_key(product.id, "x")) is None


@pytest.mark.parametrize("what", ["channel", "product", "user"])
async def test_what_is_paused_has_no_row_in_the_index_and_what_passed_meanwhile_was_not_missed(
    anywhere: Installation, what: str
) -> None:
    product = await anywhere.a_channel(TUESDAY_AND_THURSDAY)
    plans = anywhere.app.plans

    async def pause(paused: bool) -> None:
        if what == "channel":
            await plans.pause_channel("ada", product.id, "x", paused=paused)
        elif what == "product":
            await plans.pause_product("ada", product.id, paused=paused)
        else:
            await plans.pause_user("ada", paused=paused)

    await pause(True)
    assert await anywhere.app.t.index.next_due() is None
    view = await plans.view("ada", product.id, "x")
    assert view.state.pause_reason is not None
    assert view.next_slot is None
    await anywhere.until(berlin("2027-03-03 12:00"))
    await pause(False)
    view = await plans.view("ada", product.id, "x")
    assert (view.next_draft, view.next_slot) == (berlin("2027-03-03 21:00"), berlin("2027-03-04 09:00"))
    await anywhere.for_(timedelta(hours=1))
    assert await anywhere.slots(product) == []


async def test_while_a_user_pauses_no_draft_has_a_row_in_the_index_nor_is_it_asked_about(anywhere: Installation) -> None:
    product = await anywhere.a_channel(TUESDAY_AND_THURSDAY, undecided="next_slot")
    draft = await anywhere.a_draft(product)
    await anywhere.app.plans.pause_user("ada", paused=True)
    later = await anywhere.a_draft(product, "Written while everything is paused.")
    assert await anywhere.app.t.index.next_due() is None
    await anywhere.until(berlin("2027-03-20 12:00"))
    assert await anywhere.app.notices.latest("ada") == []
    await anywhere.app.plans.pause_user("ada", paused=False)
    await anywhere.for_(timedelta(minutes=1))
    slots = sorted([(await anywhere.post(post)).slot_at for post in (draft, later)])
    assert slots == [berlin("2027-03-23 09:00"), berlin("2027-03-25 09:00")]


async def test_a_pause_does_not_make_anybody_read_a_draft_again(here: Installation) -> None:
    product = await here.a_channel(TUESDAY_AND_THURSDAY)
    draft = await here.a_draft(product)
    await here.app.plans.pause_product("ada", product.id, paused=True)
    await here.app.plans.pause_product("ada", product.id, paused=False)
    assert (await here.post(draft)).version == draft.version
    await here.until(berlin("2027-03-02 09:01"))
    assert [notice.kind for notice in await here.app.notices.latest("ada")] == ["undecided"]


async def test_a_pause_during_another_change_of_the_channel_is_kept(here: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    product = await here.a_channel(TUESDAY_AND_THURSDAY)
    read = Circumstances.of_channel

    async def pause_after_reading(self: Circumstances, *about: Any) -> ChannelState:
        state = await read(self, *about)
        monkeypatch.undo()
        await here.app.plans.pause_channel("ada", product.id, "x", paused=True)
        return state

    monkeypatch.setattr(Circumstances, "of_channel", pause_after_reading)
    await here.app.plans.rearrange_all("ada")
    assert (await here.app.plans.view("ada", product.id, "x")).state.channel.paused
    assert await here.app.t.index.next_due() is None


async def test_a_slot_nearer_than_the_lead_is_drafted_at_once(anywhere: Installation) -> None:
    product = await anywhere.a_product()
    await anywhere.an_activity(product)
    await anywhere.app.plans.set_plan("ada", product.id, "x", {"mon": "12:00"}, ZONE)
    await anywhere.for_(timedelta(seconds=5))
    (post,) = await anywhere.posts(product)
    assert (post.state, post.slot_at) == ("drafted", berlin("2027-03-01 12:00"))


async def test_a_plan_and_its_schedule_are_written_together_or_not_at_all(
    here: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    product = await here.a_channel(TUESDAY_AND_THURSDAY)

    async def fails(*_: object, **__: object) -> None:
        raise ConnectionError("the store is away")

    with monkeypatch.context() as context:
        context.setattr(here.app.t.schedules, "put", fails)
        with pytest.raises(ConnectionError):
            await here.app.plans.set_plan("ada", product.id, "x", {"fri": "18:00"})
    channel = await here.app.db.get(Channel.key.id(product.id, "x"))
    assert channel is not None
    assert channel.days == {"tue": ["09:00"], "thu": ["09:00"]}


async def test_each_channel_has_a_plan_of_its_own(here: Installation) -> None:
    product = await here.a_channel(TUESDAY_AND_THURSDAY)
    await here.app.plans.set_plan("ada", product.id, "threads", {"mon": "18:00"}, "America/New_York")
    view = await here.app.plans.view("ada", product.id, "threads")
    assert view.next_slot is not None
    assert f"{view.next_slot:%a %H:%M}" == "Mon 23:00"
    assert (await here.app.plans.view("ada", product.id, "x")).next_slot == berlin("2027-03-02 09:00")


async def test_a_plan_of_somebody_else_is_not_found(here: Installation) -> None:
    product = await here.a_channel(TUESDAY_AND_THURSDAY)
    await here.a_user("eve")
    for work in (
        here.app.plans.set_plan("eve", product.id, "x", {}),
        here.app.plans.view("eve", product.id, "x"),
        here.app.plans.pause_channel("eve", product.id, "x", paused=True),
        here.app.plans.pause_product("eve", product.id, paused=True),
    ):
        with pytest.raises(NotFound):
            await work


async def test_another_lead_moves_the_drafts(here: Installation) -> None:
    from slothpost.people.products import ProductChanges

    product = await here.a_channel(TUESDAY_AND_THURSDAY)
    await here.app.products.update("ada", product.id, ProductChanges(lead_minutes=60))
    view = await here.app.plans.view("ada", product.id, "x")
    assert view.next_draft == berlin("2027-03-02 08:00")
