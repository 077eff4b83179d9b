"""The stores that there are, for whoever may see them."""

from pricebook.stores.stores import Stores

__all__ = ["Stores"]
