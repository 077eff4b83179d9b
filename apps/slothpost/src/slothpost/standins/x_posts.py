"""What the local X takes as a post, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from http import HTTPStatus

import msgspec

from slothpost.standins.local_post import LocalPost
from slothpost.standins.rate_window import RateWindow
from slothpost.text.check import check_text

WINDOW = timedelta(minutes=15)
DAY = timedelta(days=1)
POSTS_OF_USER = 100  # in 15 minutes
POSTS_OF_APP = 10_000  # in 24 hours
DUPLICATES = timedelta(days=1)  # how long the same text counts as a duplicate

_EPOCH = 1_288_834_974_657  # from which ids count milliseconds
_FIELDS = frozenset({
    "text", "media", "reply", "reply_settings", "quote_tweet_id", "poll", "community_id", "made_with_ai", "paid_partnership",
    "edit_options", "geo", "for_super_followers_only", "direct_message_deep_link", "nullcast", "card_uri", "share_with_followers",
})  # fmt: skip


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A refusal. `kind` is the last part of the problem's type."""

    status: int
    title: str
    detail: str
    kind: str | None = None
    errors: tuple[str, ...] = ()


class XPosts:
    """`credit` is how many posts are paid for; None: as many as you like."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self.credit: int | None = None
        self.window_size = POSTS_OF_USER
        self._windows: dict[str, RateWindow] = {}
        self._day = RateWindow(POSTS_OF_APP, DAY)
        self.posts: list[LocalPost] = []

    def create(self, handle: str, fields: Mapping[str, object], site: str) -> LocalPost | Problem:
        """Take a post, or say why not. The limits come first, as they are asked first."""
        refused = self._limited(handle) or _invalid(fields) or self._refused(handle, str(fields.get("text", "")))
        if refused is not None:
            return refused
        now = self._now()
        id = str(((int(now.timestamp() * 1000) - _EPOCH) << 22) + len(self.posts))
        post = LocalPost(id=id, handle=handle, text=str(fields["text"]), at=now, url=f"{site}/{handle}/status/{id}")
        self.posts.append(post)
        self._day.add(now)
        if self.credit is not None:
            self.credit -= 1
        return post

    def put_back(self, post: LocalPost) -> None:
        """Show a post that an earlier stand-in has published."""
        self.posts.append(post)

    def limit_headers(self, handle: str) -> dict[str, str]:
        now = self._now()
        return {
            **_headers("x-rate-limit", self._window(handle), now),
            **(_headers("x-app-limit-24hour", self._day, now) if not self._day.remaining(now) else {}),
        }

    def _limited(self, handle: str) -> Problem | None:
        now = self._now()
        window = self._window(handle)
        if not window.remaining(now) or not self._day.remaining(now):
            return rate_limit_problem()
        window.add(now)
        if self.credit == 0:
            detail = "Your enrolled account does not have any credits to fulfill this request."
            return Problem(status=HTTPStatus.PAYMENT_REQUIRED, title="CreditsDepleted", detail=detail, kind="credits")
        return None

    def _refused(self, handle: str, text: str) -> Problem | None:
        check = check_text("x", text)
        if check.length > check.limit:
            return _forbidden("You are not permitted to perform this action.")
        since = self._now() - DUPLICATES
        if any(post.handle == handle and post.text == text and post.at > since for post in self.posts):
            return _forbidden("You are not allowed to create a Tweet with duplicate content.")
        return None

    def _window(self, handle: str) -> RateWindow:
        window = self._windows.setdefault(handle, RateWindow(self.window_size, WINDOW))
        window.size = self.window_size
        return window


def rate_limit_problem() -> Problem:
    return Problem(status=HTTPStatus.TOO_MANY_REQUESTS, title="Too Many Requests", detail="Too Many Requests")


def _forbidden(detail: str) -> Problem:
    return Problem(status=HTTPStatus.FORBIDDEN, title="Forbidden", detail=detail)


def _invalid(fields: Mapping[str, object]) -> Problem | None:
    unknown = sorted(fields.keys() - _FIELDS)
    wrong = [f"$.{name}: is not defined in the schema and the schema does not allow additional properties" for name in unknown]
    if not isinstance(fields.get("text"), str) or not str(fields["text"]).strip():
        wrong.append("$.text: is missing or empty")
    if not wrong:
        return None
    detail = "One or more parameters to your request was invalid."
    return Problem(
        status=HTTPStatus.BAD_REQUEST, title="Invalid Request", detail=detail, kind="invalid-request", errors=tuple(wrong)
    )


def _headers(prefix: str, window: RateWindow, now: datetime) -> dict[str, str]:
    reset = window.reset_at(now)
    return {
        f"{prefix}-limit": str(window.size),
        f"{prefix}-remaining": str(window.remaining(now)),
        f"{prefix}-reset": str(int(reset.timestamp())),
    }
