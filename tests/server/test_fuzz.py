"""schemathesis, with all its checks and stateful links, finds no fault in the live service."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import unquote

import pytest
import schemathesis
from hypothesis import strategies as st
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema
from schemathesis.generation.meta import TestPhase
from schemathesis.specs.openapi import stateful

from server.live_service import live_service
from server.surface import every_route
from tickler import new_key, new_secret
from tickler.server.openapi.document import document

NOWHERE = "nowhere"
NUMBERS = itertools.count()
BOUNDS = {"starts_at": 1_767_225_600_000, "ends_at": "2095-01-01T00:00:00Z"}
EXAMPLES, SOAK_EXAMPLES = 4, 150
SCENARIOS, SOAK_SCENARIOS = 10, 150
COVERAGE_SHARE = 5  # one in so many of the cases that schemathesis derives from the schemas; in a soak all 2,500
STEPS, SOAK_STEPS = 6, 12
# What fits the description is done, as far as it is there and at that version.
ACCEPTED = ["2xx", "304", "404", "409", "412"]
# What fits may not fit what is stored: a handler's name for a target that is a URL, a trigger of what has no target.
ABOUT_WHAT_IS_STORED = ["patchSchedule", "triggerSchedule"]
COVERED_IN_SOAKS = ["patchSchedule", "preview"]  # half of what schemathesis derives, and takes longest to derive
OUTLIVES = ["historyOfSchedule", "whySchedule"]  # what is told of a schedule after it was deleted
REFUSED = ["400", "401", "404", "405", "409", "412", "413", "414", "415", "422", "431"]


def known_formats() -> None:
    """Register formats that no schema can express: expressions, zones, URLs, secrets and cursors."""
    whens = [
        "@daily",
        "*/5 * * * *",
        "0 9 * * tue",
        "rate(5 minutes)",
        "weekly(tue 09:00)",
        "at(2090-01-01T00:00:00)",
        "@every 1h30m",
    ]
    zones = ["UTC", "Europe/Paris", "America/New_York", "Asia/Kathmandu", "Pacific/Apia"]
    urls = ["https://example.org/hook", "http://localhost:1/x?y=z", "https://[::1]/"]
    formats = {"when": whens, "time-zone": zones, "uri": urls, "secret": [new_secret()], "cursor": [NOWHERE], "sealed": [NOWHERE]}
    for name, right in formats.items():
        schemathesis.openapi.format(name, st.sampled_from(right))
    lines = st.builds(
        lambda **fields: json.dumps(fields).encode(),
        owner=st.sampled_from(["u1", "u2", ""]),
        key=st.text(max_size=5),
        when=st.sampled_from([*whens, "no"]),
        payload=st.integers(),
    ) | st.binary(max_size=20)
    schemathesis.openapi.media_type("application/x-ndjson", st.lists(lines).map(b"\n".join))


def sample_coverage(seed: int) -> None:
    """Sample by seed, with some cases of every operation."""
    numbers = itertools.count()

    def sampled(context: schemathesis.HookContext, case: schemathesis.Case[Any]) -> bool:
        is_coverage = case.meta is not None and case.meta.phase.name is TestPhase.COVERAGE
        return not is_coverage or next(numbers) % COVERAGE_SHARE == seed % COVERAGE_SHARE

    schemathesis.hook("filter_case")(sampled)


def consistent(context: schemathesis.HookContext, case: schemathesis.Case[Any], kwargs: dict[str, Any]) -> None:
    """Fix what no schema can express: dependent fields, lengths in bytes, and values that only a service makes."""
    if case.meta is None or case.meta.generation.mode.is_negative:
        return
    names, query, headers = case.path_parameters, case.query, case.headers
    if isinstance(case.body, dict):
        case.body = _consistent_body(case.body, names if isinstance(names, dict) else {})
    if query is not None:
        if query.get("after") == NOWHERE:
            del query["after"]
        if "owner" not in query:
            query.pop("key_prefix", None)
            query.pop("key", None)
    if headers is not None:
        _make_consistent(headers)


def _make_consistent(headers: MutableMapping[str, Any]) -> None:
    """Send one condition only, and a fresh idempotency key."""
    if "if-match" in headers:
        headers.pop("if-none-match", None)
    for name in ("if-match", "if-none-match"):  # schemathesis makes some of letters and digits alone, whatever their pattern
        if str(headers.get(name, "0")).isalnum():
            headers.pop(name, None)
    if "idempotency-key" in headers:
        headers["idempotency-key"] = f"key-{next(NUMBERS)}"


def _consistent_body(body: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
    """Make a body's owner and key those of the path."""
    body = dict(body)
    if not names and "owner" not in body:
        body.pop("key", None)
    for name in ("owner", "key"):
        if name in names and isinstance(body.get(name), str):
            body[name] = unquote(str(names[name]))
    for bound in ("starts_at", "ends_at"):  # instants of their own would often leave nothing to fire
        if body.get(bound) is not None:
            body[bound] = BOUNDS[bound]
    if isinstance(when := body.get("when"), dict):
        body["when"] = {"weekly": {**when["weekly"], "tue": {"time": "09:00"}}}  # a plan without any time never fires
    if "payload" in body:
        body["payload"] = json.loads(json.dumps(body["payload"]), parse_int=lambda text: int(text) % 2**63)
    for name, made_consistent in (("policy", _consistent_policy), ("target", _consistent_target)):
        if isinstance(body.get(name), dict):
            body[name] = made_consistent(body[name])
    return body


