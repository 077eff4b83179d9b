"""`tickler token create`, `list`, `revoke` and `open`."""

from __future__ import annotations

import re

import pytest

from tickler import connect_sync
from tickler.access.tokens import Token

from .conftest import Here
from .test_schedules import deeds


def checked(url: str, text: str) -> Token | None:
    with connect_sync(url) as t:
        token: Token | None = t.tokens.check(text)
    return token


def test_a_token_is_printed_alone_so_that_a_script_can_keep_it(here: Here, url: str) -> None:
    done = here("token", "create", "--scope", "write", "--scope", "read", "--owner", "u1", "--name", "the shop")
    assert done.code == 0
    text = done.out.strip()
    assert re.fullmatch(r"tk_[0-9a-f]+_[0-9a-f]+", text)
    token = checked(url, text)
    assert token is not None
    assert (token.scopes, token.owner, token.name, token.expires_at) == (("read", "write"), "u1", "the shop", None)
    assert f"{token.id} allows read, write for u1; it will not be shown again:" in done.err
    assert text not in done.err
    assert deeds(url) == [("ada", "made a token", "u1", None, token.id)]


def test_tokens_are_listed_without_their_secrets(here: Here, url: str) -> None:
    text = here("token", "create", "--scope", "operate", "--expires", "2035-01-01T00:00:00Z", "--json").json["token"]
    done = here("token", "list")
    assert done.lines[0].split() == ["id", "scopes", "owner", "name", "created", "(UTC)", "expires", "(UTC)"]
    assert re.split("  +", done.lines[1])[1:3] == ["operate", "all"]
    assert done.lines[1].endswith("2035-01-01 00:00:00")
    (listed,) = here("token", "list", "--json").json["items"]
    assert (listed["scopes"], listed["owner"]) == (["operate"], None)
    assert text.split("_")[2] not in str(listed) + done.out


def test_a_token_may_last_for_a_while_from_now(here: Here, file_url: str) -> None:
    made = here("token", "create", "--scope", "read", "--expires", "30d", "--json").json
    assert made["expires_at"] - made["created_at"] in range(30 * 86_400_000 - 10_000, 30 * 86_400_000 + 1)


def test_a_token_that_is_revoked_is_worth_nothing(here: Here, url: str) -> None:
    made = here("token", "create", "--scope", "read", "--json").json
    assert here("token", "revoke", made["id"]).out == f"{made['id']} revoked\n"
    assert checked(url, made["token"]) is None
    nobody = "no tokens, and every request needs one: create one, or see `tickler token open --help`\n"
    assert here("token", "list").err == nobody
    again = here("token", "revoke", made["id"])
    assert (again.code, again.out) == (3, "")
    assert again.err == f"tickler: no token {made['id']}: see `tickler token list`\n"
    assert deeds(url)[-1] == ("ada", "revoked a token", None, None, made["id"])


def test_a_closed_service_is_opened_by_who_says_so_and_that_is_noted(here: Here, url: str) -> None:
    made = here("token", "create", "--scope", "read", "--json").json
    refused = here("token", "open", "--yes")
    assert (refused.code, "revoke them first" in refused.err) == (1, True)
    here("token", "revoke", made["id"])
    unsure = here("token", "open")
    assert (unsure.code, "confirm with --yes" in unsure.err) == (2, True)
    assert [action for _, action, *_ in deeds(url)] == ["made a token", "revoked a token"]
    assert here("token", "open", "--yes").out == "no token is needed any more\n"
    assert deeds(url)[-1] == ("ada", "opened the service", None, None, None)
    assert here("token", "list").err == ("no tokens: the service is open to its own machine, with all permissions\n")
    assert here("token", "open", "--yes", "--json").json == {"opened": False}
    assert len(deeds(url)) == 3


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--scope", "operate", "--owner", "u1"], 1, "operate covers all owners"),
        (["--scope", "read", "--expires", "2001-01-01T00:00:00Z"], 1, "has passed"),
        (["--scope", "read", "--expires", "soon"], 1, "expires 'soon' is not a date and time"),
        (["--scope", "rule"], 2, "'rule' is not one of"),
        ([], 2, "--scope"),
    ],
)
def test_a_token_that_makes_no_sense_is_refused(here: Here, file_url: str, arguments: list[str], code: int, said: str) -> None:
    done = here("token", "create", *arguments)
    assert (done.code, done.out) == (code, "")
    assert said in done.err
