"""`/v1/send`: one delivery, now or at an instant."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Response, post

from tickler.errors import InvalidSchedule
from tickler.model.policy import DEFAULT_POLICY, Policy, policy_from_json
from tickler.model.target import Target, read_target
from tickler.server.audit_log import record
from tickler.server.authorization import check_target, path_id
from tickler.server.context import HttpRequest, caller_of, context_of
from tickler.server.json_body import json_body_of, json_response
from tickler.server.query_params import QueryParams
from tickler.web.problems import Refused
from tickler.when import read_instant

_FIELDS = ("target", "payload", "policy", "at")


class _Send(msgspec.Struct, frozen=True):
    """A body that was read."""

    target: Target
    payload: object
    policy: Policy
    at: Any  # checked where it is sent


@post("/v1/send/{owner:str}/{key:str}", opt={"scope": "write"}, status_code=202)
async def send(request: HttpRequest) -> Response[bytes]:
    """Deliver once. The same request again sends nothing, and returns the first fire with status 200."""
    QueryParams(request)
    owner, key = path_id(request)
    wanted: _Send = await json_body_of(request, _read)
    check_target(caller_of(request), wanted.target)
    sent = await context_of(request).tickler.send(owner, key, wanted.target, wanted.payload, at=wanted.at, policy=wanted.policy)
    if sent.is_new:
        await record(request, "sent", owner=owner, key=key, detail=sent.fire_id)
    return json_response(sent, 202 if sent.is_new else 200)


HANDLERS = [send]


def _read(body: object) -> _Send:
    if not isinstance(body, dict):
        raise Refused(400, "the body is not an object: send one with `target`, and with `payload`")
    unknown = sorted(str(name) for name in body if name not in _FIELDS)
    if unknown:
        raise InvalidSchedule(unknown[0], f"unknown field: use {', '.join(_FIELDS)}")
    target, policy, at = read_target(body.get("target")), body.get("policy"), body.get("at")
    if target is None:
        raise InvalidSchedule("target", "is missing: give a URL")
    return _Send(
        target=target,
        payload=body.get("payload"),
        policy=DEFAULT_POLICY if policy is None else policy_from_json(policy),
        at=read_instant(at, "at") if isinstance(at, str) else at,
    )
