"""The primary key of an entity and its indexes, as a class declares them, and as `Order.key` and `Order.pending` use them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, TypeVarTuple, overload

from tickler.errors import InvalidInput
from tickler.table.condition import And, Condition, Lookup, Unknown
from tickler.table.selection import Selection, Span
from tickler.table.template import Template

if TYPE_CHECKING:
    from tickler.table.attribute import Attr
    from tickler.table.declaration import Missing
    from tickler.table.definition import EntityDefinition

A1 = TypeVar("A1")
A2 = TypeVar("A2")
A3 = TypeVar("A3")
E = TypeVar("E")
P = TypeVar("P")
S = TypeVar("S")
V = TypeVar("V")
Ts = TypeVarTuple("Ts")
Us = TypeVarTuple("Us")

AnyTemplate = Template[*tuple[Any, ...]]
KeyPair = tuple[str, str]


class ItemId(Generic[E]):
    """The primary key of one item: `Order.key.id("c1", placed_at, "o1")`, or `order.key`."""

    __slots__ = ("definition", "pk", "sk")

    def __init__(self, definition: EntityDefinition, pk: str, sk: str) -> None:
        self.definition = definition
        self.pk = pk
        self.sk = sk

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ItemId) and (self.pk, self.sk, self.definition) == (other.pk, other.sk, other.definition)

    def __hash__(self) -> int:
        return hash((self.pk, self.sk))

    def __repr__(self) -> str:
        return f"{self.definition.name}({self.pk!r}, {self.sk!r})"


def not_an_id(given: object) -> InvalidInput:
    return InvalidInput(f"{given!r} is not the key of an item: pass order.key, or Order.key.id(…) with its values")


class _Pair:
    """The templates of a partition key and a sort key."""

    def __init__(self, pk: object, sk: object) -> None:
        self.pk: AnyTemplate = Template.of(pk)
        self.sk: AnyTemplate = Template.of(sk)
        self.name = ""
        self.definition: EntityDefinition | None = None

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def bound(self) -> EntityDefinition:
        if self.definition is None:
            raise InvalidInput(f"{self.name or 'this key'} belongs to no entity: declare it in the body of one")
        return self.definition

    def render(self, lookup: Lookup) -> KeyPair | Unknown | None:
        """Return both halves of the key; None if an attribute of either is missing, so that no half is ever written alone."""
        pk = self.pk.render(lookup)
        sk = self.sk.render(lookup)
        if pk is None or sk is None:
            return None
        return (pk, sk) if isinstance(pk, str) and isinstance(sk, str) else Unknown.UNKNOWN

    def select(self, index: str | None, partition: tuple[object, ...]) -> Selection[Any, Any]:
        definition = self.bound()
        pk = self.pk.fill(partition)
        if not self.sk.parts:
            only = self.sk.fill(())
            return Selection(definition, self.sk, Span(index, pk, only, only))
        return Selection(definition, self.sk, Span.below(index, pk, self.sk.prefix(())))


class BoundKey(Generic[E, P, S, *Ts]):
    """The primary key of an entity: call it with the values of its partition to select items, or `id` with all values."""

    def __init__(self, pair: _Pair) -> None:
        self._pair = pair

    def __repr__(self) -> str:
        return self._pair.name

    def id(self, *values: *Ts) -> ItemId[E]:
        """Return the key of one item, from the attributes of its partition key and then of its sort key."""
        pair = self._pair
        cut = len(pair.pk.parts)
        return ItemId(pair.bound(), pair.pk.fill(values[:cut]), pair.sk.fill(values[cut:]))

    def __call__(self: BoundKey[E, tuple[*Us], S, *tuple[Any, ...]], *partition: *Us) -> Selection[E, S]:
        return self._pair.select(None, partition)


class BoundIndex(Generic[E, P, S]):
    """An index of an entity: call it with the values of its partition to select items."""

    def __init__(self, index: Index[Any, Any]) -> None:
        self.declared = index

    def __repr__(self) -> str:
        return self.declared.name

    def __call__(self: BoundIndex[E, tuple[*Us], S], *partition: *Us) -> Selection[E, S]:
        return self.declared.select(self.declared.gsi, partition)


class Key(_Pair, Generic[P, S, *Ts]):
    """The primary key of an entity, from a partition key and a sort key: constants and attributes, joined by `/`."""

    @overload
    def __init__(self: Key[tuple[()], tuple[()]], pk: str, sk: str) -> None: ...
    @overload
    def __init__(self: Key[tuple[()], tuple[V], V], pk: str, sk: Attr[V]) -> None: ...
    @overload
    def __init__(self: Key[tuple[()], tuple[*Us], *Us], pk: str, sk: Template[*Us]) -> None: ...
    @overload
    def __init__(self: Key[tuple[A1], tuple[()], A1], pk: Template[A1] | Attr[A1], sk: str) -> None: ...
    @overload
    def __init__(self: Key[tuple[A1], tuple[V], A1, V], pk: Template[A1] | Attr[A1], sk: Attr[V]) -> None: ...
    @overload
    def __init__(self: Key[tuple[A1], tuple[*Us], A1, *Us], pk: Template[A1] | Attr[A1], sk: Template[*Us]) -> None: ...
    @overload
    def __init__(self: Key[tuple[A1, A2], tuple[()], A1, A2], pk: Template[A1, A2], sk: str) -> None: ...
    @overload
    def __init__(self: Key[tuple[A1, A2], tuple[V], A1, A2, V], pk: Template[A1, A2], sk: Attr[V]) -> None: ...
    @overload
    def __init__(self: Key[tuple[A1, A2], tuple[*Us], A1, A2, *Us], pk: Template[A1, A2], sk: Template[*Us]) -> None: ...
    @overload
    def __init__(self: Key[tuple[A1, A2, A3], tuple[()], A1, A2, A3], pk: Template[A1, A2, A3], sk: str) -> None: ...
    @overload
    def __init__(self: Key[tuple[A1, A2, A3], tuple[V], A1, A2, A3, V], pk: Template[A1, A2, A3], sk: Attr[V]) -> None: ...
    @overload
    def __init__(
        self: Key[tuple[A1, A2, A3], tuple[*Us], A1, A2, A3, *Us],
        pk: Template[A1, A2, A3],
        sk: Template[*Us],
    ) -> None: ...
    def __init__(self, pk: Any, sk: Any) -> None:
        super().__init__(pk, sk)

    @overload
    def __get__(self, obj: None, owner: type[E]) -> BoundKey[E, P, S, *Ts]: ...
    @overload
    def __get__(self, obj: E, owner: Any) -> ItemId[E]: ...
    def __get__(self, obj: Any, owner: Any) -> Any:
        return BoundKey(self) if obj is None else self.bound().id_of(obj)


class Index(_Pair, Generic[P, S]):
    """A sparse index: an item is in it while `when` holds and all attributes of its key are present.

    `gsi` names the index of the table, which several entities share; `pk` and `sk` are as in `Key`.
    """

    @overload
    def __init__(
        self: Index[tuple[()], tuple[()]], gsi: str, pk: str, sk: str, *, when: Condition[Any] | None = None
    ) -> None: ...
    @overload
    def __init__(
        self: Index[tuple[()], tuple[V]], gsi: str, pk: str, sk: Attr[V | Missing], *, when: Condition[Any] | None = None
    ) -> None: ...
    @overload
    def __init__(
        self: Index[tuple[()], tuple[V]], gsi: str, pk: str, sk: Attr[V], *, when: Condition[Any] | None = None
    ) -> None: ...
    @overload
    def __init__(
        self: Index[tuple[()], tuple[*Us]],
        gsi: str,
        pk: str,
        sk: Template[*Us],
        *,
        when: Condition[Any] | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Index[tuple[A1], tuple[()]], gsi: str, pk: Attr[A1 | Missing], sk: str, *, when: Condition[Any] | None = None
    ) -> None: ...
    @overload
    def __init__(
        self: Index[tuple[A1], tuple[V]], gsi: str, pk: Attr[A1 | Missing], sk: Attr[V], *, when: Condition[Any] | None = None
    ) -> None: ...
    @overload
    def __init__(
        self: Index[tuple[A1], tuple[*Us]],
        gsi: str,
        pk: Attr[A1 | Missing],
        sk: Template[*Us],
        *,
        when: Condition[Any] | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Index[tuple[*Ts], tuple[()]],
        gsi: str,
        pk: Template[*Ts],
        sk: str,
        *,
        when: Condition[Any] | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Index[tuple[A1], tuple[()]], gsi: str, pk: Attr[A1], sk: str, *, when: Condition[Any] | None = None
    ) -> None: ...
    @overload
    def __init__(
        self: Index[tuple[*Ts], tuple[V]],
        gsi: str,
        pk: Template[*Ts],
        sk: Attr[V | Missing],
        *,
        when: Condition[Any] | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Index[tuple[*Ts], tuple[V]],
        gsi: str,
        pk: Template[*Ts],
        sk: Attr[V],
        *,
        when: Condition[Any] | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Index[tuple[A1], tuple[V]], gsi: str, pk: Attr[A1], sk: Attr[V], *, when: Condition[Any] | None = None
    ) -> None: ...
    @overload
    def __init__(
        self: Index[tuple[*Ts], tuple[*Us]],
        gsi: str,
        pk: Template[*Ts],
        sk: Template[*Us],
        *,
        when: Condition[Any] | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Index[tuple[A1], tuple[*Us]],
        gsi: str,
        pk: Attr[A1],
        sk: Template[*Us],
        *,
        when: Condition[Any] | None = None,
    ) -> None: ...
    def __init__(self, gsi: str, pk: Any, sk: Any, *, when: Condition[Any] | None = None) -> None:
        super().__init__(pk, sk)
        self.gsi = gsi
        self.when = when

    def position(self, lookup: Lookup) -> KeyPair | Unknown | None:
        """Return the key under which an item is in this index, None if it is not, UNKNOWN if that cannot be told."""
        holds = True if self.when is None else self.when.evaluate(lookup)
        if holds is False:
            return None
        key = self.render(lookup)
        return Unknown.UNKNOWN if holds is None and key is not None else key

    def membership(self) -> Condition[Any]:
        """Return the condition under which an item is in this index: `when`, and that the attributes of its key are present."""
        present = [part.path.exists() for template in (self.pk, self.sk) for part in template.parts]
        return And([*([] if self.when is None else [self.when]), *present])

    @overload
    def __get__(self, obj: None, owner: type[E]) -> BoundIndex[E, P, S]: ...
    @overload
    def __get__(self, obj: object, owner: Any) -> bool: ...
    def __get__(self, obj: Any, owner: Any) -> Any:
        """Return the index; on an instance, whether that item is in it."""
        if obj is None:
            return BoundIndex(self)
        return isinstance(self.position(self.bound().lookup(obj)), tuple)
