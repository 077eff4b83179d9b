"""Where the sources are, and the Vercel integration of this installation."""

from __future__ import annotations

import msgspec


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

    def __repr__(self) -> str:
        return f"<SourceSettings of {self.github_api_url}, {self.vercel_api_url} and {self.itunes_url}>"  # the rest has secrets

    @property
    def vercel_secrets(self) -> tuple[str, ...]:
        """What deliveries of the integration may be signed with."""
        return tuple(secret for secret in (self.vercel_client_secret, self.vercel_old_client_secret) if secret)
