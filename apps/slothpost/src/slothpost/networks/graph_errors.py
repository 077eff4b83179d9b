"""What the errors of the Threads API mean, which has those of Meta's Graph API."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from http import HTTPStatus

import msgspec

from slothpost.networks.network import Limited, NetworkError, Refused, TokenRejected
from slothpost.networks.request import Answer, Request
from slothpost.networks.words import first_words

LIMIT_PAUSE = timedelta(hours=1)  # limits are over moving windows, and errors do not say when there is room again

_TRANSIENT = frozenset({1, 2})
_TOKEN = frozenset({102, 190})
_PERMISSION = frozenset({10, *range(200, 300)})
_THROTTLED = frozenset({4, 17, 32, 341, 613})
_DUPLICATE = 506
_UNKNOWN_ID = frozenset({24, 100})  # 24: there is no such thing; 100: it has no such field, as it is something else
_MEDIA_NOT_FOUND = 4279009


class GraphError(msgspec.Struct, frozen=True):
    """The parts of an error that decide. `said` is for people."""

    status: int
    code: int
    subcode: int
    is_transient: bool
    said: str

    @property
    def is_unknown_id(self) -> bool:
        return self.code in _UNKNOWN_ID or self.subcode == _MEDIA_NOT_FOUND

    @property
    def is_missing_container(self) -> bool:
        """True if a container cannot be published because Threads does not find it, at times seconds after making it."""
        return self.subcode == _MEDIA_NOT_FOUND


def read_graph_error(answer: Answer) -> GraphError:
    error = answer.content().get("error")
    fields: Mapping[str, object] = error if isinstance(error, dict) else answer.content()
    return GraphError(
        answer.status,
        _number(fields.get("code")),
        _number(fields.get("error_subcode")),
        fields.get("is_transient") is True,
        first_words(fields, "error_user_msg", "message", "error_message", otherwise=f"status {answer.status}"),
    )


def meaning(error: GraphError, request: Request, now: datetime) -> NetworkError:
    """Return what an error that answered a request means for the post."""
    if error.code in _TOKEN or error.status == HTTPStatus.UNAUTHORIZED:
        return TokenRejected(f"Threads no longer accepts this connection: {error.said}")
    if error.code in _PERMISSION:
        return TokenRejected(f"Threads does not let this connection post: {error.said}")
    if error.code in _THROTTLED or error.status == HTTPStatus.TOO_MANY_REQUESTS:
        return Limited(f"Threads asks to wait: {error.said}", now + LIMIT_PAUSE)
    if error.code in _TRANSIENT or error.is_transient:
        return request.lost(f"Threads failed: {error.said}")
    return Refused(f"Threads refused: {error.said}", is_duplicate=error.code == _DUPLICATE)


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
