"""Webhook deliveries as GitHub, Vercel and App Store Connect send them, signed."""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import msgspec

from slothpost.sources.signatures import appstore_signature, github_signature, vercel_signature

_numbers = itertools.count(1)


class Signed(msgspec.Struct, frozen=True):
    """A delivery: its headers, with lower-case names, and its raw body."""

    headers: Mapping[str, str]
    body: bytes


def github_delivery(
    secret: str, event: str, payload: Mapping[str, object], *, guid: str | None = None, is_form: bool = False
) -> Signed:
    """Return a delivery of a repository's webhook, with a GUID of its own unless it is one that came before."""
    text = json.dumps(payload)
    body = urlencode({"payload": text}).encode() if is_form else text.encode()
    headers = {
        "content-type": "application/x-www-form-urlencoded" if is_form else "application/json",
        "user-agent": "GitHub-Hookshot/044aadd",
        "x-github-event": event,
        "x-github-delivery": guid or str(uuid.uuid4()),
        "x-github-hook-id": "292430182",
        "x-hub-signature-256": github_signature(secret, body),
    }
    return Signed(headers, body)


def vercel_delivery(secret: str, type: str, payload: Mapping[str, object], *, at: datetime, id: str | None = None) -> Signed:
    """Return a delivery of an integration, signed with its client secret, or of an account's webhook with its own."""
    envelope = {
        "type": type,
        "id": id or f"hook_{next(_numbers):08d}",
        "createdAt": int(at.timestamp() * 1000),
        "region": "fra1",
        "payload": payload,
    }
    body = json.dumps(envelope, separators=(",", ":")).encode()
    return Signed({"content-type": "application/json", "x-vercel-signature": vercel_signature(secret, body)}, body)


def appstore_delivery(secret: str, data: Mapping[str, object]) -> Signed:
    body = json.dumps({"data": data}).encode()
    return Signed({"content-type": "application/json", "x-apple-signature": appstore_signature(secret, body)}, body)


def app_version_state(instance: str, state: str, *, at: datetime, id: str | None = None) -> dict[str, Any]:
    """Return the data of a delivery about a version of an app, which names neither the app nor the version."""
    return {
        "type": "appStoreVersionAppVersionStateUpdated",
        "id": id or str(uuid.uuid4()),
        "version": 1,
        "attributes": {"oldValue": "PENDING_APPLE_RELEASE", "newValue": state, "timestamp": at.isoformat()},
        "relationships": {"instance": {"data": {"type": "appStoreVersions", "id": instance}}},
    }
