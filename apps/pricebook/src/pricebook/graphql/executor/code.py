"""Writes the Python functions of a plan.

`run` takes what the root fields returned and makes the answer of records. A list has a function of its own for its items; an
object that is no list is written in line. Whatever is not as its type says raises `Surprise`. Fields that are read for all nodes
at once are fetched before, in the order in which `run` meets them. Of the query, only names get into the code, as texts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Any, cast

from graphql import GraphQLEnumType, GraphQLList, GraphQLNonNull, GraphQLOutputType, GraphQLScalarType
from msgspec import Struct

from pricebook.graphql.executor import leaf
from pricebook.graphql.executor.code_block import Block
from pricebook.graphql.executor.field_source import Attribute, BatchSource
from pricebook.graphql.executor.plan import FieldPlan, Plan, Selection
from pricebook.graphql.executor.record import record_type
from pricebook.graphql.executor.surprise import Surprise

LEAVES = (GraphQLScalarType, GraphQLEnumType)


class BatchSite(Struct, frozen=True, eq=False):
    """A field that is read for many nodes at once. `steps` lead to the nodes from a root field, or from an earlier site."""

    field: FieldPlan
    origin: FieldPlan
    start: str  # the variable that has the values of the origin: one value of a root field, or a list of those of a site
    steps: tuple[FieldPlan, ...]


class Compiled(Struct, frozen=True, eq=False):
    """The functions of a plan. `prefetch` is there if there are sites; it returns what `run` takes as its last argument."""

    run: Callable[..., Struct]
    prefetch: Callable[..., Awaitable[list[Any]]] | None
    sites: Sequence[BatchSite]


class _Place(Struct, frozen=True):
    """Where a value is: the steps from a root field or a site."""

    origin: FieldPlan
    start: str
    steps: tuple[FieldPlan, ...] = ()


def compile_plan(plan: Plan) -> Compiled:
    """Return the functions of a plan that has no obstacle."""
    return _Writer().compiled(plan)


class _Writer:
    def __init__(self) -> None:
        self._names: dict[str, Any] = {**leaf.NAMES, "Surprise": Surprise, "serialized": leaf.serialized}
        self._functions: list[Block] = []
        self._sites: list[BatchSite] = []
        self._numbers = count()

    def compiled(self, plan: Plan) -> Compiled:
        fields = [field for field in plan.root.fields if field.definition is not None]
        roots = "".join(f"r{n}, " for n in range(len(fields)))
        run = Block(f"def run({roots}b):")
        values = {field.key: self._root(run, field, n) for n, field in enumerate(fields)}
        record = self._named(record_type(tuple(field.key for field in plan.root.fields)))
        run.add(f"return {record}({', '.join(values.get(each.key, repr(each.parent.name)) for each in plan.root.fields)})")
        self._functions.append(run)
        if self._sites:
            self._functions.append(self._prefetch(roots))
        source = "\n".join(str(function) for function in self._functions)
        exec(compile(source, "<query>", "exec"), self._names)  # noqa: S102  # our own code; the query gives it names as texts
        return Compiled(self._names["run"], self._names.get("prefetch"), self._sites)

    def _root(self, block: Block, field: FieldPlan, number: int) -> str:
        assert field.definition is not None
        place = _Place(field, f"r{number}")
        return self._value(block, field.definition.type, f"r{number}", field, place)

    def _value(self, block: Block, type_: GraphQLOutputType, name: str, field: FieldPlan, place: _Place) -> str:
        """Write how a value that may be null is completed, and return the expression of the result."""
        if isinstance(type_, GraphQLNonNull):
            return self._present(block, type_.of_type, name, field, place)
        inside = block.begin(f"if {name} is not None:")
        completed = self._present(inside, type_, name, field, place)
        if completed != name:
            inside.add(f"{name} = {completed}")
        return name

    def _present(self, block: Block, type_: GraphQLOutputType, name: str, field: FieldPlan, place: _Place) -> str:
        if isinstance(type_, GraphQLList):
            block.add(f"if type({name}) is not list and type({name}) is not tuple: raise Surprise({_where(field)})")
            return f"[{self._item(type_.of_type, field, place)}(x, b) for x in {name}]"
        if isinstance(type_, LEAVES):
            return self._leaf(block, type_, name)
        return self._object(block, field.selections[0], name, place)

    def _leaf(self, block: Block, type_: GraphQLScalarType | GraphQLEnumType, name: str) -> str:
        serialize = self._named(type_.serialize)
        check = f"type({name}) is str" if type_.name in leaf.TEXTS else leaf.check_of(type_, name)
        block.add(f"if not ({check}): {name} = serialized({serialize}, {name})")
        return name

    def _item(self, type_: GraphQLOutputType, field: FieldPlan, place: _Place) -> str:
        """Write the function that completes an item of a list, and return its name."""
        name = f"f{next(self._numbers)}"
        function = Block(f"def {name}(x, b):")
        function.add(f"return {self._value(function, type_, 'x', field, place)}")
        self._functions.append(function)
        return name

    def _object(self, block: Block, selection: Selection, name: str, place: _Place) -> str:
        values, texts = [], []
        if not any(isinstance(field.source, Attribute) for field in selection.fields):
            block.add(
                f"if isinstance({name}, Exception) or hasattr({name}, '__await__'): raise Surprise('an object is an error')"
            )
        for field in selection.fields:
            if field.definition is None:
                values.append(repr(selection.type.name))  # __typename
                continue
            value = f"v{next(self._numbers)}"
            inner = self._load(block, field, name, value, place)
            if _is_text(field.definition.type):
                texts.append(value)
                values.append(value)
            else:
                values.append(self._value(block, field.definition.type, value, field, inner))
        if texts:
            types = " is ".join(f"type({text})" for text in texts)
            block.add(f"if not ({types} is str): raise Surprise('a text of {selection.type.name} is none')")
        return f"{self._named(record_type(tuple(field.key for field in selection.fields)))}({', '.join(values)})"

    def _load(self, block: Block, field: FieldPlan, node: str, value: str, place: _Place) -> _Place:
        """Write how a field of a node is read into a variable, and return the place of that value."""
        if isinstance(field.source, Attribute):
            block.add(f"{value} = {node}.{field.source.name}")
            return _Place(place.origin, place.start, (*place.steps, field))
        number = len(self._sites)
        self._sites.append(BatchSite(field, place.origin, place.start, place.steps))
        block.add(f"{value} = next(b[{number}])")
        block.add(f"if isinstance({value}, Exception): raise Surprise({_where(field)})")
        return _Place(field, f"l{number}")

    def _prefetch(self, roots: str) -> Block:
        function = Block(f"async def prefetch(fetch, {roots}):")
        for number, site in enumerate(self._sites):
            function.add(f"p{number} = []")
            block, name = function, site.start
            if isinstance(site.origin.source, BatchSource):
                block, name = block.begin(f"for x in {name}:"), "x"
            for n, step in enumerate((site.origin, *site.steps)):
                if n:
                    block.add(f"y{n} = {name}.{cast(Attribute, step.source).name}")
                    name = f"y{n}"
                block, name = _each(block, cast(GraphQLOutputType, step.definition and step.definition.type), name, f"z{n}")
            block.add(f"p{number}.append({name})")
            function.add(f"l{number} = await fetch({number}, p{number})")
        function.add(f"return [{', '.join(f'iter(l{n})' for n in range(len(self._sites)))}]")
        return function

    def _named(self, value: object) -> str:
        """Return a name for a value that the code uses."""
        name = f"n{next(self._numbers)}"
        self._names[name] = value
        return name


def _each(block: Block, type_: GraphQLOutputType, name: str, item: str) -> tuple[Block, str]:
    """Write how all objects of a value are reached, and return the block that has each of them, and its name there."""
    if isinstance(type_, GraphQLNonNull):
        type_ = type_.of_type
    else:
        block = block.begin(f"if {name} is not None:")
    if isinstance(type_, GraphQLList):
        return _each(block.begin(f"for {item} in {name}:"), type_.of_type, item, f"{item}_")
    return block, name


def _is_text(type_: GraphQLOutputType) -> bool:
    return isinstance(type_, GraphQLNonNull) and isinstance(type_.of_type, LEAVES) and type_.of_type.name in leaf.TEXTS


def _where(field: FieldPlan) -> str:
    return repr(f"{field.parent.name}.{field.name}")
