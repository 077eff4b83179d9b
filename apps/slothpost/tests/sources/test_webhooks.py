"""Deliveries: what is accepted, what is refused, and what nobody learns from a refusal."""

from __future__ import annotations

import json
import threading
from http import HTTPStatus

import pytest
from sources.place import Place

from slothpost.model import Activity
from slothpost.sources import github
from slothpost.sources.reading import Reading
from slothpost.sources.signatures import github_signature
from slothpost.sources.webhooks import MAX_BODY_BYTES, REFUSED
from slothpost.standins.deliveries import Signed, app_version_state, appstore_delivery, github_delivery
from tickler.table import MISSING

OTHER_SECRET = "another secret"


async def test_a_delivery_waits_in_the_engine_and_becomes_activity_later(anywhere: Place) -> None:
    product = await anywhere.a_product()
    secret = await anywhere.a_webhook(product)
    repository = anywhere.github.add_repository("ada/teapot")
    answer = await anywhere.to_github(product, repository.pushed(secret, "feat: Brew tea on a schedule"))
    assert (answer.status, answer.reason) == (HTTPStatus.ACCEPTED, "accepted")
    assert not await anywhere.activity(product)
    played = await anywhere.work()
    assert len(played.of("ada").delivered) == 1
    (activity,) = await anywhere.activity(product)
    assert (activity.kind, activity.is_private) == ("feature", False)
    assert [(each.source, each.event) for each in activity.sightings] == [("github", "push")]


async def test_a_delivery_that_comes_again_is_accepted_once(anywhere: Place) -> None:
    product = await anywhere.a_product()
    secret = await anywhere.a_webhook(product)
    delivery = anywhere.github.add_repository("ada/teapot").pushed(secret, "feat: Brew tea", "fix: Tea was cold")
    assert (await anywhere.to_github(product, delivery)).status == HTTPStatus.ACCEPTED
    assert (await anywhere.to_github(product, delivery)).status == HTTPStatus.OK
    assert len((await anywhere.work()).of("ada").delivered) == 1
    assert (await anywhere.to_github(product, delivery)).status == HTTPStatus.OK, "also after it was worked on"
    assert not (await anywhere.work()).attempts
    assert len(await anywhere.activity(product)) == 2


async def test_a_replay_under_another_id_makes_nothing_twice(place: Place) -> None:
    product = await place.a_product()
    secret = await place.a_webhook(product)
    first = place.github.add_repository("ada/teapot").pushed(secret, "feat: Brew tea")
    await place.to_github(product, first)
    replayed = Signed({**first.headers, "x-github-delivery": "an-id-of-my-own"}, first.body)  # the signature is of the body alone
    assert (await place.to_github(product, replayed)).status == HTTPStatus.ACCEPTED
    await place.work()
    (activity,) = await place.activity(product)
    assert len(activity.sightings) == 1


async def test_other_content_under_a_known_id_is_refused_and_shown(place: Place) -> None:
    product = await place.a_product()
    secret = await place.a_webhook(product)
    repository = place.github.add_repository("ada/teapot")
    await place.to_github(product, repository.pushed(secret, "feat: Brew tea", guid="one"))
    answer = await place.to_github(product, repository.pushed(secret, "feat: Brew coffee", guid="one"))
    assert answer.status == HTTPStatus.CONFLICT
    await place.work()
    assert [activity.title for activity in await place.activity(product)] == ["Brew tea"]
    connection = await place.connection(product)
    assert (connection.ignored, connection.last_ignored) == (1, answer.reason)


@pytest.mark.parametrize(
    "signature",
    [None, "", "sha256=", "sha256=00", "sha1=757107ea", "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17", "ü"],
)
async def test_a_wrong_or_missing_signature_is_refused_before_anything_is_read(place: Place, signature: str | None) -> None:
    product = await place.a_product()
    await place.a_webhook(product)
    headers = {"x-github-event": "push", "x-github-delivery": "one"}
    given = headers if signature is None else {**headers, "x-hub-signature-256": signature}
    assert await place.webhooks.github(product.id, given, b"{this is not JSON") == REFUSED
    assert (await place.connection(product)).seen_at is MISSING


@pytest.mark.parametrize("product", ["nobody", "", "../../etc", "x" * 5_000, "p#1", "p/1", "é"])
async def test_an_unknown_product_cannot_be_told_from_a_wrong_signature(place: Place, product: str) -> None:
    known = await place.a_product()
    await place.a_webhook(known)
    signed = github_delivery(OTHER_SECRET, "push", {})
    assert await place.to_github(product, signed) == REFUSED
    assert await place.to_github(known, signed) == REFUSED
    assert await place.to_github(await place.a_product(), signed) == REFUSED, "without a connection"


