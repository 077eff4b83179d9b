"""What an operator sets for drafters, from the environment: SLOTHPOST_ANTHROPIC_KEY and so on."""

from __future__ import annotations

import msgspec

from slothpost.drafting.endpoint import Endpoint
from slothpost.model import DrafterName

ANTHROPIC_URL = "https://api.anthropic.com"
OPENAI_URL = "https://api.openai.com/v1"


class DrafterSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Without a key there is no Anthropic; without a model there is no OpenAI-compatible one, whose local servers need no key."""

    anthropic_key: str | None = None
    anthropic_url: str = ANTHROPIC_URL
    anthropic_model: str = "claude-sonnet-5"
    openai_key: str | None = None
    openai_url: str = OPENAI_URL
    openai_model: str | None = None

    def __repr__(self) -> str:
        return f"<DrafterSettings with {', '.join(self.available)}>"  # the keys are for no log

    @property
    def available(self) -> tuple[DrafterName, ...]:
        """The drafters that work without an endpoint of a user's own."""
        names: list[DrafterName] = ["template"]
        if self.anthropic_key:
            names.append("anthropic")
        if self.openai_model:
            names.append("openai")
        return tuple(names)

    def endpoint(self, name: DrafterName) -> Endpoint | None:
        """Return the operator's endpoint of a drafter, None if there is none."""
        if name not in self.available:
            return None
        if name == "anthropic":
            return Endpoint(url=self.anthropic_url, model=self.anthropic_model, key=self.anthropic_key)
        if name == "openai" and self.openai_model:
            return Endpoint(url=self.openai_url, model=self.openai_model, key=self.openai_key)
        return None
