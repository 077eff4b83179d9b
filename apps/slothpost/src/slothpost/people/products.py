"""Products: what a user builds, with a channel for each network."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import SplitResult, urlsplit

import msgspec

from slothpost.errors import InvalidField, NotAllowed, NotFound
from slothpost.identifiers import new_id
from slothpost.model import Channel, DrafterName, Product, User, Voice
from slothpost.model.product import Undecided
from slothpost.plan import MAX_DRAFT_LEAD
from slothpost.planning.circumstances import Circumstances
from slothpost.planning.plans import CHANNELS, Plans
from slothpost.quotas import MAX_PRODUCTS
from slothpost.text.invisible import visible, visible_line
from slothpost.utc_now import utc_now
from tickler import Tickler
from tickler.table import MISSING, OpenTable, Transaction, evolve

MAX_NAME = 80
MAX_DESCRIPTION = 300
MAX_LISTED = 50  # samples, rules, banned words, domains
MAX_LINE = 600
MAX_GRACE_MINUTES = 24 * 60

_DOMAIN = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}")


class ProductChanges(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to change about a product; None leaves it as it is. An empty `url` removes it."""

    name: str | None = None
    description: str | None = None
    url: str | None = None
    domains: list[str] | None = None
    samples: list[str] | None = None
    rules: list[str] | None = None
    banned: list[str] | None = None
    drafter: DrafterName | None = None
    lead_minutes: int | None = None
    grace_minutes: int | None = None
    undecided: Undecided | None = None
    tells_private: bool | None = None


class Products:
    def __init__(self, t: Tickler, db: OpenTable, plans: Plans) -> None:
        self._t = t
        self._db = db
        self._plans = plans
        self._circumstances = Circumstances(db)

    async def create(self, user: str, changes: ProductChanges) -> Product:
        """Create a product with its channels, which have no plan yet."""
        owner = await self._db.get(User.key.id(user))
        if owner is None:
            raise NotFound("user")
        if changes.name is None:
            raise InvalidField("name", f"use 1 to {MAX_NAME} characters")
        if await self._db.count(Product.of_user(user)) >= MAX_PRODUCTS:
            raise NotAllowed(f"you have {MAX_PRODUCTS} products, which is the most: use one that you have")
        now = utc_now(self._t)
        product = changed(Product(id=new_id(), user=user, name="", voice=Voice(), created_at=now), changes)
        async with self._db.transaction() as tx:
            tx.create(product)
            for name in CHANNELS:
                tx.create(Channel(product=product.id, name=name, user=user, zone=owner.zone, active_since=now))
        return product

    async def get(self, user: str, id: str) -> Product:
        """Return a product; `NotFound` also if it is somebody else's."""
        return await self._circumstances.product(user, id)

    async def list(self, user: str) -> list[Product]:
        """Return a user's products, the oldest first."""
        found = [product async for product in self._db.iterate(Product.of_user(user))]
        return sorted(found, key=lambda product: (product.created_at, product.id))

    async def update(self, user: str, id: str, changes: ProductChanges) -> Product:
        """Change a product. With another lead, its drafts are scheduled anew."""
        before, after = await self.change(user, id, lambda stored: changed(stored, changes))
        if after.lead_minutes != before.lead_minutes:
            await self._plans.rearrange(user, id)
        return after

    async def change(self, user: str, id: str, decide: Callable[[Product], Product]) -> tuple[Product, Product]:
        """Replace a product by what `decide` makes of it, again if it was paused or connected meanwhile. Returns both."""

        async def work(tx: Transaction) -> tuple[Product, Product]:
            stored = await tx.get(Product.key.id(id))
            if stored is None or stored.user != user:
                raise NotFound("product")
            after = decide(stored)
            tx.put(after)
            return stored, after

        return await self._db.transact(work)

    async def set_topic_tag(self, user: str, id: str, tag: str) -> None:
        """Set what Threads shows above the posts of a product; empty for nothing."""
        await self.get(user, id)
        stripped = tag.strip().removeprefix("#")
        if len(stripped) > 50 or any(character in ".&" for character in stripped):
            raise InvalidField("topic_tag", "use up to 50 characters, without . and &")
        change = Channel.topic_tag.set(stripped) if stripped else Channel.topic_tag.remove()
        await self._db.update(Channel.key.id(id, "threads"), change)


def changed(product: Product, changes: ProductChanges) -> Product:
    """Return the product with the changes; `InvalidField` names the first that cannot be made."""
    found = product
    if changes.name is not None:
        found = evolve(found, name=_line("name", changes.name, MAX_NAME))
    if changes.description is not None:
        found = evolve(found, description=_line("description", changes.description, MAX_DESCRIPTION, may_be_empty=True))
    if changes.url is not None:
        found = _with_url(found, changes.url.strip())
    if changes.domains is not None:
        found = evolve(found, domains=[_domain(each) for each in _lines("domains", changes.domains)])
    voice = {
        name: _lines(name, value) for name in ("samples", "rules", "banned") if (value := getattr(changes, name)) is not None
    }
    found = evolve(found, voice=evolve(found.voice, **voice))
    if changes.lead_minutes is not None:
        most = int(MAX_DRAFT_LEAD.total_seconds()) // 60
        found = evolve(found, lead_minutes=_number("lead_minutes", changes.lead_minutes, most))
    if changes.grace_minutes is not None:
        found = evolve(found, grace_minutes=_number("grace_minutes", changes.grace_minutes, MAX_GRACE_MINUTES))
    chosen = {name: value for name in ("drafter", "undecided", "tells_private") if (value := getattr(changes, name)) is not None}
    return evolve(found, **chosen)


def _with_url(product: Product, url: str) -> Product:
    """Set the address of a product, whose domain drafts may link to."""
    if not url:
        return evolve(product, url=MISSING)
    parts = _web_address(url if "://" in url else f"https://{url}")
    if parts is None or parts.hostname is None:
        raise InvalidField("url", "use the address of your product, such as https://example.com")
    domain = _domain(parts.hostname, "url")
    domains = product.domains if domain in product.domains else [*product.domains, domain][-MAX_LISTED:]
    return evolve(product, url=parts.geturl(), domains=domains)


def _web_address(url: str) -> SplitResult | None:
    """Return the parts of an address that a post may have; None for anything else."""
    try:
        parts = urlsplit(url)
    except ValueError:  # brackets that are none of an IPv6 address
        return None
    is_plain = len(url) <= MAX_LINE and url.isprintable() and " " not in url and parts.username is None
    return parts if is_plain and parts.scheme in ("https", "http") else None


def _domain(text: str, field: str = "domains") -> str:
    domain = text.strip().lower().removeprefix("www.")
    if not _DOMAIN.fullmatch(domain):
        raise InvalidField(field, f"{text!r} is not a domain: use one such as example.com")
    return domain


def _line(field: str, text: str, most: int, *, may_be_empty: bool = False) -> str:
    line = visible_line(text)
    if len(line) > most or (not line and not may_be_empty):
        raise InvalidField(field, f"use 1 to {most} characters")
    return line


def _lines(field: str, lines: list[str]) -> list[str]:
    kept = [stripped for line in lines if (stripped := visible(line).strip())]
    if len(kept) > MAX_LISTED or any(len(line) > MAX_LINE for line in kept):
        raise InvalidField(field, f"use at most {MAX_LISTED} entries of up to {MAX_LINE} characters")
    return kept


def _number(field: str, number: int, most: int) -> int:
    if not 0 <= number <= most:
        raise InvalidField(field, f"{number} is not between 0 and {most:,}")
    return number
