"""The planner: untouched, derivable, or in need of a read. The named tests are the cases that are easily missed."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table.goods import NOW, Address, Counter, Item, goods, item

from tickler.errors import InvalidInput
from tickler.table import MISSING, Attr, Entity, Index, Key, Missing, Table, attr
from tickler.table.change import Change, apply
from tickler.table.condition import Condition
from tickler.table.definition import EntityDefinition
from tickler.table.operation import Update, initial_entity, with_next_version
from tickler.table.planner import Plan, SlotPlan, plan
from tickler.table.rendering import value_at

DEFINITION: EntityDefinition = goods.entities["Item"]
ID = Item.key.id("s", 1)


def planned(*changes: Change[Item], when: Condition[Item] | None = None) -> Plan:
    return plan(Update(ID, changes, when))


def depends(slot: SlotPlan) -> set[str]:
    return {repr(path) for path in slot.depends}


def test_an_index_whose_attributes_do_not_change_is_untouched() -> None:
    slots = planned(Item.note.set("x")).slots
    assert {slot.action for slot in slots.values()} == {"untouched"}


def test_a_key_is_derived_from_changes_the_primary_key_and_facts_of_the_condition() -> None:
    slots = planned(Item.status.set("old"), when=(Item.count == 3) & (Item.open == True)).slots  # noqa: E712  # a condition
    assert slots["gsi1"] == SlotPlan("set", ("STATUS#old", "A3#A1"))
    assert slots["gsi2"].action == "untouched"


def test_what_is_in_a_disjunction_is_no_fact() -> None:
    assert planned(Item.status.set("old"), when=(Item.count == 3) | (Item.open == True)).slots["gsi1"].action == "read"  # noqa: E712


def test_one_item_has_one_key_per_gsi() -> None:
    table = Table("t")

    class Job(Entity, table=table):
        id: Attr[str] = attr()
        state: Attr[str] = attr()
        at: Attr[int] = attr()
        key = Key("JOB" / id, "JOB")
        waiting = Index("gsi1", "WAITING", at, when=state == "waiting")
        running = Index("gsi1", "RUNNING", at, when=state == "running")

    slots = plan(Update(Job.key.id("a"), [Job.state.set("running"), Job.at.set(3)])).slots
    assert slots == {"gsi1": SlotPlan("set", ("RUNNING", "A3"))}
    with pytest.raises(InvalidInput, match="share gsi1"):

        class Other(Entity, table=table):
            id: Attr[str] = attr()
            at: Attr[int] = attr()
            key = Key("OTHER" / id, "JOB")
            one = Index("gsi1", "ONE", at)
            two = Index("gsi1", "TWO", at)


def test_an_upsert_may_create_the_item_so_nothing_is_untouched_and_no_fact_is_taken() -> None:
    for changes in ([Item.note.set("x")], [Item.status.set("old")]):
        update = Update(ID, changes, Item.count == 3, initial_entity(ID, changes))
        assert plan(update).slots["gsi1"].action == "read"


def test_after_a_read_the_whole_image_decides() -> None:
    table = Table("t")

    class Parcel(Entity, table=table):
        id: Attr[str] = attr()
        address: Attr[Address] = attr()
        key = Key("PARCEL" / id, "PARCEL")
        in_bonn = Index("gsi1", "BONN", id, when=address == Address(city="Bonn"))

    made = plan(Update(Parcel.key.id("a"), [Parcel.address[Address.city].set("Bonn")]))
    assert (made.slots["gsi1"].action, depends(made.slots["gsi1"])) == ("read", {"Parcel.address"})
    changed = Parcel(id="a", address=Address(city="Bonn"))
    assert made.after_reading(table.entities["Parcel"], changed)["gsi1"] == SlotPlan("set", ("BONN", "a"))


def test_a_guard_is_on_the_unknown_dependencies_only() -> None:
    slot = planned(Item.status.set("old")).slots["gsi1"]
    assert (slot.action, depends(slot)) == ("read", {"Item.count"})


def test_paths_overlap_when_one_prefixes_the_other() -> None:
    assert planned(Item.address.set(Address(city="Bonn"))).slots["gsi3"] == SlotPlan("set", ("CITY#Bonn", "A1"))
    assert planned(Item.address[Address.city].set("Bonn")).slots["gsi3"] == SlotPlan("set", ("CITY#Bonn", "A1"))
    assert planned(Item.address[Address.zip].set("1")).slots["gsi3"].action == "untouched"
    assert planned(Item.address.remove()).slots["gsi3"] == SlotPlan("remove")


def test_add_on_a_missing_number_can_enter_an_index() -> None:
    slot = planned(Item.count.add(1), when=Item.due_at == NOW).slots["gsi2"]
    assert (slot.action, depends(slot)) == ("read", {"Item.count", "Item.open"})


def test_add_never_writes_the_delta_into_a_key() -> None:
    assert planned(Item.count.add(1)).slots["gsi1"].action == "read"
    assert planned(Item.count.add(1), when=(Item.count == 2) & (Item.status == "new")).slots["gsi1"].key == (
        "STATUS#new",
        "A3#A1",
    )


def test_removing_the_last_member_of_a_set_leaves_an_empty_one() -> None:
    table = Table("t")

    class Doc(Entity, table=table):
        id: Attr[str] = attr()
        tags: Attr[set[str]] = attr(default=set())
        key = Key("DOC" / id, "DOC")
        untagged = Index("gsi1", "UNTAGGED", id, when=tags == set())

    id = Doc.key.id("a")
    assert plan(Update(id, [Doc.tags.remove("x")], Doc.tags == {"x"})).slots["gsi1"].key == ("UNTAGGED", "a")
    assert plan(Update(id, [Doc.tags.remove("x")])).slots["gsi1"].action == "read"


def test_unequal_is_true_of_a_missing_attribute() -> None:
    table = Table("t")

    class Doc(Entity, table=table):
        id: Attr[str] = attr()
        state: Attr[str | Missing] = attr(default=MISSING)
        key = Key("DOC" / id, "DOC")
        active = Index("gsi1", "ACTIVE", id, when=state != "done")

    assert plan(Update(Doc.key.id("a"), [Doc.state.remove()])).slots["gsi1"].key == ("ACTIVE", "a")
    assert plan(Update(Doc.key.id("a"), [Doc.state.set("done")])).slots["gsi1"].action == "remove"


def test_true_is_not_one_and_one_is_the_same_key_as_1_0() -> None:
    table = Table("t")

    class Doc(Entity, table=table):
        id: Attr[str] = attr()
        flag: Attr[bool | int] = attr(default=0)
        n: Attr[float] = attr(default=0.0)
        key = Key("DOC" / id, "DOC")
        flagged = Index("gsi1", "FLAGGED", n, when=flag == True)  # noqa: E712  # a condition

    def slot(flag: bool | int, n: float) -> SlotPlan:
        return plan(Update(Doc.key.id("a"), [Doc.flag.set(flag), Doc.n.set(n)])).slots["gsi1"]

    assert slot(1, 1).action == "remove"
    assert slot(True, 1) == slot(True, 1.0) == SlotPlan("set", ("FLAGGED", "A1"))


def test_both_halves_of_a_key_are_written_or_neither() -> None:
    for changes in ([Item.address.remove()], [Item.due_at.remove()], [Item.status.set("a"), Item.count.set(1)]):
        for slot in planned(*changes).slots.values():
            assert (slot.key is not None) == (slot.action == "set")


def test_a_default_counts_as_the_value() -> None:
    """Facts are about effective values: what `level == 5` says holds of an item without the attribute, too."""
    assert planned(Item.status.set("a"), when=Item.count == 0).slots["gsi1"].key == ("STATUS#a", "A0#A1")


def test_a_changed_predicate_plans_by_its_new_form_only() -> None:
    """A reindex is needed for items that nobody updates; each update writes the new form."""
    assert planned(Item.open.set(False)).slots["gsi2"] == SlotPlan("remove")


def test_a_version_in_a_key_makes_every_update_touch_it() -> None:
    table = Table("t")

    class Doc(Entity, table=table):
        id: Attr[str] = attr()
        text: Attr[str] = attr(default="")
        version: Attr[int] = attr(version=True)
        key = Key("DOC" / id, "DOC")
        recent = Index("gsi1", "RECENT", version / id)

    slot = plan(Update(Doc.key.id("a"), [Doc.text.set("x")])).slots["gsi1"]
    assert (slot.action, depends(slot)) == ("read", {"Doc.version"})
    assert plan(Update(Counter.key.id("a"), [Counter.n.set(1)])).slots["gsi1"].key == ("COUNTER", "A1#a")


addresses = st.builds(Address, city=st.sampled_from(["Bonn", "Köln"]), zip=st.sampled_from([None, "1"]))
instants = st.sampled_from([NOW, NOW + timedelta(days=1)])
images = st.builds(
    item,
    status=st.sampled_from(["new", "old"]),
    count=st.integers(-1, 2),
    open=st.booleans(),
    price=st.sampled_from([MISSING, Decimal(1)]),
    address=st.one_of(st.just(MISSING), addresses),
    due_at=st.one_of(st.just(MISSING), instants),
)
changes: st.SearchStrategy[Change[Item]] = st.one_of(
    st.builds(Item.status.set, st.sampled_from(["new", "old"])),
    st.builds(Item.count.add, st.integers(-1, 1)),
    st.builds(Item.count.set, st.integers(-1, 2)),
    st.builds(Item.open.set, st.booleans()),
    st.builds(Item.address.set, addresses),
    st.just(Item.address.remove()),
    st.builds(Item.address[Address.city].set, st.sampled_from(["Bonn", "Köln"])),
    st.builds(Item.due_at.set, instants),
    st.just(Item.due_at.remove()),
    st.just(Item.note.set("x")),
)


def _facts_of(image: Item) -> list[Condition[Any]]:
    pairs = [(Item.status, image.status), (Item.count, image.count), (Item.open, image.open), (Item.address, image.address)]
    paths: list[tuple[Any, object]] = [*pairs, (Item.due_at, image.due_at), (Item.address[Address.city], _city(image))]
    return [path.missing() if value is MISSING else path == value for path, value in paths]


def _city(image: Item) -> object:
    return value_at(image, Item.address[Address.city])


@settings(max_examples=500, deadline=None)
@given(images, st.lists(changes, min_size=1, max_size=3, unique_by=lambda each: each.path.attribute), st.data())
def test_a_plan_gives_the_keys_of_the_changed_item(image: Item, made: list[Change[Item]], data: st.DataObject) -> None:
    facts = data.draw(st.lists(st.sampled_from(_facts_of(image)), max_size=4))
    when: Condition[Any] | None = None
    for fact in facts:
        when = fact if when is None else data.draw(st.sampled_from([when & fact, when | fact, ~~when & fact]))
    try:
        changed = with_next_version(DEFINITION, apply(made, image))
    except InvalidInput:
        return
    for gsi, slot in plan(Update(image.key, made, when)).slots.items():
        before, after = (DEFINITION.slot_key(gsi, DEFINITION.lookup(each)) for each in (image, changed))
        if slot.action == "untouched":
            assert before == after
        elif slot.action == "read":
            assert slot.depends
        else:
            assert slot.key == after
