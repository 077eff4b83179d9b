"""Where the sources are, and the Vercel integration of this installation."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from slothpost.errors import InvalidField


class SourceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The operator chooses the hosts; users never do. Without the integration of Vercel, its projects cannot be connected."""

    github_api_url: str = "https://api.github.com"
    vercel_api_url: str = "https://api.vercel.com"
    vercel_url: str = "https://vercel.com"
    itunes_url: str = "https://itunes.apple.com"
    vercel_client_id: str | None = None
    vercel_client_secret: str | None = None
    vercel_old_client_secret: str | None = None  # while it is replaced: deliveries are accepted with both
    vercel_integration_slug: str | None = None

    def __post_init__(self) -> None:
        for name in ("github_api_url", "vercel_api_url", "vercel_url", "itunes_url"):
            if not _is_web_address(getattr(self, name)):
                raise InvalidField(name, f"{getattr(self, name)!r} is not an address such as https://api.example.com")

    def __repr__(self) -> str:
        return f"<SourceSettings of {self.github_api_url}, {self.vercel_api_url} and {self.itunes_url}>"  # the rest has secrets

    @property
    def vercel_secrets(self) -> tuple[str, ...]:
        """What deliveries of the integration may be signed with."""
        return tuple(secret for secret in (self.vercel_client_secret, self.vercel_old_client_secret) if secret)


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        is_http = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        return is_http and not parts.query and url.isprintable()
    except ValueError:
        return False
