"""The name of a private repository stays out of drafts, however slothpost has learned of what happened there."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from installation import Installation
from slothpost.drafting.drafter import Draft, DraftRequest
from slothpost.drafting.drafters import Drafters
from slothpost.drafting.validate import problems_of
from slothpost.model import Connection, Product
from slothpost.standins.deliveries import vercel_delivery
from slothpost.standins.github_repository import LocalRepository

TITLES = ("feat: Zanzibar opens reports in half the time", "feat: Charts of acme-labs/zanzibar have a dark mode")
SECRET_WORDS = ("zanzibar", "acme-labs", "acme")


@pytest.fixture
async def product(here: Installation) -> Product:
    return await here.a_channel({"tue": "09:00", "thu": "09:00"})


def a_repository(here: Installation, *, private: bool = True) -> LocalRepository:
    return LocalRepository("acme-labs/zanzibar", private=private, now=here.now)


async def pushed(here: Installation, product: Product, repository: LocalRepository, *titles: str) -> None:
    """Deliver a push by a webhook that the user has set up without a token: slothpost never asks GitHub about anything."""
    setup = await here.app.connections.new_secret("ada", product.id, "github")
    assert setup.secret is not None
    signed = repository.pushed(setup.secret, *titles)
    assert (await here.app.webhooks.github(product.id, signed.headers, signed.body)).status == 202
    await here.for_(timedelta(minutes=1))


async def drafted(here: Installation, product: Product) -> str:
    await here.for_(timedelta(hours=14))
    (post,) = await here.posts(product)
    return post.text


async def test_a_webhook_alone_says_which_name_must_not_be_told(here: Installation, product: Product) -> None:
    await pushed(here, product, a_repository(here), *TITLES)
    text = (await drafted(here, product)).lower()
    assert "report" in text or "chart" in text, "there was something to tell"
    assert not [word for word in SECRET_WORDS if word in text]


async def test_a_name_stays_private_after_its_repository_was_disconnected(here: Installation, product: Product) -> None:
    await pushed(here, product, a_repository(here), *TITLES)
    await here.app.connections.disconnect("ada", product.id, "github")
    assert await here.app.db.get(Connection.key.id(product.id, "github")) is None
    text = (await drafted(here, product)).lower()
    assert not [word for word in SECRET_WORDS if word in text]


async def test_a_deployment_says_it_too(here: Installation, product: Product) -> None:
    """A Vercel project may be all that is connected. Its webhook of the user's own account needs no integration."""
    await here.app.connections.use_vercel_secret("ada", product.id, "of the account")
    await here.app.db.update(Connection.key.id(product.id, "vercel"), Connection.external_id.set("prj_1"))
    meta = {
        "githubCommitSha": "a" * 40,
        "githubCommitMessage": TITLES[0],
        "githubOrg": "acme-labs",
        "githubRepo": "zanzibar",
        "githubRepoVisibility": "private",
    }
    payload = {"project": {"id": "prj_1"}, "deployment": {"id": "dpl_1", "url": "x.vercel.app", "meta": meta}}
    signed = vercel_delivery("of the account", "deployment.promoted", payload, at=here.now())
    assert (await here.app.webhooks.vercel(signed.headers, signed.body, product.id)).status == 202
    text = (await drafted(here, product)).lower()
    assert "report" in text
    assert not [word for word in SECRET_WORDS if word in text]


async def test_a_model_that_guesses_the_name_is_corrected(
    here: Installation, product: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[DraftRequest] = []

    async def draft(self: Drafters, request: DraftRequest, name: Any = None) -> Draft:
        asked.append(request)
        return Draft(text="Reports open in half the time.", used=(request.activities[0].id,), drafter="template")

    monkeypatch.setattr(Drafters, "draft", draft)
    await pushed(here, product, a_repository(here), *TITLES)
    await drafted(here, product)
    (request,) = asked
    assert "it names a private repository" in problems_of("Zanzibar opens reports faster.", request)
    assert not problems_of("Reports open in half the time.", request)


async def test_a_public_repository_may_be_named(here: Installation, product: Product) -> None:
    await pushed(here, product, a_repository(here, private=False), TITLES[0])
    assert "zanzibar" in (await drafted(here, product)).lower()


async def test_whoever_says_so_may_tell_it(here: Installation) -> None:
    product = await here.a_channel({"tue": "09:00"}, tells_private=True)
    await pushed(here, product, a_repository(here), TITLES[0])
    assert "zanzibar" in (await drafted(here, product)).lower()
