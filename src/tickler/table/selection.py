"""What a query asks for: a partition of the table or of an index, and a range of its sort keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, TypeVarTuple

from tickler.errors import InvalidInput
from tickler.table.key_codec import SEPARATOR, after_component, prefix_range
from tickler.table.template import KeyPart, Template

if TYPE_CHECKING:
    from tickler.table.definition import EntityDefinition

E_co = TypeVar("E_co", covariant=True)
S = TypeVar("S")
A1 = TypeVar("A1")
Us = TypeVarTuple("Us")


class Span(NamedTuple):
    """A range of sort keys in one partition, in key order. Bounds are included, `high` only if `high_included`; None is no bound.

    A bound that ends in `$` is no key of an item, so that including it changes nothing.
    """

    gsi: str | None  # None: the table itself
    partition: str
    low: str | None = None
    high: str | None = None
    high_included: bool = True

    @classmethod
    def below(cls, gsi: str | None, partition: str, prefix: str | None) -> Span:
        return cls(gsi, partition) if prefix is None else cls(gsi, partition, *prefix_range(prefix))

    def contains(self, sort: str) -> bool:
        if self.low is not None and sort < self.low:
            return False
        return self.high is None or sort < self.high or (self.high_included and sort == self.high)


class Selection(Generic[E_co, S]):
    """Items of one entity in one partition. `under` goes down a hierarchical sort key; the others bound its next attribute."""

    def __init__(
        self,
        definition: EntityDefinition,
        template: Template[*tuple[Any, ...]],
        span: Span,
        values: tuple[object, ...] = (),
        backwards: bool = False,
    ) -> None:
        self.definition = definition
        self.span = span
        self.backwards = backwards
        self._template = template
        self._values = values

    def __repr__(self) -> str:
        return f"a selection of {self.definition.name} items"

    def under(self: Selection[E_co, tuple[A1, *Us]], value: A1) -> Selection[E_co, tuple[*Us]]:
        """Keep the items whose next attribute of the sort key is `value`."""
        self._next()
        values = (*self._values, value)
        below = Span.below(self.span.gsi, self.span.partition, self._template.prefix(values))
        if len(values) == len(self._template.parts):
            key = self._template.fill(values)
            below = below._replace(low=key, high=key)
        narrowed = self._bounded(low=below.low, high=below.high, high_included=below.high_included)
        return Selection(self.definition, self._template, narrowed.span, values, self.backwards)

    def since(self: Selection[E_co, tuple[A1, *Us]], value: A1) -> Selection[E_co, tuple[A1, *Us]]:
        """Keep the items from `value` on, itself included."""
        return self._from(value, included=True)

    def after(self: Selection[E_co, tuple[A1, *Us]], value: A1) -> Selection[E_co, tuple[A1, *Us]]:
        """Keep the items behind `value`."""
        return self._from(value, included=False)

    def until(self: Selection[E_co, tuple[A1, *Us]], value: A1) -> Selection[E_co, tuple[A1, *Us]]:
        """Keep the items up to `value`, itself included."""
        return self._to(value, included=True)

    def before(self: Selection[E_co, tuple[A1, *Us]], value: A1) -> Selection[E_co, tuple[A1, *Us]]:
        """Keep the items before `value`."""
        return self._to(value, included=False)

    def between(self: Selection[E_co, tuple[A1, *Us]], low: A1, high: A1) -> Selection[E_co, tuple[A1, *Us]]:
        """Keep the items from `low` to `high`, both included."""
        return self.since(low).until(high)

    def starting_with(self: Selection[E_co, tuple[str, *Us]], prefix: str) -> Selection[E_co, tuple[str, *Us]]:
        """Keep the items whose next attribute, a text, begins with `prefix`."""
        start = self._bound(prefix)
        return self._bounded(low=start, high=_behind_all(start), high_included=False)

    def newest_first(self) -> Selection[E_co, S]:
        """Read from the end: the highest sort keys first."""
        return Selection(self.definition, self._template, self.span, self._values, not self.backwards)

    def _next(self) -> KeyPart:
        parts = self._template.parts[len(self._values) :]
        if not parts:
            raise InvalidInput(f"the sort key {self._template!r} has no further attribute to select by")
        return parts[0]

    def _bound(self, value: object) -> str:
        """Return the key up to and with `value`."""
        prefix = self._template.prefix(self._values)
        text = self._next().encode(value)
        return text if prefix is None else f"{prefix}{SEPARATOR}{text}"

    def _from(self, value: object, *, included: bool) -> Selection[Any, Any]:
        bound = self._bound(value)
        return self._above(bound, included) if not self._next().descending else self._below(bound, included)

    def _to(self, value: object, *, included: bool) -> Selection[Any, Any]:
        bound = self._bound(value)
        return self._below(bound, included) if not self._next().descending else self._above(bound, included)

    def _above(self, key: str, included: bool) -> Selection[Any, Any]:
        return self._bounded(low=key if included else after_component(key))

    def _below(self, key: str, included: bool) -> Selection[Any, Any]:
        return self._bounded(high=after_component(key)) if included else self._bounded(high=key, high_included=False)

    def _bounded(self, *, low: str | None = None, high: str | None = None, high_included: bool = True) -> Selection[Any, Any]:
        span = self.span
        if low is not None and (span.low is None or low > span.low):
            span = span._replace(low=low)
        if high is not None and (span.high is None or high < span.high or (high == span.high and not high_included)):
            span = span._replace(high=high, high_included=high_included)
        return Selection(self.definition, self._template, span, self._values, self.backwards)


def _behind_all(prefix: str) -> str | None:
    """Return the smallest text that is behind every text with this prefix; None if there is none."""
    for end in range(len(prefix), 0, -1):
        following = ord(prefix[end - 1]) + 1
        if following == 0xD800:  # surrogates are no characters
            following = 0xE000
        if following <= 0x10FFFF:
            return prefix[: end - 1] + chr(following)
    return None
