"""A server on the loopback interface that behaves as the Messages API of Anthropic and the Chat Completions API are documented.

It refuses requests that they would refuse, and answers with what a test has scripted.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from aiohttp import web

ANTHROPIC_KEY = "sk-ant-REDACTED"
OPENAI_KEY = "sk-proj-openai-secret-key-0123456789"

Scripted = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ModelServer:
    """`answers` are used up one after the other; `requests` are the bodies that came."""

    def __init__(self) -> None:
        self.answers: list[str | Scripted] = []
        self.requests: list[dict[str, Any]] = []
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def __aenter__(self) -> ModelServer:
        app = web.Application()
        app.router.add_post("/v1/messages", self._messages)
        app.router.add_post("/v1/chat/completions", self._completions)
        self._runner = web.AppRunner(app, shutdown_timeout=0.01)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    def will_write(self, text: str, used: Sequence[int] = (1,), angle: str = "announce") -> None:
        self.answers.append(json.dumps({"text": text, "used": list(used), "angle": angle}))

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("x-api-key") != ANTHROPIC_KEY:
            return _anthropic_error(401, "authentication_error", f"invalid x-api-key {request.headers.get('x-api-key')}")
        if request.headers.get("anthropic-version") != "2023-06-01":
            return _anthropic_error(400, "invalid_request_error", "anthropic-version: header is required")
        body = await request.json()
        self.requests.append(body)
        unknown = body.keys() - {"model", "max_tokens", "messages", "system", "output_config"}
        if unknown or not {"model", "max_tokens", "messages"} <= body.keys() or _is_out_of_turn(body["messages"]):
            return _anthropic_error(400, "invalid_request_error", f"messages: invalid request {sorted(unknown)}")
        if body["output_config"]["format"]["type"] != "json_schema" or _is_loose(body["output_config"]["format"]["schema"]):
            return _anthropic_error(
                400, "invalid_request_error", "output_config.format.schema: additionalProperties must be false"
            )
        if body["model"] == "no-such-model":
            return _anthropic_error(404, "not_found_error", "model: no-such-model")
        answer = self.answers.pop(0)
        if not isinstance(answer, str):
            return await answer(request)
        thoughts = {"type": "thinking", "thinking": "hm", "signature": "s"}
        return web.json_response(
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": body["model"],
                "content": [thoughts, {"type": "text", "text": answer}],
                "stop_reason": "end_turn",
                "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }
        )

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("authorization") != f"Bearer {OPENAI_KEY}":
            return _openai_error(
                401, f"Incorrect API key provided: {request.headers.get('authorization')}. You can find it there."
            )
        body = await request.json()
        self.requests.append(body)
        format = body["response_format"]
        if format["type"] != "json_schema" or not format["json_schema"]["strict"] or _is_loose(format["json_schema"]["schema"]):
            return _openai_error(400, "Invalid schema for response_format 'post': additionalProperties must be false")
        if body["messages"][0]["role"] != "system" or _is_out_of_turn(body["messages"][1:]):
            return _openai_error(400, "Invalid value for messages")
        if body["model"] == "no-such-model":
            return _openai_error(404, "The model `no-such-model` does not exist or you do not have access to it.")
        answer = self.answers.pop(0)
        if not isinstance(answer, str):
            return await answer(request)
        return completion(answer)


def completion(content: str | None, *, finish_reason: str = "stop", refusal: str | None = None) -> web.Response:
    said: dict[str, object] = {"role": "assistant", "content": content, "refusal": refusal, "annotations": []}
    choice = {"index": 0, "message": said, "logprobs": None, "finish_reason": finish_reason}
    return web.json_response({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]})


def message(content: Sequence[Mapping[str, object]], stop_reason: str) -> web.Response:
    return web.json_response(
        {"id": "msg_1", "type": "message", "role": "assistant", "content": content, "stop_reason": stop_reason}
    )


def answering(status: int, body: object = None, text: str | None = None, headers: Mapping[str, str] | None = None) -> Scripted:
    """Answer with a status, and with JSON or a text."""

    async def answer(_: web.Request) -> web.StreamResponse:
        payload = text if text is not None else json.dumps(body if body is not None else {})
        return web.Response(status=status, text=payload, content_type="application/json", headers=headers)

    return answer


async def never(_: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def dripping(request: web.Request) -> web.StreamResponse:
    """Send a byte now and then, without an end."""
    response = web.StreamResponse(headers={"content-type": "application/json"})
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(0.02)


async def hanging_up(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.close()
    return web.Response()


def _anthropic_error(status: int, type: str, message: str) -> web.Response:
    return web.json_response({"type": "error", "error": {"type": type, "message": message}, "request_id": "req_1"}, status=status)


def _openai_error(status: int, message: str) -> web.Response:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return web.json_response({"error": error}, status=status)


def _is_out_of_turn(messages: Sequence[Mapping[str, str]]) -> bool:
    roles = [each["role"] for each in messages]
    return roles != ["user", "assistant", "user"][: len(roles)] or any(not each["content"] for each in messages)


def _is_loose(schema: Mapping[str, Any]) -> bool:
    return schema.get("additionalProperties") is not False or set(schema["required"]) != set(schema["properties"])
