"""What errors of the Threads API mean, by their codes."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from slothpost.networks.graph_errors import meaning, read_graph_error
from slothpost.networks.network import Limited, NetworkError, NotSent, Refused, TokenRejected, Unclear
from slothpost.networks.request import Answer, Request

NOW = datetime(2027, 3, 1, 8, 0, tzinfo=UTC)
READS = Request(method="GET", url="http://127.0.0.1")
ACTS = Request(method="POST", url="http://127.0.0.1", acts=True)


def error_of(content: object, request: Request, status: int = 400) -> NetworkError:
    return meaning(read_graph_error(Answer(status, {}, msgspec.json.encode(content))), request, NOW)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        *((code, TokenRejected) for code in (190, 102)),
        *((code, TokenRejected) for code in (10, 200, 294)),  # a permission that only a new connection gives
        *((code, Limited) for code in (4, 17, 32, 341, 613)),
        *((code, Refused) for code in (100, 368, 506)),
    ],
)
def test_each_code_has_one_meaning(code: int, kind: type[NetworkError]) -> None:
    error = error_of({"error": {"message": "no", "type": "OAuthException", "code": code, "fbtrace_id": "A"}}, ACTS)
    assert type(error) is kind


@pytest.mark.parametrize("content", [{"code": 1}, {"code": 2}, {"code": 999, "is_transient": True}])
def test_what_threads_calls_transient_is_unclear_only_if_it_may_have_acted(content: dict[str, object]) -> None:
    assert isinstance(error_of({"error": {"message": "try again", **content}}, READS), NotSent)
    assert isinstance(error_of({"error": {"message": "try again", **content}}, ACTS), Unclear)


def test_only_a_duplicate_is_one() -> None:
    duplicate, blocked = (error_of({"error": {"message": "no", "code": code}}, ACTS) for code in (506, 368))
    assert isinstance(duplicate, Refused)
    assert isinstance(blocked, Refused)
    assert (duplicate.is_duplicate, blocked.is_duplicate) == (True, False)


def test_people_get_the_words_that_are_for_people() -> None:
    error = {"message": "(#24) resource", "code": 24, "error_user_title": "Gone", "error_user_msg": "The media cannot be found."}
    assert str(error_of({"error": error}, ACTS)) == "Threads refused: The media cannot be found."


def test_errors_of_the_token_endpoint_have_another_shape() -> None:
    content = {"error_type": "OAuthException", "code": 400, "error_message": "Invalid authorization code"}
    assert str(error_of(content, READS)) == "Threads refused: Invalid authorization code"


@pytest.mark.parametrize("content", ["<html>", [], {"error": "no"}, {"error": {"code": "190"}}])
def test_an_error_in_no_known_shape_is_refused_with_its_status(content: object) -> None:
    assert str(error_of(content, ACTS)) == "Threads refused: status 400"
