"""Refusals, and how they are answered: problem+json (RFC 9457), with the field at fault and the remedy."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

import msgspec

from tickler.errors import TicklerError
from tickler.web.asgi import Send

MEDIA_TYPE = "application/problem+json"


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error. `field` names the part of the request at fault, if there is one."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None


class Refused(TicklerError):
    """The request is refused, with this HTTP status. `headers` go along with the answer."""

    def __init__(self, status: int, detail: str, field: str | None = None, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.field = field
        self.headers = headers or {}


class Answer(msgspec.Struct, frozen=True):
    """A whole response, to be passed on to the framework's own response class."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def problem_of(refused: Refused) -> Problem:
    return Problem("about:blank", HTTPStatus(refused.status).phrase, refused.status, str(refused), refused.field)


def problem_answer(problem: Problem, headers: Mapping[str, str]) -> Answer:
    return Answer(problem.status, {"content-type": MEDIA_TYPE, **headers}, msgspec.json.encode(problem))


async def send_answer(send: Send, answer: Answer, *, is_head: bool = False) -> None:
    """Send a response; to a HEAD without its body."""
    headers = {**answer.headers, "content-length": str(len(answer.body))}
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
    await send({"type": "http.response.body", "body": b"" if is_head else answer.body, "more_body": False})
