"""`/api/products`: what a user builds."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from slothpost.model import DrafterName, Product, Voice
from slothpost.model.product import Undecided
from slothpost.people.products import ProductChanges
from slothpost.web.api.operation import Call, NoBody, NoQuery, operation
from tickler.table import MISSING

# Its defaults are those of every product.
_PRODUCT = Product(id="", user="", name="", voice=Voice(), created_at=datetime.fromtimestamp(0, UTC))


def _described(description: str, name: str) -> Meta:
    """Publish the default that the code has."""
    return Meta(description=f"{description} Default: {json.dumps(getattr(_PRODUCT, name))}.")


_Url = Annotated[str | None, Meta(description="Its address, whose domain drafts may link to. Null removes it.")]
_Domains = Annotated[list[str], Meta(description="The only domains that drafts may link to.")]
_Samples = Annotated[list[str], Meta(description="Posts of yours, so that drafts sound like you.")]
_Rules = Annotated[list[str], Meta(description="How to write, in your words.")]
_Banned = Annotated[list[str], Meta(description="Words that no draft may have.")]
_Drafter = Annotated[DrafterName, _described("What writes drafts.", "drafter")]
_Lead = Annotated[int, _described("How long before its slot a draft is made.", "lead_minutes")]
_Grace = Annotated[int, _described("How late a post may still go out without asking you.", "grace_minutes")]
_Undecided = Annotated[Undecided, _described("What becomes of a draft that nobody decided on.", "undecided")]
_TellsPrivate = Annotated[bool, _described("Whether drafts may name what is in private repositories.", "tells_private")]


class ProductPatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to change about a product. Lists are replaced as a whole."""

    name: str | UnsetType = UNSET
    description: Annotated[str, _described("One sentence, for drafts.", "description")] | UnsetType = UNSET
    url: _Url | UnsetType = UNSET
    domains: _Domains | UnsetType = UNSET
    samples: _Samples | UnsetType = UNSET
    rules: _Rules | UnsetType = UNSET
    banned: _Banned | UnsetType = UNSET
    drafter: _Drafter | UnsetType = UNSET
    lead_minutes: _Lead | UnsetType = UNSET
    grace_minutes: _Grace | UnsetType = UNSET
    undecided: _Undecided | UnsetType = UNSET
    tells_private: _TellsPrivate | UnsetType = UNSET


class NewProduct(ProductPatch, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A product to be created."""

    name: str


class ProductBody(msgspec.Struct, frozen=True, kw_only=True):
    """A product."""

    id: str
    name: str
    description: str
    url: str | None
    domains: list[str]
    samples: list[str]
    rules: list[str]
    banned: list[str]
    drafter: DrafterName
    lead_minutes: int
    grace_minutes: int
    undecided: Undecided
    tells_private: bool
    paused: bool
    created_at: datetime


class ProductList(msgspec.Struct, frozen=True):
    """All products of a user."""

    items: list[ProductBody]


class DeletedProduct(msgspec.Struct, frozen=True):
    """The id of a product that is gone."""

    id: str


@operation("GET", "/products")
async def list_products(call: Call[NoQuery, NoBody]) -> ProductList:
    """List your products."""
    return ProductList([_body(product) for product in await call.slothpost.products.list(call.user.id)])


@operation("POST", "/products", status=201)
async def create_product(call: Call[NoQuery, NewProduct]) -> ProductBody:
    """Create a product, with a channel for each network. They have no plan yet."""
    return _body(await call.slothpost.products.create(call.user.id, _changes(call.body)))


@operation("GET", "/products/{product}")
async def get_product(call: Call[NoQuery, NoBody]) -> ProductBody:
    """Get a product."""
    return _body(await call.slothpost.products.get(*call.product))


@operation("PATCH", "/products/{product}")
async def update_product(call: Call[NoQuery, ProductPatch]) -> ProductBody:
    """Change some fields of a product, and keep the rest."""
    return _body(await call.slothpost.products.update(*call.product, _changes(call.body)))


@operation("DELETE", "/products/{product}")
async def delete_product(call: Call[NoQuery, NoBody]) -> DeletedProduct:
    """Delete a product with its plans, posts, activity and connections. What is out on a network stays there."""
    await call.slothpost.product_deletion.delete(*call.product)
    return DeletedProduct(call.names["product"])


@operation("POST", "/products/{product}/pause")
async def pause_product(call: Call[NoQuery, NoBody]) -> ProductBody:
    """Pause a product: nothing is drafted or published for it."""
    return await _paused(call, paused=True)


@operation("POST", "/products/{product}/resume")
async def resume_product(call: Call[NoQuery, NoBody]) -> ProductBody:
    """Resume a product."""
    return await _paused(call, paused=False)


OPERATIONS = (list_products, create_product, get_product, update_product, delete_product, pause_product, resume_product)


async def _paused(call: Call[NoQuery, NoBody], *, paused: bool) -> ProductBody:
    await call.slothpost.plans.pause_product(*call.product, paused=paused)
    return _body(await call.slothpost.products.get(*call.product))


def _changes(fields: ProductPatch) -> ProductChanges:
    given = msgspec.to_builtins(fields)
    return ProductChanges(**{**given, "url": given["url"] or ""} if "url" in given else given)


def _body(product: Product) -> ProductBody:
    return ProductBody(
        id=product.id,
        name=product.name,
        description=product.description,
        url=None if product.url is MISSING else product.url,
        domains=product.domains,
        samples=product.voice.samples,
        rules=product.voice.rules,
        banned=product.voice.banned,
        drafter=product.drafter,
        lead_minutes=product.lead_minutes,
        grace_minutes=product.grace_minutes,
        undecided=product.undecided,
        tells_private=product.tells_private,
        paused=product.paused,
        created_at=product.created_at,
    )
