"""What is refused when a class is defined, with the remedy, and what an item can hold when it is written."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NewType, get_args
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from tickler.errors import InvalidInput, InvalidItem
from tickler.table import MISSING, Attr, Entity, Index, Key, Missing, Part, Table, attr, evolve

NOW = datetime(2024, 3, 15, tzinfo=UTC)
NAN = float("nan")
declare: Any = attr  # with options that checkers need not know


class Colour(Enum):
    RED = "red"
    NONE = ""


class Size(Enum):
    SMALL = 1
    LARGE = 2


class Shape(Enum):
    ROUND = 0.5


class City(Part):
    name: Attr[str] = attr()
    size: Attr[int] = attr(default=0)


class Other(Entity, table=Table("others")):
    id: Attr[str] = attr()
    status: Attr[str] = attr()
    key = Key("OTHER" / id, "X")


CustomerId = NewType("CustomerId", str)


def refused(define: Callable[[], object]) -> str:
    with pytest.raises(InvalidInput) as caught:
        define()
    return str(caught.value)


def typed(kind: Any, **options: Any) -> Any:
    """Define an entity with one attribute of a type, beside its key."""

    class Thing(Entity, table=Table("things")):
        id: Attr[str] = attr()
        value: Attr[kind] = declare(**options)
        key = Key("THING" / id, "X")

    return Thing


def keyed(kind: Any) -> Any:
    class Thing(Entity, table=Table("things")):
        value: Attr[kind] = attr()
        key = Key("THING" / value, "X")

    return Thing


def indexed(kind: Any) -> Any:
    options = {"default": MISSING} if Missing in get_args(kind) else {}

    class Thing(Entity, table=Table("things")):
        id: Attr[str] = attr()
        value: Attr[kind] = declare(**options)
        key = Key("THING" / id, "X")
        by_value = Index("gsi1", "THING" / value, id)

    return Thing


def test_an_entity_needs_a_table() -> None:
    def define() -> None:
        class Thing(Entity):  # type: ignore[call-arg]
            id: Attr[str] = attr()
            key = Key("THING" / id, "X")

    assert refused(define) == "Thing: name the table of this entity: class Thing(Entity, table=…)"


def test_a_field_is_declared_as_an_attribute() -> None:
    def define() -> None:
        class Thing(Part):
            size: int

    assert refused(define) == "Thing.size: declare attributes as `size: Attr[…]`"


def test_an_attribute_needs_a_type() -> None:
    def define() -> None:
        class Thing(Part):
            size = attr()

    assert refused(define) == "Thing.size has no type: write `size: Attr[…] = attr()`"


def test_a_default_is_given_to_attr() -> None:
    def define() -> None:
        class Thing(Part):
            size: Attr[int] = 3  # type: ignore[assignment]

    assert refused(define) == "Thing.size = 3: write `= attr(default=3)`"


def test_a_default_has_the_type_of_its_attribute() -> None:
    assert refused(lambda: typed(int, default="3")) == "Thing.value cannot be '3': expected `int`, got `str`"
    assert refused(lambda: typed(int, default=MISSING)) == "Thing.value has default=MISSING: declare it as `| Missing`"
    expected = "Thing.value can be missing: write `= attr(default=MISSING)`"
    assert refused(lambda: typed(int | Missing)) == refused(lambda: typed(int | Missing, default=3)) == expected
    assert typed(int | Missing, default=MISSING)(id="a").value is MISSING


def test_an_entity_has_one_key() -> None:
    def define_none() -> None:
        class Thing(Entity, table=Table("things")):
            id: Attr[str] = attr()

    def define_two() -> None:
        class Thing(Entity, table=Table("things")):
            id: Attr[str] = attr()
            key = Key("THING" / id, "X")
            other = Key("OTHER" / id, "X")

    expected = 'Thing: declare one key, as in `key = Key("THING" / id, "PROFILE")`'
    assert refused(define_none) == expected
    assert refused(define_two) == expected


NONE_IN_KEY = "can be None, and a key has no place for None: declare it as `| Missing` and leave it out"
EMPTY_IN_KEY = "can be '', and a key has no place for it: leave it out instead"
SEVERAL_IN_KEY = "can be of several types, which have no common order in a key: choose one"


@pytest.mark.parametrize("define", [keyed, indexed])
@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (str | None, NONE_IN_KEY),
        (Literal["a", None], NONE_IN_KEY),
        (Literal["a", ""], EMPTY_IN_KEY),
        (Colour, EMPTY_IN_KEY),
        (int | str, SEVERAL_IN_KEY),
        (Literal["a", 1], SEVERAL_IN_KEY),
        (bool, "is a bool, and a flag that is False would be in the index, too"),
        (list[str], "a key part cannot be declared as list"),
        (dict[str, int], "a key part cannot be declared as dict"),
        (City, "a key part cannot be declared as City"),
    ],
)
def test_what_has_no_place_in_a_key_is_refused(define: Callable[[Any], object], kind: object, reason: str) -> None:
    message = refused(lambda: define(kind))
    assert "Thing.value" in message
    assert reason in message


@pytest.mark.parametrize("kind", [str, int, float, Decimal, datetime, date, bytes, UUID, Size, CustomerId, Literal["a", "b"]])
def test_what_has_an_order_can_be_in_a_key(kind: Any) -> None:
    assert keyed(kind)
    assert indexed(kind | Missing)
    assert keyed(Annotated[kind, "documented"])


def test_a_primary_key_is_never_missing() -> None:
    def define() -> None:
        class Thing(Entity, table=Table("things")):
            value: Attr[str | Missing] = attr(default=MISSING)
            key = Key("THING" / value, "X")

    assert refused(define) == "Thing.key: Thing.value can be missing, and a primary key is never: declare it without Missing"


def test_a_primary_key_has_attributes_of_the_entity_itself() -> None:
    def define() -> None:
        class Thing(Entity, table=Table("things")):
            city: Attr[City] = attr()
            key = Key("THING" / city[City.name], "X")

    assert "is inside a part, and a primary key never changes: make it an attribute of Thing" in refused(define)


def test_a_key_has_attributes_of_its_own_class() -> None:
    def define() -> None:
        class Thing(Entity, table=Table("things")):
            id: Attr[str] = attr()
            key = Key("THING" / Other.id, "X")  # type: ignore[operator]

    assert refused(define) == "Other.id is not an attribute of Thing: use those of Thing"


def conditional(when: Callable[[Any, Any], Any]) -> None:
    class Thing(Entity, table=Table("things")):
        id: Attr[str] = attr()
        status: Attr[Literal["new", "done"]] = attr()
        size: Attr[int] = attr(default=0)
        key = Key("THING" / id, "X")
        some = Index("gsi1", "SOME", id, when=when(status, size))


def test_the_condition_of_an_index_is_about_its_own_class() -> None:
    message = refused(lambda: conditional(lambda status, size: Other.status == "new"))
    assert message == "Other.status is not an attribute of Thing: use those of Thing"


def test_a_condition_compares_with_what_can_be() -> None:
    lost = refused(lambda: conditional(lambda status, size: status == "lost"))
    assert lost == "Thing.status cannot be 'lost': invalid enum value 'lost'"
    assert "Thing.size cannot be '3': expected `int`" in refused(lambda: conditional(lambda status, size: size > "3"))
    assert "only texts, lists and sets" in refused(lambda: conditional(lambda status, size: size.contains(3)))
    assert "only texts start" in refused(lambda: conditional(lambda status, size: size.starts_with("3")))
    conditional(lambda status, size: (status == "new") & (size > 3) & status.starts_with("n"))


def two_keys(one: Callable[[Any, Any], Any], other: Callable[[Any, Any], Any]) -> None:
    things = Table("things")

    class One(Entity, table=things):
        text: Attr[str] = attr()
        number: Attr[int] = attr()
        key = Key("THING", one(text, number))

    class Two(Entity, table=things):
        text: Attr[str] = attr()
        number: Attr[int] = attr()
        key = Key("THING", other(text, number))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda text, number: "A" / text, lambda text, number: text / "A"),
        (lambda text, number: text / number, lambda text, number: text / text),
        (lambda text, number: "A", lambda text, number: text),
        (lambda text, number: "A" / text, lambda text, number: "A" / number),
        (lambda text, number: number, lambda text, number: "A1"),
    ],
)
def test_keys_that_could_be_equal_collide(one: Any, other: Any) -> None:
    message = refused(lambda: two_keys(one, other))
    assert message.startswith("Two and One can have the same key ('THING', ")
    assert message.endswith("give their keys a constant that differs at the same place")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda text, number: "A" / text, lambda text, number: text),
        (lambda text, number: "A" / text, lambda text, number: "B" / text),
        (lambda text, number: text / "A", lambda text, number: text / "B"),
        (lambda text, number: number, lambda text, number: "PROFILE"),
        (lambda text, number: "A#B" / text, lambda text, number: "A" / text),
    ],
)
def test_keys_that_differ_in_length_or_in_a_constant_do_not_collide(one: Any, other: Any) -> None:
    two_keys(one, other)


def test_names_are_taken_once() -> None:
    things = Table("things")

    def define(name: str) -> None:
        class Thing(Entity, table=things, stored_as=name):
            id: Attr[str] = attr()
            key = Key(f"{name.upper()}" / id, "X")

    define("thing")
    define("other")
    assert "has an entity of this name already: choose another, or stored_as=" in refused(lambda: define("thing"))


@pytest.mark.parametrize("name", ["pk", "sk", "entity", "ttl", "gsi1pk", "gsi1sk"])
def test_names_that_the_table_uses_are_refused(name: str) -> None:
    def define() -> None:
        namespace = {"__annotations__": {"id": Attr[str], name: Attr[str]}, "id": attr(), "__module__": __name__}
        id: Any = namespace["id"]
        namespace |= {"key": Key("THING" / id, "X"), "index": Index("gsi1", "X", id)}
        metaclass: Any = type(Entity)
        metaclass("Thing", (Entity,), namespace, table=Table("things"))

    assert refused(define) == f"Thing.{name}: the table uses this name itself: choose another"


def test_an_index_does_not_take_the_name_of_an_attribute_of_an_older_entity() -> None:
    things = Table("things")

    class Old(Entity, table=things):
        id: Attr[str] = attr()
        gsi9pk: Attr[str]
        key = Key("OLD" / id, "X")

    def define() -> None:
        class New(Entity, table=things):
            id: Attr[str] = attr()
            key = Key("NEW" / id, "X")
            index = Index("gsi9", "X", id)

    assert refused(define) == "New: index 'gsi9': Old has an attribute gsi9pk: choose another name"
    assert things.gsis == {}


def test_a_refused_class_leaves_no_index_behind() -> None:
    things = Table("things")

    def define() -> None:
        class Thing(Entity, table=things):
            id: Attr[str] = attr()
            key = Key("" / id, "X")
            index = Index("gsi1", "X", id)

    assert refused(define) == "Thing.key: only the last of several constants may be empty"
    assert (things.gsis, things.entities) == ({}, {})


def test_bad_names_are_refused() -> None:
    assert refused(lambda: Table("Shop")) == "table 'Shop': use lower-case letters, digits and _, 48 at most"

    def define(name: str, gsi: str) -> None:
        class Thing(Entity, table=Table("things"), stored_as=name):
            id: Attr[str] = attr()
            key = Key("THING" / id, "X")
            index = Index(gsi, "X", id)

    assert refused(lambda: define("a-b", "gsi1")) == "entity 'a-b': use letters, digits and _, 100 at most"
    assert refused(lambda: define("a", "GSI 1")) == "a: index 'GSI 1': use a name such as 'gsi1'"


@pytest.mark.parametrize("constant", ["A$", "100%"])
def test_constants_have_no_reserved_characters(constant: str) -> None:
    expected = f"the constant {constant!r} of a key has $ or %, which are reserved: leave them out"
    assert refused(lambda: Key(constant, "X")) == expected


@pytest.mark.parametrize("role", ["version", "expires", "deleted"])
def test_a_role_is_given_once_and_to_the_right_type(role: str) -> None:
    right: Any = int if role == "version" else datetime | Missing
    default: Any = 0 if role == "version" else MISSING

    def define(first: Any, twice: bool = False, kind: Any = right) -> None:
        roles: dict[str, Any] = {role: True}

        class Thing(Entity, table=Table("things")):
            id: Attr[str] = attr()
            one: Attr[first] = declare(**roles)
            two: Attr[kind] = declare(**roles) if twice else attr(default=default)
            key = Key("THING" / id, "X")

    define(right)
    assert refused(lambda: define(right, twice=True)) == f"Thing: one and two cannot both be attr({role}=True)"
    wrong: Any = int | None if role == "version" else datetime | None | Missing
    assert f"Thing.one: attr({role}=True) needs the type Attr[" in refused(lambda: define(wrong))


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (complex, "complex cannot be stored: use str, int"),
        (object, "object cannot be stored"),
        (Any, "Any cannot be stored"),
        (timedelta, "timedelta cannot be stored"),
        (tuple[int, str], "tuple[int, str] is stored as a list: use list[…], or a Part"),
        (list, "list does not say of what: write list[…]"),
        (list[complex], "a member of list[complex]: complex cannot be stored"),
        (list[int | Missing], "cannot be Missing: leave it out of the list or map instead"),
        (set[City], "cannot be City: use str, int, Decimal or bytes, or a list"),
        (set[float], "cannot be float: use str, int, Decimal or bytes, or a list"),
        (dict[float, int], "cannot be float: use str, int, datetime, date, UUID or an Enum"),
        (dict[bool, int], "cannot be bool"),
        (dict[str, complex], "a value of dict[str, complex]: complex cannot be stored"),
        (Missing, "is always missing: name the type that it has when it is present"),
        (int | float, "can be int or float, which are stored alike: choose one of them"),
        (Decimal | int | None, "can be Decimal or int, which are stored alike"),
        (str | datetime, "type unions may not contain more than one str-like type"),
        (list[int] | set[int], "type unions may not contain more than one array-like"),
        (City | dict[str, int], "type unions may not contain"),
        (Shape, "Shape has the value 0.5: use texts or integers"),
        (Other, "Other is an entity, with a key of its own: store the key, or make it a Part"),
    ],
)
def test_types_that_cannot_be_stored_are_refused(kind: object, reason: str) -> None:
    message = refused(lambda: typed(kind))
    assert message.startswith("Thing.value")
    assert reason in message


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (str | None, None),
        (str | int, 3),
        (CustomerId, "c1"),
        (list[dict[str, list[City]]], [{"a": [City(name="Bonn")]}]),
        (dict[datetime, Decimal], {NOW: Decimal("1.5")}),
        (dict[date, City | None], {date(2024, 3, 15): None}),
        (dict[Colour, int], {Colour.RED: 3}),
        (dict[UUID, bytes], {UUID(int=3): b"\xff"}),
        (dict[int, float], {10: 0.1, 9: 1.0}),
        (set[bytes], {b"a"}),
        (frozenset[Decimal], frozenset({Decimal(1)})),
        (datetime | None, None),
        (datetime, datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))),
        (float, 3),
        (int, 10**38 - 1),
        (str, "1" * 60),
        (list[int], [10**38 - 1]),
    ],
)
def test_values_are_stored_and_read_back(kind: object, value: object) -> None:
    thing = typed(kind)
    definition = thing.key._pair.bound()
    decoded = definition.decode(definition.encode(thing(id="a", value=value))).value
    assert decoded == (value.astimezone(UTC) if isinstance(value, datetime) else value)


def test_entities_cannot_be_subclassed() -> None:
    def define() -> None:
        class Special(Other, table=Table("things")):
            pass

    expected = "Special(Other): its only base can be Entity or Part, so that an item is of one class: put what classes share"
    assert refused(define).startswith(expected)


def test_classes_inside_functions_see_the_names_of_the_function() -> None:
    class Inner(Part):
        size: Attr[int]

    class Outer(Entity, table=Table("things")):
        id: Attr[str] = attr()
        inner: Attr[Inner]
        key = Key("OUTER" / id, "X")

    assert Outer(id="a", inner=Inner(size=3)).inner.size == 3


def test_a_type_that_is_not_known_yet_is_refused() -> None:
    def define() -> None:
        class Thing(Part):
            inner: Attr[Later]  # type: ignore[name-defined]  # noqa: F821

    assert refused(define) == "Thing.inner: name 'Later' is not defined: import it, or define it above the class"


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        (float, NAN, "value is nan: pass a finite number, or leave it out"),
        (float | None, NAN, "value is nan: pass a finite number, or leave it out"),
        (float, float("inf"), "value is inf: pass a finite number, or leave it out"),
        (float, 1e200, "value is 1E+126 or more, or nearer to 0 than 1E-130: scale it"),
        (list[float | None], [NAN], "a member of value is nan: pass a finite number, or leave it out"),
        (Decimal, Decimal("NaN"), "value is NaN: pass a finite number, or leave it out"),
        (Decimal, Decimal("-Infinity"), "value is -Infinity: pass a finite number, or leave it out"),
        (Decimal, Decimal("1." + "1" * 38), "value has more than 38 significant digits: round it"),
        (int, 10**38, "value has more than 38 digits: store it as a text"),
        (int, -(10**38), "value has more than 38 digits: store it as a text"),
        (int | None, 10**38, "value has more than 38 digits: store it as a text"),
        (dict[int, str], {10**38: "a"}, "a key of value has more than 38 digits: store it as a text"),
        (City, City(name="Bonn", size=10**38), "value.size has more than 38 digits: store it as a text"),
        (dict[str, list[int]], {"a": [-(10**38)]}, "a member of value['a'] has more than 38 digits: store it as a text"),
        (datetime, datetime(2024, 3, 15), "value is a naive datetime: give it a time zone such as tzinfo=UTC"),
        (dict[datetime, int], {datetime(2024, 3, 15): 3}, "a key of value is a naive datetime: give it a time zone"),
        (datetime, datetime(2024, 3, 15, tzinfo=timezone(timedelta(seconds=1))), "which is no whole minutes: pass it as"),
        (str, "\ud800", "value has the lone surrogate '\\ud800', which UTF-8 cannot express: replace it"),
        (City, City(name="\ud800"), "value.name has the lone surrogate"),
        (int, "3", "value: expected `int`, got `str`: pass a value of the type that the class declares"),
        (int, True, "value: expected `int`, got `bool`"),
        (bool, 1, "value: expected `bool`, got `int`"),
        (City, City(name=3), "value.name: expected `str`, got `int`"),  # type: ignore[arg-type]
        (datetime, "2024-03-15T00:00:00Z", "value is '2024-03-15T00:00:00Z', of another type than declared: pass datetime"),
        (UUID, str(UUID(int=3)), "of another type than declared: pass UUID"),
        (Decimal, 0.1, "value is 0.1, of another type than declared: pass Decimal('0.1')"),
        (set[str], ["a"], "value is ['a'], of another type than declared: pass {'a'}"),
        (int, MISSING, "object missing required field `value`"),
        (dict[int, float], {3: NAN}, "value[3] is nan"),
        (str, object(), "encoding objects of type object is unsupported"),
    ],
)
def test_values_that_cannot_be_stored_are_refused_with_their_attribute(kind: object, value: object, reason: str) -> None:
    thing = typed(kind)
    with pytest.raises(InvalidItem) as caught:
        thing.key._pair.bound().encode(thing(id="a", value=value))
    assert reason in caught.value.reason
    assert caught.value.entity == "Thing"


def test_an_item_has_a_size_limit() -> None:
    thing = typed(str)
    with pytest.raises(InvalidItem, match="and an item may have 409,600: keep large values elsewhere"):
        thing.key._pair.bound().encode(thing(id="a", value="x" * 500_000))


def test_evolve_returns_a_copy_with_other_values_and_refuses_what_is_not_declared() -> None:
    table = Table("evolved")

    class Thing(Entity, table=table):
        id: Attr[str] = attr()
        size: Attr[int] = attr(default=1)
        key = Key("THING" / id, "THING")

    thing = Thing(id="a")
    assert (evolve(thing, size=2), thing.size) == (Thing(id="a", size=2), 1)
    with pytest.raises(InvalidInput, match="Thing has no colour: evolve changes declared attributes"):
        evolve(thing, colour="red")
