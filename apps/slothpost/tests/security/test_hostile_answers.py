"""A network that answers what it should not: nothing of it becomes a link, a key, a line of the log, or a date that cannot be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from slothpost.networks.graph_errors import read_graph_error
from slothpost.networks.network import NotSent, TokenPair
from slothpost.networks.request import Answer
from slothpost.networks.threads_answers import ThreadsPost, ThreadsUser
from slothpost.networks.token_answer import lifetime_of, read_tokens
from slothpost.networks.x import XNetwork, XSettings
from slothpost.networks.x_errors import post_error
from slothpost.sources import vercel
from slothpost.sources.untrusted import Unreadable
from slothpost.standins.x import XStandIn

NOW = datetime(2027, 3, 1, 9, tzinfo=UTC)


def answer(status: int, content: object) -> Answer:
    return Answer(status, {}, msgspec.json.encode(content))


@pytest.mark.parametrize(
    "permalink",
    ["javascript:alert(1)", "data:text/html,x", "//evil.example", "https://a b", "https://a\n", "https://" + "x" * 600],
)
def test_an_address_that_no_page_may_link_to_is_none(permalink: str) -> None:
    assert ThreadsPost(id="1", permalink=permalink).address is None


def test_an_address_of_the_web_stays() -> None:
    assert ThreadsPost(id="1", permalink="https://www.threads.net/@ada/post/1").address == "https://www.threads.net/@ada/post/1"
    assert ThreadsPost(id="1").address is None


@pytest.mark.parametrize(
    ("id", "username"), [("1/../2", "ada"), ("1 of eve", "ada"), ("", "ada"), ("1\n", "ada"), ("1", "<b>"), ("1", "ada\x1b[2J")]
)
def test_a_person_with_an_impossible_id_or_name_is_none(id: str, username: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode({"id": id, "username": username}), type=ThreadsUser)


async def test_an_account_whose_id_would_be_another_key_is_not_connected(x: XStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = XSettings(client_id=x.client_id, api_url=x.url, authorize_url=x.url, site_url=x.url)
    network = XNetwork(settings, lambda: pytest.fail("not asked"), lambda: NOW)

    async def send(*_: object) -> Answer:
        return answer(200, {"data": {"id": "1 of eve", "username": "ada"}})

    monkeypatch.setattr(network, "_send", send)
    with pytest.raises(NotSent, match="whose account"):
        await network.whoami("token")


@pytest.mark.parametrize(
    ("seconds", "lives"),
    [(None, None), (7200, timedelta(hours=2)), (-1, timedelta(0)), (10**18, timedelta(days=366)), (0, timedelta(0))],
)
def test_a_lifetime_is_one_that_can_be_stored(seconds: int | None, lives: timedelta | None) -> None:
    assert lifetime_of(seconds) == lives
    issued = {"access_token": "a", "refresh_token": "r", "expires_in": seconds}
    assert read_tokens(answer(200, issued)) == TokenPair(access="a", refresh="r", lifetime=lives)


def test_words_are_one_line_without_what_a_terminal_obeys() -> None:
    hostile = "no\r\nINFO forged line\x1b[2J \u202egnp.exe" + "x" * 1_000
    for said in (
        str(post_error(answer(403, {"detail": hostile, "title": "Forbidden"}), NOW)),
        str(post_error(answer(403, {"errors": [{"message": hostile}]}), NOW)),
        read_graph_error(answer(400, {"error": {"message": hostile, "code": 1}})).said,
    ):
        assert "no INFO forged line[2J gnp.exe" in said
        assert said.isprintable()
        assert len(said) < 400


@pytest.mark.parametrize("number", ["1" + "0" * 400, "-1" + "0" * 400, "1e308", "123456789012345678901234567890"])
def test_a_number_that_no_division_takes_is_no_instant(number: str) -> None:
    payload = '{"project": {"id": "prj_1"}, "deploymentId": "x"}'
    body = f'{{"type": "deployment.promoted", "id": "d1", "createdAt": {number}, "payload": {payload}}}'
    try:
        (happening,) = vercel.read(body.encode()).happenings
    except Unreadable:
        return
    assert happening.at is None
