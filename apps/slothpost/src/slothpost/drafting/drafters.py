"""Drafts with the drafter of a product, and with templates where that one fails: there is always a draft."""

from __future__ import annotations

import aiohttp
from msgspec.structs import replace

from slothpost.drafting.anthropic import AnthropicDrafter
from slothpost.drafting.drafter import Draft, Drafter, DrafterFailed, DraftRequest, Rejected
from slothpost.drafting.drafter_settings import DrafterSettings
from slothpost.drafting.endpoint import Endpoint
from slothpost.drafting.model_api import MAX_ANSWER_BYTES
from slothpost.drafting.openai_compatible import OpenAiCompatibleDrafter
from slothpost.drafting.own_endpoint import own_endpoint
from slothpost.drafting.template import TemplateDrafter
from slothpost.drafting.validate import problems_of
from slothpost.model import DrafterName, Product
from tickler import Tickler

TIMEOUT_S = 40.0  # of one round; there are two at most

_SERVICES = {"anthropic": "Anthropic", "openai": "an OpenAI-compatible service"}


class Drafters:
    """Writes drafts that passed our own validation. It never raises `DrafterFailed`, and takes two timeouts at most."""

    def __init__(self, settings: DrafterSettings, t: Tickler, timeout_s: float = TIMEOUT_S) -> None:
        self._settings = settings
        self._t = t
        self._timeout_s = timeout_s
        self._templates = TemplateDrafter()

    async def draft(self, request: DraftRequest, name: DrafterName | None = None) -> Draft:
        """Return a draft of the named drafter, or of the product's; of templates with the reason if that one has none."""
        chosen = request.product.drafter if name is None else name
        if chosen == "template":
            return await self._templates.draft(request)
        try:
            return await _written(self._drafter(request.product, chosen), request)
        except DrafterFailed as failed:
            draft = await self._templates.draft(request)
            return replace(draft, note="; ".join(filter(None, (f"written from a template: {failed}", draft.note))))

    def _drafter(self, product: Product, name: DrafterName) -> Drafter:
        own = own_endpoint(product, self._t.encryption) if product.drafter == name else None
        endpoint = own or self._settings.endpoint(name)
        if endpoint is None:
            raise DrafterFailed(f"{_SERVICES[name]} is not set up: the operator or you have to enter a model and its key")
        kind = AnthropicDrafter if name == "anthropic" else OpenAiCompatibleDrafter
        return kind(endpoint, self._open_session, self._timeout_s)

    def _open_session(self, endpoint: Endpoint) -> aiohttp.ClientSession:
        """Open a session: past the address guard only to where the operator sends requests."""
        if endpoint.is_guarded:
            return self._t.http_session(timeout=self._timeout_s, max_bytes=2 * MAX_ANSWER_BYTES)
        return aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())


async def _written(drafter: Drafter, request: DraftRequest) -> Draft:
    """Ask, validate, and ask once more with what was wrong."""
    rejected = await _rejected(drafter, request)
    if isinstance(rejected, Draft):
        return rejected
    again = await _rejected(drafter, replace(request, rejected=rejected))
    if isinstance(again, Draft):
        return again
    raise DrafterFailed(f"what {drafter.name} wrote could not be used, also at the second try: {'; '.join(again.reasons)}")


async def _rejected(drafter: Drafter, request: DraftRequest) -> Draft | Rejected:
    """Return the draft, or what is wrong with it; `DrafterFailed` where asking again would not help."""
    try:
        draft = await drafter.draft(request)
    except DrafterFailed as failed:
        if failed.answer is None:
            raise
        return Rejected(failed.answer, (str(failed),))
    problems = problems_of(draft.text, request)
    return Rejected(draft.text, problems) if problems else draft
