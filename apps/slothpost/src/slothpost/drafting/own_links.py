"""Which links a draft may have: those to the product's own domains."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from urllib.parse import urlsplit

from slothpost.model import Product
from slothpost.text.check import check_text
from tickler.table import MISSING

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^\s<>\"']+", re.IGNORECASE)
_DOTTED = re.compile(r"[\w-]+(?:\.[\w-]+)+")


def foreign_links(text: str, links: Sequence[str], product: Product) -> tuple[str, ...]:
    """Return which links of a text lead elsewhere than to the product. `links` are those that the network makes."""
    allowed = allowed_domains(product)
    return tuple(link for link in dict.fromkeys([*links, *_ADDRESS.findall(text)]) if not _is_own(link, allowed))


def allowed_domains(product: Product) -> frozenset[str]:
    """Return the domains of a product. Their subdomains are allowed, too."""
    own = {domain.lower().strip().rstrip(".") for domain in product.domains}
    if product.url is not MISSING:
        own.add((urlsplit(product.url).hostname or "").lower())
    return frozenset(own - {""})


def without_links(text: str) -> str:
    """Return a text without addresses, whose bare names are no links any more: "Trakt.tv" becomes "Trakt", and "2.0" stays."""
    text = " ".join(_ADDRESS.sub(" ", text).split()) if "://" in text else text
    return _DOTTED.sub(lambda found: _name(found[0]), text) if "." in text else text


def _name(dotted: str) -> str:
    is_link = not dotted.replace(".", "").isdigit() and bool(check_text("x", dotted).links)
    return dotted.partition(".")[0] if is_link else dotted


def _is_own(link: str, allowed: Collection[str]) -> bool:
    if "\\" in link:
        return False
    try:
        host = urlsplit(link if "://" in link else f"https://{link}").hostname or ""
    except ValueError:
        return False
    is_web = "://" not in link or link.lower().startswith(("https://", "http://"))
    return is_web and any(host == domain or host.endswith(f".{domain}") for domain in allowed)
