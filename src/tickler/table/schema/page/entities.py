"""Each entity with its attributes, and lines from them to the keys that they make."""

from __future__ import annotations

from tickler.table.schema.page.markup import Markup, joined, tag
from tickler.table.schema.page.parts import colour, half, place, section, while_text
from tickler.table.schema.schema import AttributeSchema, EntitySchema, KeyComponent, KeySchema, Schema

ROLES = {
    "version": "each write raises it",
    "expires": "from then on the item is absent",
    "deleted": "soft_delete sets it",
}


def entities(schema: Schema) -> Markup:
    intro = "A line leads from an attribute to the key that it is part of; a dashed one to the condition that it decides."
    return section("entities", "Which attributes make which key", intro, *(_entity(schema, each) for each in schema.entities))


def _entity(schema: Schema, entity: EntitySchema) -> Markup:
    stored = f" stored as {entity.stored_as}" if entity.stored_as != entity.name else ""
    used = {attribute for key in entity.keys for attribute in _attributes_of(key)}
    attributes = [_attribute(attribute, attribute.name in used) for attribute in entity.attributes]
    keys = [_key(schema, key) for key in entity.keys]
    return tag(
        "article",
        tag("h3", entity.name, joined(tag("span", stored, class_="hint") if stored else "")),
        tag(
            "div",
            tag("ul", *attributes, class_="attributes", aria_label=f"Attributes of {entity.name}"),
            tag("div", *keys, class_="keys"),
            class_="wiring",
        ),
        class_="card",
        id=f"entity-{entity.name}",
    )


def _attribute(attribute: AttributeSchema, is_used: bool) -> Markup:
    optional = tag("span", "?", class_="optional", title="may be missing") if attribute.optional else ""
    default = "" if attribute.default is None else f" = {attribute.default}"
    fields = ", ".join(f"{field.name}: {field.type}" for field in attribute.fields)
    notes = [
        tag("code", f"{attribute.type}{default}", class_="type"),
        tag("span", attribute.role, class_="role", title=ROLES[attribute.role]) if attribute.role else "",
        tag("code", f"{{{fields}}}", class_="type") if fields else "",
    ]
    return tag(
        "li",
        tag("b", attribute.name, optional),
        tag("span", *notes, class_="notes"),
        data_attribute=attribute.name,
        class_=None if is_used else "unused",
    )


def _key(schema: Schema, key: KeySchema) -> Markup:
    rows = [_half("pk", key.partition), _half("sk", key.sort)]
    if key.gsi is not None:
        deciding = {"data_from": " ".join(key.deciding), "data_kind": "while"} if key.deciding else {}
        rows.append(tag("div", while_text(key), class_="end while", **deciding))
    example = tag("div", tag("span", "for example ", class_="hint"), tag("code", " · ".join(key.example)), class_="example")
    return tag(
        "div",
        tag("div", tag("b", key.name), place(schema, key.gsi), class_="of"),
        *rows,
        example,
        class_=f"made {colour(schema, key.gsi)}",
    )


def _half(label: str, components: tuple[KeyComponent, ...]) -> Markup:
    names = list(dict.fromkeys(each.attribute for each in components if each.attribute is not None))
    made_of = {"data_from": " ".join(names), "data_kind": "key"} if names else {}
    return tag("div", half(label, components), class_="end", **made_of)


def _attributes_of(key: KeySchema) -> set[str]:
    return {each.attribute for each in (*key.partition, *key.sort) if each.attribute is not None} | set(key.deciding)
