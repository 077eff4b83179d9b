"""What the errors of the X API mean."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from http import HTTPStatus

from slothpost.networks.network import Limited, NetworkError, NotSent, Refused, TokenRejected
from slothpost.networks.request import Answer
from slothpost.networks.words import first_words

RATE_LIMIT_PAUSE = timedelta(minutes=15)  # the window of X's limits
CAP_PAUSE = timedelta(hours=1)  # a cap ends when somebody pays, so ask again from time to time
MAX_PAUSE = timedelta(days=1)  # the longest window of X's limits

# The last part of a problem's `type`, whose host is api.x.com or api.twitter.com.
_CAPPED = frozenset({"usage-capped", "credits", "credits-depleted"})
_OTHER_LOGIN_NEEDED = "unsupported-authentication"
_RATE_LIMITED = "rate-limit-exceeded"
_WINDOWS = ("x-rate-limit", "x-user-limit-24hour", "x-app-limit-24hour")  # each has a header -remaining and one -reset

# What says that a token is at fault, and not the credentials of this installation or the way we ask.
_TOKEN_FAULTS = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED})
_OWN_FAULTS = frozenset({"unauthorized_client", "invalid_client", "unsupported_grant_type", "invalid_scope"})


def post_error(answer: Answer, now: datetime) -> NetworkError:
    """Return what an answer of 4xx to any request with a user's token means."""
    problem = answer.content()
    said = _said(problem, answer.status)
    kind = str(problem.get("type", "")).rpartition("/")[2]
    if kind in _CAPPED or answer.status == HTTPStatus.PAYMENT_REQUIRED:
        return Limited(f"X takes no more posts from this installation until its cap or credit is raised: {said}", now + CAP_PAUSE)
    if answer.status == HTTPStatus.TOO_MANY_REQUESTS or kind == _RATE_LIMITED:
        return _rate_limited(answer, now, said)
    if answer.status == HTTPStatus.UNAUTHORIZED or kind == _OTHER_LOGIN_NEEDED:
        return TokenRejected(f"X no longer accepts this connection: {said}")
    return Refused(f"X refused: {said}", is_duplicate="duplicate content" in said.lower())


def token_error(answer: Answer, now: datetime) -> NetworkError:
    """Return what an answer of 4xx to a request for tokens means.

    Only two of them end a connection. A wrong secret of this installation, or something on the way to X, is no fault of a token.
    """
    content = answer.content()
    said = first_words(content, "error_description", "detail", "error", "title", otherwise=f"status {answer.status}")
    if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
        return _rate_limited(answer, now, said)
    if content.get("error") in _OWN_FAULTS:
        return NotSent(f"X does not accept the client id or secret of this installation: {said}")
    if answer.status not in _TOKEN_FAULTS:
        return NotSent(f"X gives no tokens: {said}")
    return TokenRejected(f"X no longer accepts this connection: {said}")


def _rate_limited(answer: Answer, now: datetime, said: str) -> Limited:
    resets = [at for window in _WINDOWS if (at := _reset(answer.headers, window, now)) is not None]
    return Limited(f"X asks to wait: {said}", max(resets, default=now + RATE_LIMIT_PAUSE))


def _reset(headers: Mapping[str, str], window: str, now: datetime) -> datetime | None:
    """Return when a window ends that is used up, as far as its headers can be believed."""
    if headers.get(f"{window}-remaining", "0") != "0":
        return None
    try:
        until = datetime.fromtimestamp(int(headers[f"{window}-reset"]), UTC)
    except (KeyError, ValueError, OverflowError, OSError):
        return None
    return until if now < until <= now + MAX_PAUSE else None


def _said(problem: Mapping[str, object], status: int) -> str:
    """Return X's own words. A list of errors says which field is wrong; older limits have nothing else."""
    match problem:
        case {"errors": [{"message": str(message)}, *_]} if message.strip():
            return first_words({"message": message}, "message", otherwise="")
    return first_words(problem, "detail", "title", otherwise=f"status {status}")
