"""Random entities for the state machine: the same attributes, and random indexes over them."""

from __future__ import annotations

import types
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Literal

from hypothesis import strategies as st

from tickler.errors import InvalidInput
from tickler.table import MISSING, Attr, Entity, Index, Key, Missing, Part, Table, attr

KINDS = ("a", "b", "c")
TEXTS = st.sampled_from(["x", "y#z", "10", "9", "ü", "a b"])
NUMBERS = st.sampled_from([-10, -1, 0, 1, 9, 10, 11])
AMOUNTS = st.sampled_from([Decimal("0"), Decimal("1.5"), Decimal("-2"), Decimal("10")])
TAGS = st.sets(st.sampled_from(["red", "green", "blue"]), max_size=3)


class Inner(Part):
    x: Attr[int]
    y: Attr[str | Missing] = attr(default=MISSING)


ATTRIBUTES: dict[str, Any] = {
    "id": Attr[str],
    "kind": Attr[Literal["a", "b", "c"]],
    "n": Attr[int],
    "flag": Attr[bool],
    "opt": Attr[str | Missing],
    "num": Attr[int | Missing],
    "note": Attr[str | None],
    "tags": Attr[set[str]],
    "part": Attr[Inner],
    "marks": Attr[dict[str, int]],
    "amount": Attr[Decimal],
}
DEFAULTS: dict[str, Any] = {
    "n": 0,
    "flag": False,
    "opt": MISSING,
    "num": MISSING,
    "note": None,
    "tags": set(),
    "marks": {},
    "amount": Decimal(0),
}

# What an index can be made of, by name; `paths` maps the names of attributes to their paths.
PARTS: dict[str, Any] = {
    "kind": lambda paths: paths["kind"],
    "n": lambda paths: paths["n"],
    "n descending": lambda paths: paths["n"].descending(),
    "opt": lambda paths: paths["opt"],
    "num": lambda paths: paths["num"],
    "amount": lambda paths: paths["amount"],
    "part.x": lambda paths: paths["part"][Inner.x],
    "part.y": lambda paths: paths["part"][Inner.y],
    "id": lambda paths: paths["id"],
}
LEAVES: dict[str, Any] = {
    "kind is a": lambda paths: paths["kind"] == "a",
    "kind is not b": lambda paths: paths["kind"] != "b",
    "kind is b or c": lambda paths: paths["kind"].one_of(["b", "c"]),
    "n above 0": lambda paths: paths["n"] > 0,
    "n at most 9": lambda paths: paths["n"] <= 9,
    "flag": lambda paths: paths["flag"] == True,  # noqa: E712  # a condition
    "no flag": lambda paths: paths["flag"] == False,  # noqa: E712  # a condition
    "opt exists": lambda paths: paths["opt"].exists(),
    "opt is missing": lambda paths: paths["opt"].missing(),
    "num is not 0": lambda paths: paths["num"] != 0,
    "no note": lambda paths: paths["note"] == None,  # noqa: E711  # a condition
    "red": lambda paths: paths["tags"].contains("red"),
    "part.x is 1": lambda paths: paths["part"][Inner.x] == 1,
    "part.y exists": lambda paths: paths["part"][Inner.y].exists(),
    "mark m is 1": lambda paths: paths["marks"]["m"] == 1,
    "amount above 1": lambda paths: paths["amount"] > Decimal(1),
}

conditions: Any = st.recursive(
    st.sampled_from(sorted(LEAVES)),
    lambda inner: st.tuples(st.sampled_from(["and", "or"]), inner, inner) | st.tuples(st.just("not"), inner),
    max_leaves=4,
)
indexes: Any = st.tuples(
    st.sampled_from(["gsi1", "gsi2"]),
    st.lists(st.sampled_from(sorted(PARTS)), max_size=1),
    st.lists(st.sampled_from(sorted(PARTS)), min_size=1, max_size=2, unique=True),
    st.none() | conditions,
)
definitions: Any = st.lists(st.lists(indexes, min_size=1, max_size=3), min_size=1, max_size=2)


