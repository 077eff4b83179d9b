"""A repository of the local GitHub: what happens in it, as the API lists it and as webhooks deliver it."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from slothpost.standins.deliveries import Signed, github_delivery

_numbers = itertools.count(1)


def new_sha() -> str:
    return hashlib.sha1(f"commit {next(_numbers)}".encode(), usedforsecurity=False).hexdigest()


class LocalRepository:
    """`owner` may do everything with it; others see it only if it is public."""

    def __init__(self, name: str, *, private: bool, now: Callable[[], datetime]) -> None:
        self.id = 700_000_000 + next(_numbers)
        self.names = [name]  # the last one is that of now; the others redirect to it
        self.private = private
        self.default_branch = "main"
        self.stars = 0
        self.archived = False
        self.pulls: list[dict[str, Any]] = []
        self.releases: list[dict[str, Any]] = []
        self.hooks: dict[int, dict[str, Any]] = {}
        self._now = now

    @property
    def name(self) -> str:
        return self.names[-1]

    @property
    def owner(self) -> str:
        return self.name.split("/")[0]

    @property
    def url(self) -> str:
        return f"https://github.com/{self.name}"

    def rename(self, name: str) -> None:
        self.names.append(name)

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name.split("/")[1],
            "full_name": self.name,
            "private": self.private,
            "html_url": self.url,
            "owner": {"login": self.owner, "type": "User"},
            "default_branch": self.default_branch,
            "stargazers_count": self.stars,
            "archived": self.archived,
        }

    def merge(
        self, title: str, body: str | None = None, *, labels: Iterable[str] = (), into: str | None = None, sha: str | None = None
    ) -> dict[str, Any]:
        """Merge a pull request now, and return it."""
        at, number = _text(self._now()), len(self.pulls) + 1
        pull = {
            "id": 900_000_000 + next(_numbers),
            "number": number,
            "state": "closed",
            "title": title,
            "body": body,
            "merged_at": at,
            "updated_at": at,
            "closed_at": at,
            "merge_commit_sha": sha or new_sha(),
            "html_url": f"{self.url}/pull/{number}",
            "labels": [{"name": label} for label in labels],
            "user": {"login": self.owner},
            "draft": False,
            "base": {"ref": into or self.default_branch, "repo": self.as_json()},
        }
        self.pulls.insert(0, pull)
        return pull

    def close(self, title: str) -> dict[str, Any]:
        """Close a pull request without merging it."""
        pull = self.merge(title)
        pull["merged_at"] = None
        return pull

    def publish(self, tag: str, name: str | None = None, body: str | None = None, *, prerelease: bool = False) -> dict[str, Any]:
        """Publish a release now, and return it."""
        release = {
            "id": 400_000_000 + next(_numbers),
            "tag_name": tag,
            "name": name,
            "body": body,
            "draft": False,
            "prerelease": prerelease,
            "html_url": f"{self.url}/releases/tag/{tag}",
            "created_at": _text(self._now()),
            "published_at": _text(self._now()),
            "author": {"login": self.owner},
            "assets": [],
        }
        self.releases.insert(0, release)
        return release

    def ping(self, secret: str, **options: Any) -> Signed:
        return self._delivery(secret, "ping", {"zen": "Keep it logically awesome.", "hook_id": 1, "hook": {}}, options)

    def pushed(self, secret: str, *messages: str, shas: Iterable[str] = (), ref: str | None = None, **options: Any) -> Signed:
        """Return the delivery of a push of commits, by default to the default branch."""
        ids = [*shas, *(new_sha() for _ in messages)][: len(messages)]
        at = self._now()
        commits = [
            {"id": id, "message": message, "timestamp": _text(at), "url": f"{self.url}/commit/{id}", "distinct": True,
             "author": {"name": "Ada"}, "added": [], "removed": [], "modified": ["src/kettle.py"]}
            for id, message in zip(ids, messages, strict=True)
        ]  # fmt: skip
        payload = {
            "ref": ref or f"refs/heads/{self.default_branch}",
            "before": "0" * 40,
            "after": ids[-1] if ids else "0" * 40,
            "created": False,
            "deleted": not ids,
            "forced": False,
            "compare": f"{self.url}/compare/a...b",
            "commits": commits,
            "head_commit": commits[-1] if commits else None,
            "repository": {**self.as_json(), "pushed_at": int(at.timestamp())},
            "pusher": {"name": self.owner},
        }
        return self._delivery(secret, "push", payload, options)

    def merged(self, secret: str, pull: dict[str, Any], **options: Any) -> Signed:
        closed = {**pull, "merged": pull["merged_at"] is not None}
        return self._delivery(secret, "pull_request", {"action": "closed", "pull_request": closed}, options)

    def released(self, secret: str, release: dict[str, Any], action: str = "published", **options: Any) -> Signed:
        return self._delivery(secret, "release", {"action": action, "release": release}, options)

    def starred(self, secret: str, **options: Any) -> Signed:
        """Return the delivery of one more star."""
        self.stars += 1
        return self._delivery(secret, "star", {"action": "created", "starred_at": _text(self._now())}, options)

    def event(self, secret: str, event: str, **payload: Any) -> Signed:
        """Return the delivery of any other event."""
        return self._delivery(secret, event, payload, {})

    def _delivery(self, secret: str, event: str, payload: dict[str, Any], options: dict[str, Any]) -> Signed:
        about = {"repository": self.as_json(), "sender": {"login": self.owner}}
        return github_delivery(secret, event, {**about, **payload}, **options)


def _text(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"
