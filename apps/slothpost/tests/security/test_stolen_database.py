"""Whoever has a copy of the database has no token, secret or link; and what is copied within it is of no use elsewhere."""

from __future__ import annotations

import secrets
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from api_client import tokens_of
from page_client import web_of

from installation import Installation, network_settings, open_installation
from slothpost.accounts.stored_tokens import StoredTokens
from slothpost.drafting.drafter import DrafterFailed
from slothpost.drafting.own_endpoint import own_endpoint, with_own_endpoint
from slothpost.model import Account, Connection, Product, User, VercelInstallation
from slothpost.networks.network import TokenPair, TokenRejected
from slothpost.notices import NOTICE_PURPOSE
from slothpost.people.users import UserChanges
from slothpost.settings import Settings
from slothpost.sources.source_secrets import SourceSecrets
from slothpost.standins.threads import ThreadsStandIn
from slothpost.standins.x import XStandIn
from tickler import ManualClock
from tickler.errors import DecryptionFailed
from tickler.table import MISSING, evolve


def a_secret(what: str) -> str:
    return f"{what}-{secrets.token_hex(16)}"


async def test_a_stolen_database_has_no_secret_in_it(
    tmp_path: Path, clock: ManualClock, x: XStandIn, threads: ThreadsStandIn
) -> None:
    file = tmp_path / "stolen.db"
    settings = Settings(store=f"sqlite:///{file}", **network_settings(x, threads))
    async with open_installation(settings, clock, x, threads) as here:
        known = await _use_every_secret(here)
    stolen = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert b"Teapot" in stolen, "it is the database"
    assert [name for name, secret in known.items() if secret.encode() in stolen] == []
    assert all(len(secret) > 15 for secret in known.values())


async def _use_every_secret(here: Installation) -> dict[str, str]:
    """Let an installation keep one of each kind of secret, and return them."""
    app, product = here.app, await here.a_channel({"tue": "09:00"})
    on_x, on_threads = here.x.issue_tokens("ada"), here.threads.issue_tokens("ada")
    await app.accounts.add("ada", "x", on_x)
    await app.accounts.add("ada", "threads", on_threads)
    address = await app.accounts.authorize_url("ada", "x", redirect_uri="https://posts.example.com/back")
    setup = await app.connections.setup("ada", product.id, "github")
    of_vercel, token, key = a_secret("vercel"), a_secret("github_pat"), a_secret("sk")
    await app.connections.use_vercel_secret("ada", product.id, of_vercel)
    kept = SourceSecrets(app.t).encrypt_token(product.id, "github", token)
    await app.db.update(Connection.key.id(product.id, "github"), Connection.token.set(kept))
    installed = SourceSecrets(app.t).encrypt_installation("ada", a_secret("installation"))
    await app.db.create(VercelInstallation(user="ada", id="icfg_1", token=installed, installed_at=here.now()))

    def with_model(stored: Product) -> Product:
        return with_own_endpoint(stored, app.t.encryption, url="https://m.example.com", model="m", key=key)

    await app.products.change("ada", product.id, with_model)
    ada, notices = await app.users.update("ada", UserChanges(notify_url="http://127.0.0.1:9/notices"))
    await here.an_activity(product)
    await here.until(here.now().replace(hour=22))  # a notice is sent, and waits for its receiver
    return {
        "access token of X": on_x.access,
        "refresh token of X": on_x.refresh or "",
        "token of Threads": on_threads.access,
        "state of OAuth": parse_qs(urlsplit(address).query)["state"][0],
        "secret of GitHub's webhook": setup.secret or "",
        "token of GitHub": token,
        "secret of Vercel's webhook": of_vercel,
        "key of a language model": key,
        "secret of notices": (notices or "").removeprefix("whsec_"),
        "link": await web_of(app).links.create("ada"),
        "token of the API": (await tokens_of(app).issue(ada, "script", writes=True)).rpartition("_")[2],
    }


async def test_tokens_of_an_account_are_of_no_use_in_another_row(here: Installation) -> None:
    ada, _ = await here.an_account(), await here.a_user("eve")
    stored = StoredTokens(here.app.t)
    assert stored.access(ada)
    for copied in (
        evolve(ada, user="eve"),
        evolve(ada, id="x:2"),
        evolve(ada, refresh_token=ada.access_token),
        evolve(ada, access_token=ada.refresh_token),
    ):
        with pytest.raises(TokenRejected, match="cannot be decrypted"):
            stored.pair(copied)
    await here.app.db.put(evolve(ada, user="eve", version=0))
    product = await here.a_product("eve")
    await here.app.plans.set_plan("eve", product.id, "x", {"tue": "09:00"})
    await here.app.accounts.use("eve", product.id, "x", ada.id)
    post = await here.a_draft(product)
    await here.app.review.post_now("eve", post.id, by="Eve")
    await here.until(here.now().replace(minute=5))
    assert (await here.post(post)).state == "approved"
    assert here.x.posts == []
    eves = await here.app.db.get(Account.key.id("eve", ada.id))
    assert eves is not None
    assert eves.broken is not MISSING
    assert isinstance(stored.pair(ada), TokenPair)


async def test_secrets_of_sources_notices_and_models_are_of_no_use_in_another_row(here: Installation) -> None:
    app, theirs, own = here.app, await here.a_product("ada"), await here.a_product("eve")
    found = SourceSecrets(app.t)
    secret, token = (
        found.encrypt_secret(theirs.id, "github", "the secret"),
        found.encrypt_token(theirs.id, "github", "the token"),
    )
    connection = Connection(product=theirs.id, source="github", user="ada", secret=secret, token=token)
    assert (found.signing_secret(connection), found.token(connection)) == ("the secret", "the token")
    for copied in (evolve(connection, product=own.id), evolve(connection, source="appstore")):
        assert found.signing_secret(copied) != "the secret"
        with pytest.raises(DecryptionFailed):
            found.token(copied)
    with pytest.raises(DecryptionFailed):
        found.token(evolve(connection, token=connection.secret))
    with pytest.raises(DecryptionFailed):
        found.installation_token("eve", found.encrypt_installation("ada", "the token"))

    model = with_own_endpoint(theirs, app.t.encryption, url="https://m.example.com", model="m", key="sk-1")
    endpoint = own_endpoint(model, app.t.encryption)
    assert endpoint is not None
    assert endpoint.key == "sk-1"
    with pytest.raises(DrafterFailed, match="cannot be decrypted"):
        own_endpoint(evolve(model, id=own.id), app.t.encryption)

    ada, _ = await app.users.update("ada", UserChanges(notify_url="http://127.0.0.1:9/notices"))
    assert isinstance(ada.notify_secret, str)
    with pytest.raises(DecryptionFailed):
        app.t.encryption.decrypt(ada.notify_secret, purpose=NOTICE_PURPOSE.format("eve"))
    assert isinstance(ada, User)
