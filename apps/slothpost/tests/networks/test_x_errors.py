"""What answers of X mean, in each form that they were seen in."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from slothpost.networks.network import Limited, NotSent, Refused, TokenRejected
from slothpost.networks.request import Answer
from slothpost.networks.x_errors import post_error, token_error

NOW = datetime(2027, 3, 1, 8, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
PROBLEM = "https://api.twitter.com/2/problems"


def answer(status: int, content: object, headers: Mapping[str, str] | None = None) -> Answer:
    return Answer(status, headers or {}, msgspec.json.encode(content))


def reset(at: datetime) -> str:
    return str(int(at.timestamp()))


def test_a_spent_cap_is_told_by_its_type_whatever_its_status() -> None:
    content = {
        "title": "UsageCapExceeded",
        "detail": "Usage cap exceeded: Monthly product cap",
        "type": f"{PROBLEM}/usage-capped",
    }
    for status in (403, 429):
        error = post_error(answer(status, content), NOW)
        assert isinstance(error, Limited)
        assert error.until == NOW + timedelta(hours=1)
        assert "Usage cap exceeded: Monthly product cap" in str(error)


def test_an_older_limit_has_a_list_of_errors() -> None:
    headers = {"x-rate-limit-reset": reset(NOW + 3 * MINUTE), "x-rate-limit-remaining": "0"}
    error = post_error(answer(429, {"errors": [{"code": 88, "message": "Rate limit exceeded"}]}, headers), NOW)
    assert isinstance(error, Limited)
    assert (str(error), error.until) == ("X asks to wait: Rate limit exceeded", NOW + 3 * MINUTE)


def test_the_limit_of_a_day_outlasts_that_of_minutes() -> None:
    headers = {
        "x-rate-limit-remaining": "88",
        "x-rate-limit-reset": reset(NOW + 15 * MINUTE),
        "x-user-limit-24hour-remaining": "0",
        "x-user-limit-24hour-reset": reset(NOW + timedelta(hours=7)),
    }
    error = post_error(answer(429, {"detail": "Too Many Requests"}, headers), NOW)
    assert isinstance(error, Limited)
    assert error.until == NOW + timedelta(hours=7)


def test_a_window_that_is_not_used_up_says_nothing_about_the_one_that_is() -> None:
    headers = {
        "x-rate-limit-remaining": "88",
        "x-rate-limit-reset": reset(NOW + 15 * MINUTE),
        "x-app-limit-24hour-remaining": "0",
        "x-app-limit-24hour-reset": reset(NOW + 2 * MINUTE),
    }
    error = post_error(answer(429, {}, headers), NOW)
    assert isinstance(error, Limited)
    assert error.until == NOW + 2 * MINUTE


@pytest.mark.parametrize("text", ["", "soon", "-5", "99999999999999999999"])
def test_a_reset_that_is_no_instant_counts_as_none(text: str) -> None:
    error = post_error(answer(429, {}, {"x-rate-limit-reset": text}), NOW)
    assert isinstance(error, Limited)
    assert error.until == NOW + 15 * MINUTE


def test_another_kind_of_sign_in_needs_another_connection() -> None:
    content = {"title": "Unsupported Authentication", "detail": "Use OAuth 2.0", "type": f"{PROBLEM}/unsupported-authentication"}
    assert isinstance(post_error(answer(403, content), NOW), TokenRejected)


def test_a_refusal_without_words_has_its_status() -> None:
    error = post_error(Answer(403, {}, b"<html>"), NOW)
    assert isinstance(error, Refused)
    assert (str(error), error.is_duplicate) == ("X refused: status 403", False)


def test_words_are_one_line_and_not_endless() -> None:
    error = post_error(answer(403, {"detail": "no\n\nway " + "x" * 1000}), NOW)
    assert "\n" not in str(error)
    assert len(str(error)) < 330


@pytest.mark.parametrize("status", [400, 401])
def test_only_a_fault_of_the_token_ends_a_connection(status: int) -> None:
    content = {"error": "invalid_request", "error_description": "Value passed for the token was invalid."}
    error = token_error(answer(status, content), NOW)
    assert isinstance(error, TokenRejected)
    assert "Value passed for the token was invalid." in str(error)


@pytest.mark.parametrize(
    ("status", "content"),
    [
        (401, {"error": "unauthorized_client", "error_description": "Missing valid authorization header"}),
        (400, {"error": "unsupported_grant_type"}),
        (403, "<html>blocked</html>"),  # something on the way
        (404, {"title": "Not Found"}),
    ],
)
def test_faults_of_this_installation_end_no_connection(status: int, content: object) -> None:
    assert isinstance(token_error(answer(status, content), NOW), NotSent)


def test_tokens_are_limited_too() -> None:
    error = token_error(answer(429, {}, {"x-rate-limit-reset": reset(NOW + MINUTE)}), NOW)
    assert isinstance(error, Limited)
    assert error.until == NOW + MINUTE
