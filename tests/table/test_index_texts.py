"""Which changes of a definition make the stored keys of an index outdated."""

from __future__ import annotations

from tickler.table import Attr, Entity, Index, Key, Table, attr
from tickler.table.index_texts import index_texts, outdated


def table_with(usual_level: int, usual_note: str = "") -> Table:
    table = Table("docs")

    class Doc(Entity, table=table):
        id: Attr[str] = attr()
        level: Attr[int] = attr(default=usual_level)
        note: Attr[str] = attr(default=usual_note)
        key = Key("DOC" / id, "DOC")
        high = Index("gsi1", "HIGH", id, when=level > 3)

    return table


def test_another_default_of_an_attribute_of_an_index_is_another_definition() -> None:
    """An item that was stored before the attribute was declared is then in the index, or not."""
    assert outdated(table_with(5), index_texts(table_with(0))) == ["Doc/gsi1"]
    assert outdated(table_with(0), index_texts(table_with(0))) == []


def test_a_default_of_any_other_attribute_does_not_matter() -> None:
    assert outdated(table_with(0, usual_note="x"), index_texts(table_with(0))) == []
