"""The form that creates or edits a product."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_args

import msgspec
from litestar import Response, get, post

from slothpost.drafting.own_endpoint import with_own_endpoint, without_own_endpoint
from slothpost.errors import InvalidField
from slothpost.model import DrafterName, Product
from slothpost.people.products import ProductChanges
from slothpost.web.context import HttpRequest, part, slothpost_of, user_of
from slothpost.web.pages.form_errors import FORM, FieldErrors, errors_of
from slothpost.web.pages.rendering import page, read_form, redirect
from tickler.errors import InvalidInput
from tickler.web import FormFields

TEXTS = ("name", "description", "url")
CHOICES = ("drafter", "undecided")
LISTS = ("domains", "rules", "banned")  # one entry a line
NUMBERS = ("lead_minutes", "grace_minutes")
SAMPLES = "samples"  # posts of several lines, with a blank line in between
TELLS_PRIVATE = "tells_private"
OWN_MODEL = ("model_url", "model", "model_key")
FIELDS = (*TEXTS, *CHOICES, *LISTS, *NUMBERS, SAMPLES, TELLS_PRIVATE)

DRAFTERS: tuple[DrafterName, ...] = get_args(DrafterName)

_OWN_MODEL_NAMES = {"url": "model_url", "key": "model_key"}
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*")
_PLACE = re.compile(r"(?P<reason>.*?) - at `\$\.(?P<field>\w+)[^`]*`", re.DOTALL)


@get("/new-product")
async def new(request: HttpRequest) -> Response[str]:
    user_of(request)
    return await _form(request, None, {"drafter": "template", "undecided": "hold", "lead_minutes": "720", "grace_minutes": "60"})


@post("/new-product", status_code=200)
async def create(request: HttpRequest) -> Response[Any]:
    fields = await read_form(request)
    try:
        created = await slothpost_of(request).products.create(user_of(request).id, _changes(fields))
    except (InvalidField, InvalidInput) as error:
        return await _form(request, None, fields, errors_of(error, FIELDS))
    return redirect(f"/products/{created.id}", "created")


@get("/products/{product_id:str}/edit")
async def edit(request: HttpRequest) -> Response[str]:
    product_id = part(request, "product_id")
    product = await slothpost_of(request).products.get(user_of(request).id, product_id)
    return await _form(request, product, _shown(product))


@post("/products/{product_id:str}/edit", status_code=200)
async def save(request: HttpRequest) -> Response[Any]:
    product_id = part(request, "product_id")
    slothpost, user, fields = slothpost_of(request), user_of(request), await read_form(request)
    product = await slothpost.products.get(user.id, product_id)
    try:
        await slothpost.products.update(user.id, product_id, _changes(fields))
    except (InvalidField, InvalidInput) as error:
        return await _form(request, product, fields, errors_of(error, FIELDS))
    return redirect(f"/products/{product_id}", "saved")


@post("/products/{product_id:str}/own-model", status_code=200)
async def set_own_model(request: HttpRequest) -> Response[Any]:
    """Set or remove the language model that drafts for this product alone. Its key is never shown again."""
    slothpost, user, fields = slothpost_of(request), user_of(request), await read_form(request)
    product = await slothpost.products.get(user.id, part(request, "product_id"))
    typed = {name: fields.get(name, "").strip() for name in OWN_MODEL}

    def decide(stored: Product) -> Product:
        if not any(typed.values()):
            return without_own_endpoint(stored)
        encryption, key = slothpost.t.encryption, typed["model_key"] or None
        return with_own_endpoint(stored, encryption, url=typed["model_url"], model=typed["model"], key=key)

    try:
        await slothpost.products.change(user.id, product.id, decide)
    except InvalidField as error:
        wrong = InvalidField(_OWN_MODEL_NAMES.get(error.field, error.field), error.reason)
        return await _form(request, product, {**_shown(product), **typed}, errors_of(wrong, OWN_MODEL))
    return redirect(f"/products/{product.id}/edit#own-model", "saved")


@post("/products/{product_id:str}/delete", status_code=200)
async def delete(request: HttpRequest) -> Response[Any]:
    """Delete a product, if its name was entered."""
    slothpost, user, fields = slothpost_of(request), user_of(request), await read_form(request)
    product = await slothpost.products.get(user.id, part(request, "product_id"))
    if " ".join(fields.get("confirm", "").split()) != product.name:
        wrong = InvalidField("confirm", f"enter {product.name} to delete it")
        return await _form(request, product, _shown(product), errors_of(wrong, ("confirm",)))
    await slothpost.product_deletion.delete(user.id, product.id)
    return redirect("/products", "deleted")


HANDLERS = [new, create, edit, save, set_own_model, delete]


async def _form(
    request: HttpRequest, product: Product | None, fields: Mapping[str, str], errors: FieldErrors | None = None
) -> Response[str]:
    shown = {name: fields.get(name, "").replace("\r\n", "\n") for name in (*FIELDS, *OWN_MODEL)} | {"model_key": ""}
    return await page(
        request, "product_form", "products", 422 if errors else 200,
        product=product, fields=shown, errors=errors or {}, drafters=DRAFTERS,
        available=slothpost_of(request).settings.drafters.available,
    )  # fmt: skip


def _changes(fields: FormFields) -> ProductChanges:
    """Read the form. Every field that it has is set; `InvalidField` names one that cannot be."""
    unknown = fields.keys() - set(FIELDS)
    if unknown:
        raise InvalidField(FORM, f"{min(unknown)[:40]!r} is an unknown field: reload the page")
    values: dict[str, object] = {name: fields[name].strip() for name in (*TEXTS, *CHOICES) if name in fields}
    values |= {name: fields[name].splitlines() for name in LISTS if name in fields}
    values |= {name: _number(name, fields[name]) for name in NUMBERS if name in fields}
    if SAMPLES in fields:
        values[SAMPLES] = _BLANK_LINES.split(fields[SAMPLES].replace("\r\n", "\n").strip())
    values[TELLS_PRIVATE] = fields.get(TELLS_PRIVATE) == "on"
    try:
        return msgspec.convert(values, ProductChanges)
    except msgspec.ValidationError as error:
        found = _PLACE.fullmatch(str(error))
        raise InvalidField(found["field"] if found else FORM, found["reason"] if found else str(error)) from None


def _number(field: str, text: str) -> int:
    stripped = text.strip()
    if not stripped.isascii() or not stripped.isdecimal() or len(stripped) > 9:
        raise InvalidField(field, f"{stripped[:40]!r} is not a number of minutes: use digits")
    return int(stripped)


def _shown(product: Product) -> dict[str, str]:
    voice = product.voice
    return {
        "name": product.name,
        "description": product.description,
        "url": product.url or "",
        "domains": "\n".join(product.domains),
        "rules": "\n".join(voice.rules),
        "banned": "\n".join(voice.banned),
        "samples": "\n\n".join(voice.samples),
        "drafter": product.drafter,
        "undecided": product.undecided,
        "lead_minutes": str(product.lead_minutes),
        "grace_minutes": str(product.grace_minutes),
        "tells_private": "on" if product.tells_private else "",
        "model_url": product.drafter_url or "",
        "model": product.drafter_model or "",
    }