def condition_of(described: Any, paths: Any) -> Any:
    if isinstance(described, str):
        return LEAVES[described](paths)
    if described[0] == "not":
        return ~condition_of(described[1], paths)
    one, other = (condition_of(each, paths) for each in described[1:])
    return one & other if described[0] == "and" else one | other


def entity_of(table: Table, name: str, described: Sequence[Any]) -> Any:
    """Define an entity with those of the described indexes that a class may have together."""
    kept: list[Any] = []
    for index in described:
        try:
            _define(Table("tried"), name, [*kept, index])
        except InvalidInput:
            continue  # two indexes that may both hold on one gsi
        kept.append(index)
    return _define(table, name, kept)


def _define(table: Table, name: str, described: Sequence[Any]) -> Any:
    paths = {key: attr(default=DEFAULTS[key]) if key in DEFAULTS else attr() for key in ATTRIBUTES}
    body: dict[str, Any] = {"__annotations__": dict(ATTRIBUTES), **paths, "key": Key(name.upper() / paths["id"], "ITEM")}
    for number, (gsi, partition, sort, when) in enumerate(described):
        pk: Any = f"{name.upper()}{number}"
        for part in partition:
            pk = pk / PARTS[part](paths)
        first, *others = (PARTS[part](paths) for part in sort)
        sk: Any = "S" / first
        for part in others:
            sk = sk / part
        body[f"index{number}"] = Index(gsi, pk, sk, when=None if when is None else condition_of(when, paths))
    return types.new_class(name, (Entity,), {"table": table}, lambda namespace: namespace.update(body))


values = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(KINDS),
        "part": st.builds(lambda x, y: Inner(x=x, y=y), NUMBERS, st.just(MISSING) | TEXTS),
    },
    optional={
        "n": NUMBERS,
        "flag": st.booleans(),
        "opt": TEXTS,
        "num": NUMBERS,
        "note": st.none() | TEXTS,
        "tags": TAGS,
        "marks": st.dictionaries(st.sampled_from(["m", "k"]), NUMBERS, max_size=2),
        "amount": AMOUNTS,
    },
)

# Changes by the place that they change, so that a draw has no two of the same place.
CHANGES: dict[str, Any] = {
    "kind": lambda cls: st.sampled_from(KINDS).map(cls.kind.set),
    "n": lambda cls: NUMBERS.map(cls.n.set) | NUMBERS.map(cls.n.add),
    "flag": lambda cls: st.booleans().map(cls.flag.set),
    "opt": lambda cls: TEXTS.map(cls.opt.set) | st.just(cls.opt.remove()),
    "num": lambda cls: NUMBERS.map(cls.num.set) | NUMBERS.map(cls.num.add) | st.just(cls.num.remove()),
    "note": lambda cls: (st.none() | TEXTS).map(cls.note.set),
    "tags": lambda cls: TAGS.map(cls.tags.set) | st.just(cls.tags.add("red")) | st.just(cls.tags.remove("red", "green")),
    "part.x": lambda cls: NUMBERS.map(cls.part[Inner.x].set) | NUMBERS.map(cls.part[Inner.x].add),
    "part.y": lambda cls: TEXTS.map(cls.part[Inner.y].set) | st.just(cls.part[Inner.y].remove()),
    "marks": lambda cls: NUMBERS.map(cls.marks["m"].set) | st.just(cls.marks["m"].remove()),
    "amount": lambda cls: AMOUNTS.map(cls.amount.set) | AMOUNTS.map(cls.amount.add),
}


def changes_of(cls: Any) -> Any:
    places = st.lists(st.sampled_from(sorted(CHANGES)), min_size=1, max_size=3, unique=True)
    return places.flatmap(lambda chosen: st.tuples(*(CHANGES[place](cls) for place in chosen)))
