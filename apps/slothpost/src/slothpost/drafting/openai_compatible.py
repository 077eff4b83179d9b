"""The drafter that asks any model behind a Chat Completions API: OpenAI, Ollama, LM Studio, vLLM, OpenRouter, Groq."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from slothpost.drafting.answer import draft_of
from slothpost.drafting.drafter import Draft, DrafterFailed, DraftRequest
from slothpost.drafting.endpoint import Endpoint
from slothpost.drafting.model_api import ModelApi, OpenSession, decoded
from slothpost.drafting.prompt import SCHEMA, instructions_of, messages_of
from slothpost.model import DrafterName

_SERVICE = "the OpenAI-compatible service"


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Answer(msgspec.Struct):
    choices: tuple[_Choice, ...] = ()


class OpenAiCompatibleDrafter:
    """Writes with the model behind an endpoint. Its address ends where `/chat/completions` begins."""

    name: ClassVar[DrafterName] = "openai"

    def __init__(self, endpoint: Endpoint, open_session: OpenSession, timeout_s: float) -> None:
        self._endpoint = endpoint
        self._api = ModelApi(_SERVICE, endpoint, open_session, timeout_s)

    async def draft(self, request: DraftRequest) -> Draft:
        headers = {"authorization": f"Bearer {self._endpoint.key}"} if self._endpoint.key else {}
        body = {
            "model": self._endpoint.model,
            "messages": [{"role": "system", "content": instructions_of(request)}, *messages_of(request)],
            "response_format": {"type": "json_schema", "json_schema": {"name": "post", "strict": True, "schema": SCHEMA}},
        }
        return draft_of(_text(await self._api.post("/chat/completions", body, headers)), request, self.name, _SERVICE)


def _text(body: bytes) -> str:
    answer = decoded(body, _Answer, _SERVICE)
    if not answer.choices:
        raise DrafterFailed(f"{_SERVICE} answered without a text")
    choice = answer.choices[0]
    if choice.message.refusal or choice.finish_reason == "content_filter":
        raise DrafterFailed(f"{_SERVICE} declined to write this post")
    text = (choice.message.content or "").strip()
    if choice.finish_reason == "length":
        raise DrafterFailed(f"the answer of {_SERVICE} was cut off", answer=text or None)
    if not text:
        raise DrafterFailed(f"{_SERVICE} answered without a text")
    return text
