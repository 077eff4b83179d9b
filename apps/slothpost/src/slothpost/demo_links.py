"""What the pages of a demo link to: the networks and the sources that run on this machine."""

from __future__ import annotations

import msgspec


class DemoLinks(msgspec.Struct, frozen=True, kw_only=True):
    """Addresses of the local stand-ins, and what a visitor types into the wizards."""

    x_url: str  # of the account that posts
    threads_url: str
    sources_url: str  # where the visitor ships something
    github_token: str
    app_id: str
