"""schemathesis against the live service: every check it has, and its stateful links, find nothing."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

import pytest
import schemathesis
from hypothesis import strategies as st
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema
from schemathesis.specs.openapi import stateful

from server.served import serving
from server.surface import every_route
from tickler import HttpTarget, LambdaTarget, SqsTarget, connect
from tickler.delivery import Delivery, Outcome
from tickler.server.description.document import document
from tickler.server.settings import ServerSettings

EXAMPLES, SOAK_EXAMPLES = 5, 150
SCENARIOS, SOAK_SCENARIOS = 15, 150
STEPS, SOAK_STEPS = 6, 12
# What fits the description may still be refused: an expression that does not read, a zone that is none, a time that has passed,
# a key that was used before, a version that is not there.
REFUSED_THOUGH_IT_FITS = ["2xx", "304", "404", "409", "412", "422"]
OUTLIVES = ["historyOfSchedule", "whySchedule"]  # what is told of a schedule after it was deleted
REFUSED = ["400", "401", "404", "405", "409", "412", "413", "414", "415", "422", "431"]


class Nowhere:
    """Delivers to nobody: what is made up here must not leave this machine."""

    async def open(self) -> None:
        """Nothing is needed."""

    async def deliver(self, delivery: Delivery, target: object) -> Outcome:
        return Outcome(verdict="delivered", status=200)

    async def close(self) -> None:
        """Nothing is open."""


@contextmanager
def live_service() -> Iterator[tuple[str, str]]:
    """In a thread of its own, since schemathesis waits for its answers. Its URL, and a token."""
    ready, stop = threading.Event(), asyncio.Event()
    found: list[Any] = []

    async def serve() -> None:
        async with connect("sqlite://") as t:
            for kind in (HttpTarget, SqsTarget, LambdaTarget):
                t.deliver_with(kind, Nowhere())
            _, token = await t.tokens.create(["read", "write", "operate"])
            async with serving(t, ServerSettings(rate=1_000_000)) as api:
                found.extend((f"http://127.0.0.1:{api.port}", token, asyncio.get_running_loop()))
                ready.set()
                await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(20)
    url, token, loop = found
    try:
        yield url, token
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)


def known_formats() -> None:
    """Expressions, zones, addresses and imports that are mostly right, so that what lies behind them is reached."""
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
    for name, right in (("when", whens), ("time-zone", zones), ("uri", urls)):
        schemathesis.openapi.format(name, st.one_of(st.sampled_from(right), st.sampled_from(right), st.text(min_size=1)))
    lines = st.builds(
        lambda **fields: json.dumps(fields).encode(),
        owner=st.sampled_from(["u1", "u2", ""]),
        key=st.text(max_size=5),
        when=st.sampled_from([*whens, "no"]),
        payload=st.integers(),
    ) | st.binary(max_size=20)
    schemathesis.openapi.media_type("application/x-ndjson", st.lists(lines).map(b"\n".join))


def consistent(context: schemathesis.HookContext, case: schemathesis.Case[Any]) -> schemathesis.Case[Any]:
    """What no schema can say: a body may repeat the owner and the key of the path, and no others; one condition is enough."""
    if case.meta is None or case.meta.generation.mode.is_negative:
        return case
    body, names = case.body, case.path_parameters
    if isinstance(body, dict) and isinstance(names, dict):
        known = {name: unquote(str(names[name])) for name in ("owner", "key") if name in names}
        case.body = body | {name: value for name, value in known.items() if isinstance(body.get(name), str)}
    if case.headers is not None and "if-match" in case.headers:
        case.headers.pop("if-none-match", None)
    return case


def described() -> dict[str, Any]:
    """The API as it is with tokens, without what never ends."""
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
                "positive_data_acceptance": {"expected-statuses": REFUSED_THOUGH_IT_FITS},
                "negative_data_rejection": {"expected-statuses": REFUSED},
            },
            "operations": [{"include-operation-id": OUTLIVES, "checks": {"use_after_free": {"enabled": False}}}],
        }
    )


class Found:
    """What came of a run."""

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
    # Here a PUT makes things; without this, scenarios begin with POSTs about what is not there.
    monkeypatch.setattr(stateful, "is_likely_root_transition", lambda operation, *_: operation.method == "put")
    found = Found()
    with live_service() as (url, token):
        schema = schemathesis.openapi.from_dict(described(), config=config(url, token, seed, soak=soak))
        schema.hook("map_case")(consistent)
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
