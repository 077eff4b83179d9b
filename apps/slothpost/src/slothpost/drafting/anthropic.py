"""The drafter that asks a model of Anthropic, by its Messages API."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from slothpost.drafting.answer import draft_of
from slothpost.drafting.drafter import Draft, DrafterFailed, DraftRequest
from slothpost.drafting.endpoint import Endpoint
from slothpost.drafting.model_api import ModelApi, OpenSession, decoded
from slothpost.drafting.prompt import SCHEMA, instructions_of, messages_of
from slothpost.model import DrafterName

VERSION = "2023-06-01"
MAX_TOKENS = 4_000  # some models think before they write

_SERVICE = "Anthropic"


class _Block(msgspec.Struct):
    type: str
    text: str = ""


class _Answer(msgspec.Struct):
    content: tuple[_Block, ...] = ()
    stop_reason: str | None = None


class AnthropicDrafter:
    """Writes with a model of Anthropic, or of another service with the same API."""

    name: ClassVar[DrafterName] = "anthropic"

    def __init__(self, endpoint: Endpoint, open_session: OpenSession, timeout_s: float) -> None:
        self._endpoint = endpoint
        self._api = ModelApi(_SERVICE, endpoint, open_session, timeout_s)

    async def draft(self, request: DraftRequest) -> Draft:
        headers = {"anthropic-version": VERSION}
        if self._endpoint.key:
            headers["x-api-key"] = self._endpoint.key
        body = {
            "model": self._endpoint.model,
            "max_tokens": MAX_TOKENS,
            "system": instructions_of(request),
            "messages": messages_of(request),
            "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
        }
        return draft_of(_text(await self._api.post("/v1/messages", body, headers)), request, self.name, _SERVICE)


def _text(body: bytes) -> str:
    """Return the first text of an answer; what comes before it are thoughts."""
    answer = decoded(body, _Answer, _SERVICE)
    if answer.stop_reason == "refusal":
        raise DrafterFailed(f"{_SERVICE} declined to write this post")
    text = next((block.text for block in answer.content if block.type == "text" and block.text.strip()), "")
    if answer.stop_reason == "max_tokens":
        raise DrafterFailed(f"the answer of {_SERVICE} was cut off", answer=text or None)
    if not text:
        raise DrafterFailed(f"{_SERVICE} answered without a text")
    return text
