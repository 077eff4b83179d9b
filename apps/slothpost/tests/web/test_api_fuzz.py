"""In a soak, schemathesis makes requests from the OpenAPI document, right and wrong: every answer is described."""

from __future__ import annotations

import asyncio
import itertools
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import msgspec
import pytest
import schemathesis
import uvicorn
from api_client import tokens_of
from hypothesis import strategies as st
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema

from slothpost.app import open_slothpost
from slothpost.people.products import ProductChanges
from slothpost.settings import Settings
from slothpost.web import app as application
from slothpost.web.api.openapi import document

EXAMPLES = 12
REFUSED = ["400", "401", "404", "405", "414", "415", "422", "431"]
ACCEPTED = ["2xx", "404", "409", "422"]  # what fits the document may not fit what is stored


@contextmanager
def served() -> Iterator[dict[str, Any]]:
    """Serve a product with posts from a thread; yields the address, a token and the ids."""
    ready, found = threading.Event(), dict[str, Any]()

    async def main() -> None:
        async with open_slothpost(Settings(store="memory://")) as slothpost:
            ada = await slothpost.users.create("Ada", id="ada")
            product = await slothpost.products.create("ada", ProductChanges(name="Teapot"))
            await slothpost.plans.set_plan("ada", product.id, "x", {"tue": "09:00"}, "UTC")
            posts = [(await slothpost.drafts.write("ada", product.id, "x", f"Tea {n}", by="Ada")).id for n in range(3)]
            config = uvicorn.Config(application.create_app(slothpost), lifespan="off", log_config=None, access_log=False)
            server = uvicorn.Server(config)
            server.capture_signals = nullcontext  # type: ignore[method-assign, assignment]  # this is not the main thread
            listening = socket.create_server(("127.0.0.1", 0))
            token = await tokens_of(slothpost).issue(ada, "fuzz", writes=True)
            found.update(port=listening.getsockname()[1], token=token, product=[product.id], post=posts, server=server)
            ready.set()
            await server.serve([listening])

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    assert ready.wait(20)
    try:
        yield found
    finally:
        found["server"].should_exit = True
        thread.join(20)


def described(found: dict[str, Any]) -> Any:
    """Return the document with the ids that are there."""
    copy = msgspec.json.decode(msgspec.json.encode(document()))
    for operation in (each for methods in copy["paths"].values() for each in methods.values()):
        for parameter in operation["parameters"]:
            if parameter["name"] in found:
                parameter["schema"] = {"enum": found[parameter["name"]]}
    return copy


def test_every_answer_is_described(soak: bool, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if not soak:
        pytest.skip("takes long: make soak")
    schemathesis.openapi.format("time-zone", st.sampled_from(["UTC", "Europe/Paris"]))
    schemathesis.openapi.format("uri", st.just("https://x.example/ada/status/1"))
    settings = application.web_settings
    monkeypatch.setattr(application, "web_settings", lambda given: msgspec.structs.replace(settings(given), rate=1e9))
    failures, statuses = Counter[str](), Counter[int]()
    with served() as found:
        config = SchemathesisConfig.from_dict(
            {
                "seed": seed,
                "base-url": f"http://127.0.0.1:{found['port']}",
                "headers": {"Authorization": f"Bearer {found['token']}"},
                "continue-on-failure": True,
                "generation": {"max-examples": EXAMPLES, "mode": "all"},
                "phases": {"stateful": {"enabled": False}},
                "checks": {
                    "positive_data_acceptance": {"expected-statuses": ACCEPTED},
                    "negative_data_rejection": {"expected-statuses": REFUSED},
                },
            }
        )
        for event in from_schema(schemathesis.openapi.from_dict(described(found), config=config)).execute():
            if isinstance(event, events.NonFatalError | events.FatalError):
                failures[str(event)] += 1
            if isinstance(event, events.ScenarioFinished):
                statuses.update(each.response.status_code for each in event.recorder.interactions.values() if each.response)
                for check in itertools.chain.from_iterable(event.recorder.checks.values()):
                    if (info := check.failure_info) is not None:
                        failures[f"{event.label}: {info.failure.title}: {info.failure.message}\n{info.code_sample}"] += 1
    assert not failures, "\n\n".join(f"{count} × {failure}" for failure, count in failures.most_common(10))
    assert statuses[200] > 100
