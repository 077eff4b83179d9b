"""The endpoint of a language model that a user set for a product. Its key is encrypted for that product."""

from __future__ import annotations

from typing import Protocol

from slothpost.drafting.drafter import DrafterFailed
from slothpost.drafting.endpoint import Endpoint, checked_endpoint
from slothpost.model import Product
from tickler.errors import DecryptionFailed
from tickler.table import MISSING, evolve

KEY_PURPOSE = "slothpost: drafter key of {}"


class Encryption(Protocol):
    """What is needed of `Tickler.encryption`."""

    def encrypt(self, text: str, *, purpose: str) -> str: ...

    def decrypt(self, encrypted: str, *, purpose: str) -> str: ...


def with_own_endpoint(product: Product, encryption: Encryption, *, url: str, model: str, key: str | None) -> Product:
    """Return the product with an endpoint of its own; `InvalidField` if it cannot be one. Without a key the old one is gone."""
    endpoint = checked_endpoint(url=url, model=model, key=key)
    encrypted = None if endpoint.key is None else encryption.encrypt(endpoint.key, purpose=KEY_PURPOSE.format(product.id))
    return evolve(
        product,
        drafter_url=endpoint.url,
        drafter_model=endpoint.model,
        drafter_key=MISSING if encrypted is None else encrypted,
    )


def without_own_endpoint(product: Product) -> Product:
    return evolve(product, drafter_url=MISSING, drafter_model=MISSING, drafter_key=MISSING)


def own_endpoint(product: Product, encryption: Encryption) -> Endpoint | None:
    """Return the endpoint that a user set, None if there is none."""
    if product.drafter_url is MISSING or product.drafter_model is MISSING:
        return None
    try:
        key = None
        if product.drafter_key is not MISSING:
            key = encryption.decrypt(product.drafter_key, purpose=KEY_PURPOSE.format(product.id))
    except DecryptionFailed:
        raise DrafterFailed("the key of the product's own model cannot be decrypted any more: enter it again") from None
    return Endpoint(url=product.drafter_url, model=product.drafter_model, key=key, is_guarded=True)
