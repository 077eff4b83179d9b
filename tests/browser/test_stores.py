"""The main pages and *why* on the other stores, with a worker beside a service that delivers nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Visit
from .handlers import WHY
from .service import FAILING, Service, path, serving, until, working


@pytest.fixture(params=["postgres", "dynamodb"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_url"))


async def test_a_schedule_is_created_fails_is_explained_fixed_and_retried(visit: Visit, url: str, tmp_path: Path) -> None:
    async with serving(url, tmp_path, "--no-worker") as service:
        visitor = await visit(service)
        await visitor.open("/")
        await visitor.sees("Start one with")
        await visitor.follow("Create the first schedule")
        await visitor.fill(owner="ada", key="first", when="* * * * * *", tz="Europe/Berlin", kind="python", to="echo")
        await visitor.press("Create schedule")
        await visitor.sees("no worker", visitor.page.locator(".why"))

        with working(url, tmp_path):
            await until("it is delivered", lambda: _happened(service, "delivered"))
            await visitor.open("/")
            await visitor.sees("working", visitor.page.locator("#workers"))
            await visitor.page.locator("#fires li").filter(has_text="ada / first").first.wait_for()

            await service.put("ada", "first", when="0 0 1 1 *", target=FAILING, policy={"attempts": 1})
            await service.call("POST", f"{path('ada', 'first')}/trigger")
            await until("it is dead", lambda: service.dead("ada"))
            await visitor.open(path("ada", "first"))
            await visitor.sees(WHY, visitor.page.locator(".why .sentence"))
            await visitor.follow("Edit")
            await visitor.fill(to="echo")
            await visitor.press("Save")
            await visitor.go("Dead")
            await visitor.press("Retry", visitor.row("ada", "first"))
            await until("it is delivered", lambda: _happened(service, "retried", after="delivered"))
            await visitor.open(path("ada", "first"))
            await visitor.sees("delivered", visitor.page.locator("#entry-0"))

            for owner in ("ada", "grace"):
                await service.put(owner, "digest")
            await visitor.open("/schedules?owner=ada")
            assert await visitor.keys() == ["digest", "first"]
            await visitor.press("Pause", visitor.row("digest"))
            await visitor.open("/schedules?state=paused")
            assert await visitor.keys() == ["digest"]
            for part in ("Forecast", "Doctor", "Audit"):
                await visitor.go(part)
            await visitor.sees("retried")


async def _happened(service: Service, happened: str, after: str | None = None) -> bool:
    """Say whether this happened, and `after` it something else."""
    history = await service.history("ada", "first")
    return happened in history and (after is None or after in history[: history.index(happened)])