def _consistent_policy(policy: dict[str, Any]) -> dict[str, Any]:
    if policy.get("delivery") == "at-most-once":
        policy = {name: value for name, value in policy.items() if name != "overlap"}
    return {**policy, "spread": 1} if policy.get("spread") else policy


def _consistent_target(target: dict[str, Any]) -> dict[str, Any]:
    """Only the service makes sealed values; whether a handler's name is printable depends on the Unicode version."""
    known = {name: value for name, value in target.items() if (name, value) != ("sealed", NOWHERE)}
    return known if str(target.get("handler", "")).isprintable() else {**known, "handler": "echo"}


def described() -> dict[str, Any]:
    """The document with tokens, without the event stream."""
    paths = {path: operations for path, operations in document()["paths"].items() if path != "/v1/live"}
    return {**document(), "paths": paths, "security": [{"token": []}]}


def config(url: str, token: str, seed: int, *, soak: bool) -> SchemathesisConfig:
    examples, scenarios, steps = (SOAK_EXAMPLES, SOAK_SCENARIOS, SOAK_STEPS) if soak else (EXAMPLES, SCENARIOS, STEPS)
    return SchemathesisConfig.from_dict(
        {
            "seed": seed,
            "base-url": url,
            "headers": {"Authorization": f"Bearer {token}"},
            "continue-on-failure": True,
            "generation": {"max-examples": examples, "mode": "all"},
            "phases": {"stateful": {"max-steps": steps, "generation": {"max-examples": scenarios}}},
            "checks": {
                "positive_data_acceptance": {"expected-statuses": ACCEPTED},
                "negative_data_rejection": {"expected-statuses": REFUSED},
            },
            "operations": [
                *([] if soak else [{"include-operation-id": COVERED_IN_SOAKS, "phases": {"coverage": {"enabled": False}}}]),
                {"include-operation-id": OUTLIVES, "checks": {"use_after_free": {"enabled": False}}},
                {
                    "include-operation-id": ABOUT_WHAT_IS_STORED,
                    "checks": {"positive_data_acceptance": {"expected-statuses": [*ACCEPTED, "422"]}},
                },
            ],
        }
    )


class Found:
    """The result of a run."""

    def __init__(self) -> None:
        self.failures: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.checks: Counter[str] = Counter()
        self.followed: Counter[str] = Counter()  # operations that a link led to

    def add(self, event: events.EngineEvent) -> None:
        if isinstance(event, events.NonFatalError | events.FatalError):
            self.failures[str(event)] += 1
        if isinstance(event, events.ScenarioFinished):
            self._add_scenario(event)

    def _add_scenario(self, event: events.ScenarioFinished) -> None:
        recorder = event.recorder
        for interaction in recorder.interactions.values():
            if interaction.response is not None:
                self.statuses[interaction.response.status_code] += 1
        self.followed.update(node.value.operation.label for node in recorder.cases.values() if node.is_transition_applied)
        for check in itertools.chain.from_iterable(recorder.checks.values()):
            self.checks[check.name] += 1
            if (info := check.failure_info) is not None:
                self.failures[f"{event.label}: {info.failure.title}: {info.failure.message}\n{info.code_sample}"] += 1


def test_every_check_and_every_link_finds_nothing(soak: bool, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    known_formats()
    monkeypatch.setenv("TICKLER_KEY", new_key())
    # Here a PUT makes things; without this, scenarios begin with POSTs about what is not there.
    monkeypatch.setattr(stateful, "is_likely_root_transition", lambda operation, *_: operation.method == "put")
    schemathesis.hook("before_call")(consistent)
    if not soak:
        sample_coverage(seed)
    found = Found()
    with live_service() as (url, token):
        schema = schemathesis.openapi.from_dict(described(), config=config(url, token, seed, soak=soak))
        for event in from_schema(schema).execute():
            found.add(event)
    assert not found.failures, "\n\n".join(f"{count} × {failure}" for failure, count in found.failures.most_common(20))
    assert [status for status in found.statuses if status >= 500] == []
    assert found.statuses[200] + found.statuses[201] > 100
    assert set(found.checks) >= {"ignored_auth", "use_after_free", "negative_data_rejection", "positive_data_acceptance"}
    assert len(found.followed) > 3


def test_every_route_of_the_api_is_described_and_nothing_else() -> None:
    routes = {f"{route.method} {route.path}" for route in every_route() if route.is_api}
    operations = {f"{method.upper()} {path}" for path, each in document()["paths"].items() for method in each}
    assert operations == routes
