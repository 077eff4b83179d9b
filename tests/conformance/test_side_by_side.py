"""The same random programs on all four stores at once."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as seeded
from hypothesis.stateful import run_state_machine_as_test

from conformance.side_by_side import SideBySide, Stage
from tickler.connect import store_for_url


@pytest.mark.parametrize("part", range(3))  # so that they run beside each other
def test_every_store_answers_as_the_others_do(
    sqlite_url: str, postgres_url: str, dynamodb_url: str, soak: bool, seed: int, part: int
) -> None:
    urls = {"memory": "memory://", "sqlite": sqlite_url, "postgres": postgres_url, "dynamodb": dynamodb_url}
    with Stage({name: store_for_url(url) for name, url in urls.items()}) as stage:
        program = seeded(seed * 1000 + part)(type("Program", (SideBySide,), {"stage": stage}))
        run_state_machine_as_test(
            program,
            settings=settings(
                max_examples=1000 if soak else 8,
                stateful_step_count=50 if soak else 25,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
                print_blob=False,
                phases=[Phase.generate, Phase.shrink] if soak else [Phase.generate],
                report_multiple_bugs=False,
            ),
        )
