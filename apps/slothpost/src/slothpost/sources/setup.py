"""What a page shows of a connection."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from slothpost.model import Connection, Source
from tickler.table import MISSING

SOURCE_NAMES: Mapping[Source, str] = {"github": "GitHub", "vercel": "Vercel", "appstore": "The App Store"}
VERCEL_RETURN_PATH = "/connections/vercel"  # where Vercel sends people back to: the integration's redirect URL
VERCEL_WEBHOOK_PATH = "/webhooks/vercel"  # of the integration; with a product, of a webhook of the user's own account


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a connection. `secret` is there only when it was just made: it is never shown again."""

    source: Source
    url_path: str  # of the webhook
    secret: str | None = None
    external_id: str | None = None  # of the repository, project or app; None: not chosen
    name: str | None = None
    is_private: bool = False
    has_own_webhook: bool = False  # GitHub: slothpost made it; Vercel: the user's account has one
    is_polled: bool = False
    live_at: datetime | None = None
    seen_at: datetime | None = None
    polled_at: datetime | None = None
    ignored: int = 0
    last_ignored: str | None = None
    problem: str | None = None  # of the last poll
    broken: str | None = None  # why it must be connected again

    @property
    def is_live(self) -> bool:
        """Tell whether a signed delivery has come."""
        return self.live_at is not None

    def __repr__(self) -> str:
        return f"<Setup of {self.source}: {self.name}>"  # the rest has a secret


def webhook_path(source: Source, product: str) -> str:
    return VERCEL_WEBHOOK_PATH if source == "vercel" else f"/webhooks/{source}/{product}"


def setup_of(connection: Connection, secret: str | None = None) -> Setup:
    """Return what a page shows of a connection."""

    def known(value: object) -> bool:
        return value is not MISSING

    source = connection.source
    is_chosen = connection.external_id is not MISSING
    has_access = source == "appstore" or known(connection.token) or known(connection.installation)
    return Setup(
        source=source,
        url_path=webhook_path(source, connection.product),
        secret=secret,
        external_id=None if connection.external_id is MISSING else connection.external_id,
        name=None if connection.name is MISSING else connection.name,
        is_private=connection.is_private,
        has_own_webhook=known(connection.hook) or (source == "vercel" and known(connection.secret)),
        is_polled=is_chosen and has_access and connection.broken is MISSING,
        live_at=None if connection.live_at is MISSING else connection.live_at,
        seen_at=None if connection.seen_at is MISSING else connection.seen_at,
        polled_at=None if connection.polled_at is MISSING else connection.polled_at,
        ignored=connection.ignored,
        last_ignored=None if connection.last_ignored is MISSING else connection.last_ignored,
        problem=None if connection.poll_error is MISSING else connection.poll_error,
        broken=None if connection.broken is MISSING else connection.broken,
    )