async def test_refusing_an_unknown_product_takes_the_same_steps(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    known = await place.a_product()
    await place.a_webhook(known)
    signed = github_delivery(OTHER_SECRET, "push", {})
    steps: list[str] = []
    decrypt = place.t.encryption.decrypt

    def counted(encrypted: str, *, purpose: str) -> str:
        steps.append("decrypts")
        return decrypt(encrypted, purpose=purpose)

    monkeypatch.setattr(place.t.encryption, "decrypt", counted)
    for product in (known.id, "nobody", "not/a product"):
        steps.clear()
        await place.to_github(product, signed)
        assert steps == ["decrypts"], product


async def test_the_secret_of_one_product_opens_no_other(place: Place) -> None:
    mine, theirs = await place.a_product("ada"), await place.a_product("eve")
    secret = await place.a_webhook(theirs)
    await place.a_webhook(mine)
    signed = place.github.add_repository("ada/teapot").pushed(secret, "feat: Not yours")
    assert await place.to_github(mine, signed) == REFUSED


async def test_a_secret_that_cannot_be_decrypted_any_more_refuses(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    product = await place.a_product()
    secret = await place.a_webhook(product)
    monkeypatch.setattr(place.t.encryption, "_keys", type(place.t.encryption._keys)([]))
    assert await place.to_github(product, place.github.add_repository("ada/teapot").ping(secret)) == REFUSED


async def test_what_is_not_json_or_not_as_documented_is_a_bad_request_and_leaves_nothing(place: Place) -> None:
    product = await place.a_product()
    secret = await place.a_webhook(product)
    signed = github_delivery(secret, "push", {"ref": "refs/heads/main", "repository": {"id": "seven"}})
    answer = await place.to_github(product, signed)
    assert answer.status == HTTPStatus.BAD_REQUEST
    assert "not as documented" in answer.reason
    text = github_delivery(secret, "push", {})
    for body in (b"", b"{", b"\xff\xfe", b"[" * 100_000, b"null"):
        headers = {**text.headers, "x-hub-signature-256": github_signature(secret, body)}
        assert (await place.webhooks.github(product.id, headers, body)).status == HTTPStatus.BAD_REQUEST
    unnamed = {"x-hub-signature-256": text.headers["x-hub-signature-256"]}
    assert (await place.webhooks.github(product.id, unnamed, text.body)).status == HTTPStatus.BAD_REQUEST
    assert not (await place.work()).attempts
    assert (await place.connection(product)).live_at is MISSING


async def test_a_body_over_25_mb_is_too_large_whoever_sends_it(place: Place) -> None:
    body = b" " * (MAX_BODY_BYTES + 1)
    for answer in (
        await place.webhooks.github("nobody", {}, body),
        await place.webhooks.vercel({}, body),
        await place.webhooks.appstore("nobody", {}, body),
    ):
        assert answer.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE


@pytest.mark.parametrize("is_form", [False, True])
async def test_a_large_body_is_verified_as_any_other_and_holds_nobody_up(
    place: Place, is_form: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    product = await place.a_product()
    secret = await place.a_webhook(product)
    messages = [f"feat: Tea number {number}\n\n" + "leaves " * 3_000 for number in range(100)]
    signed = place.github.add_repository("ada/teapot").pushed(secret, *messages, is_form=is_form)
    assert len(signed.body) > 2_000_000
    read, threads = github.read, list[threading.Thread]()

    def read_there(event: str, delivery: str, content_type: str, body: bytes) -> Reading:
        threads.append(threading.current_thread())
        return read(event, delivery, content_type, body)

    monkeypatch.setattr(github, "read", read_there)
    assert (await place.to_github(product, signed)).status == HTTPStatus.ACCEPTED
    assert [thread is threading.main_thread() for thread in threads] == [False]
    await place.work()
    assert await place.db.count(Activity.by_time(product.id)) == 100


async def test_an_unknown_event_is_accepted_and_recorded_as_ignored(anywhere: Place) -> None:
    product = await anywhere.a_product()
    secret = await anywhere.a_webhook(product)
    repository = anywhere.github.add_repository("ada/teapot")
    for event in ("workflow_run", "an_event_of_tomorrow"):
        answer = await anywhere.to_github(product, repository.event(secret, event))
        assert (answer.status, answer.reason) == (HTTPStatus.ACCEPTED, "ignored: nothing is made of this event")
    (shown,) = await anywhere.connections.list("ada", product.id)
    assert (shown.ignored, shown.last_ignored, shown.is_live) == (2, "nothing is made of this event", True)
    assert not (await anywhere.work()).attempts


async def test_a_ping_turns_the_connection_live(anywhere: Place) -> None:
    product = await anywhere.a_product()
    secret = await anywhere.a_webhook(product)
    assert not (await anywhere.connections.setup("ada", product.id, "github")).is_live
    answer = await anywhere.to_github(product, anywhere.github.add_repository("ada/teapot").ping(secret))
    assert answer.status == HTTPStatus.OK
    shown = await anywhere.connections.setup("ada", product.id, "github")
    assert (shown.live_at, shown.seen_at) == (anywhere.now(), anywhere.now())


async def test_what_is_seen_is_written_once_a_minute(place: Place) -> None:
    product = await place.a_product()
    secret = await place.a_webhook(product)
    repository = place.github.add_repository("ada/teapot")
    began = place.now()
    for seconds in (0, 30, 31):
        place.clock.advance(seconds)
        await place.to_github(product, repository.pushed(secret, "feat: Brew tea"))
        connection = await place.connection(product)
        assert connection.live_at == began
        assert connection.seen_at == (place.now() if seconds != 30 else began)


async def test_a_webhook_of_another_repository_is_not_taken_for_the_one_that_was_chosen(place: Place) -> None:
    product = await place.a_product()
    _, secret, _ = await place.a_repository(product)
    other = place.github.add_repository("ada/kettle")
    for signed in (other.pushed(secret, "feat: Boil water"), other.ping(secret)):
        answer = await place.to_github(product, signed)
        assert answer.reason == "ignored: it is about another repository than the one that is connected"
    assert (await place.connection(product)).ignored == 2


async def test_a_form_is_read_as_json_is(place: Place) -> None:
    product = await place.a_product()
    secret = await place.a_webhook(product)
    signed = place.github.add_repository("ada/teapot").pushed(secret, "feat: Brew tea & wait", is_form=True)
    assert (await place.to_github(product, signed)).status == HTTPStatus.ACCEPTED
    await place.work()
    assert [activity.title for activity in await place.activity(product)] == ["Brew tea & wait"]


async def test_a_version_in_the_app_store_becomes_activity(place: Place) -> None:
    product = await place.a_product()
    secret = await place.a_webhook(product, "appstore")
    data = app_version_state("instance-1", "READY_FOR_DISTRIBUTION", at=place.now())
    assert await place.to_appstore(product, appstore_delivery(OTHER_SECRET, data)) == REFUSED
    assert (await place.to_appstore(product, appstore_delivery(secret, data))).status == HTTPStatus.ACCEPTED
    assert (await place.to_appstore(product, appstore_delivery(secret, data))).status == HTTPStatus.OK
    await place.work()
    (activity,) = await place.activity(product)
    assert (activity.id, activity.kind) == ("version:instance-1", "app_release")


async def test_a_test_of_the_app_store_turns_the_connection_live(place: Place) -> None:
    product = await place.a_product()
    secret = await place.a_webhook(product, "appstore")
    signed = appstore_delivery(secret, {"type": "webhookPingCreated", "id": "p1", "attributes": {}})
    bare = Signed({"x-apple-signature": signed.headers["x-apple-signature"].removeprefix("hmacsha256=")}, signed.body)
    assert (await place.to_appstore(product, bare)).status == HTTPStatus.OK
    assert (await place.connection(product, "appstore")).live_at == place.now()


async def test_a_delivery_that_arrives_when_the_product_was_disconnected_is_not_taken_in(place: Place) -> None:
    product = await place.a_product()
    secret = await place.a_webhook(product)
    await place.to_github(product, place.github.add_repository("ada/teapot").pushed(secret, "feat: Too late"))
    await place.connections.disconnect("ada", product.id, "github")
    await place.work()
    assert not await place.activity(product)


async def test_what_waits_in_the_engine_has_only_the_fields_that_are_used(place: Place) -> None:
    product = await place.a_product()
    secret = await place.a_webhook(product)
    await place.to_github(product, place.github.add_repository("ada/teapot").pushed(secret, "feat: Brew tea"))
    (waiting,) = (await place.t.schedules.list(owner="ada")).items
    text = json.dumps(waiting.payload)
    assert "Brew tea" in text
    assert "src/kettle.py" not in text
    assert secret not in text
