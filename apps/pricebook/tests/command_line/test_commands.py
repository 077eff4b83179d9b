"""The command line: people, tokens, stores, loading, one beat, and errors of one line."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., str]

LINK = r"http://127.0.0.1:8323/sign-in/[\w-]{43}\n"


def test_people_are_added_and_listed_and_get_links(run: Run) -> None:
    assert re.fullmatch(LINK, run("person", "add", "Ada Lovelace", "--zone", "Europe/Paris"))
    assert re.fullmatch(LINK, run("person", "add", "Bo", "--role", "read", "--stores", "10", "--stores", "2", "--id", "bo-2"))
    assert run("person", "list") == "ada-lovelace  read, edit, approve  all stores  Ada Lovelace\nbo-2  read  10…, 2…  Bo\n"
    assert re.fullmatch(LINK, run("person", "link", "bo-2"))


def test_tokens_are_added_listed_and_revoked(run: Run) -> None:
    assert re.fullmatch(r"pb_[0-9a-f]{16}_[0-9a-f]{64}\n", run("token", "add", "till 7", "--stores", "10"))
    run("token", "add", "import", "--role", "approve", "--role", "edit")
    listed = [line.split("  ") for line in run("token", "list").splitlines()]
    assert sorted(each[1:] for each in listed) == [["edit, approve", "all stores", "import"], ["read", "10…", "till 7"]]
    run("token", "revoke", listed[0][0])
    assert run("token", "list").split("  ")[0] == listed[1][0]


def test_stores_are_added_and_listed(run: Run) -> None:
    assert run("store", "add", "2", "--zone", "Asia/Tokyo", "--home", "eu-central-1") == "2  Asia/Tokyo  eu-central-1\n"
    run("store", "add", "10")
    assert run("store", "list") == "10  UTC\n2  Asia/Tokyo  eu-central-1\n"
    assert "there is a store '10' already" in run("store", "add", "10", code=1)


def test_made_stores_are_loaded_once(run: Run) -> None:
    assert run("load", "--made", "3", "5") == "loaded 15 prices of 3 stores\n"
    assert run("store", "list").splitlines()[0] == "10000  America/New_York"
    said = run("load", "--made", "4", "5", code=1)
    assert "there is a store '10000' already, so nothing was loaded: change its prices with `pricebook import`" in said
    assert len(run("store", "list").splitlines()) == 3


def test_prices_in_a_file_are_loaded_with_their_stores(run: Run, folder: Path) -> None:
    (folder / "prices.csv").write_text(
        "store,channel,product,amount,currency\n8,ALL,TEA,1.50,EUR\n8,WEB,TEA,1.40,EUR\n7,,MILK,99,JPY\n"
    )
    assert run("load", "prices.csv", "--zone", "Asia/Tokyo") == "loaded 3 prices of 2 stores\n"
    assert run("store", "list") == "7  Asia/Tokyo\n8  Asia/Tokyo\n"
    (folder / "more.ndjson").write_text('{"store": "9", "product": "TEA", "amount": "1.50"}\n')
    assert run("load", "more.ndjson", "--currency", "EUR") == "loaded 1 prices of 1 stores\n"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("store,product,amount\n9,TEA,1.50\n", "line 2"),
        ("store,product,amount,currency\n9,TEA,1.50,EUR\n9,MILK,,EUR\n", "line 3 has no amount"),
        ("store,product,amount,currency\n9,TEA,1.50,EUR\n9,TEA,1.60,EUR\n", "twice"),
        ("product,amount\nTEA,1\n", "the column 'store' is missing"),
        ("", "is empty"),
    ],
)
def test_a_file_with_a_fault_loads_nothing(run: Run, folder: Path, content: str, told: str) -> None:
    (folder / "prices.csv").write_text(content)
    said = run("load", "prices.csv", code=1)
    assert told in said
    assert said.count("\n") == 1
    assert run("store", "list") == ""


def test_an_export_that_is_imported_changes_nothing(run: Run, folder: Path) -> None:
    run("load", "--made", "3", "5")
    prices = run("export", "--format", "csv")
    assert len(prices.splitlines()) == 16
    (folder / "same.csv").write_text(prices)
    assert "0 changes, 15 unchanged, 0 kept, 0 refused" in run("import", "same.csv")
    (folder / "one.csv").write_text("store,product,amount,currency\n10001,PROD0001,77.77,EUR\n10001,PROD0002,oops,EUR\n")
    said = run("import", "one.csv", "--submit", code=4)
    assert "oops" in said


def test_a_store_is_moved_to_another_region(run: Run) -> None:
    run("store", "add", "7", "--home", "eu-west-1")
    assert run("store", "move-home", "7", "us-east-1") == "7 is at home in us-east-1\n"
    assert run("store", "list") == "7  UTC  us-east-1\n"


def test_stores_have_the_home_of_the_process_that_adds_them(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRICEBOOK_REGION", "eu-west-1")
    assert run("store", "add", "7") == "7  UTC  eu-west-1\n"
    run("load", "--made", "1", "1")
    assert run("store", "list") == "10000  America/New_York  eu-west-1\n7  UTC  eu-west-1\n"


def test_receivers_are_listed_and_get_secrets(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRICEBOOK_RECEIVERS", "https://tills.example.com/events, legacy:https://old.example.com")
    assert run("receiver", "list") == "https://tills.example.com/events\nlegacy:https://old.example.com\n"
    first, second = (run("receiver", "secret", "https://tills.example.com/events") for _ in range(2))
    assert first.startswith("whsec_")
    assert first != second


def test_a_sweep_says_what_it_began_again(run: Run) -> None:
    assert run("sweep") == "began again: 0 stores, 0 change sets, 0 imports\n"


def test_a_beat_says_what_it_did(run: Run) -> None:
    assert set(json.loads(run("tick"))) >= {"claimed", "delivered", "failed"}


@pytest.mark.parametrize(
    ("arguments", "code", "start"),
    [
        (("person", "link", "nobody"), 3, "pricebook: there is no such person 'nobody'"),
        (("store", "move-home", "9", "us-east-1"), 3, "pricebook: there is no such store"),
        (("store", "move-home", "9", "us east"), 1, "pricebook: region: 'us east' is not a region"),
        (("receiver", "secret", "https://tills.example.com"), 3, "pricebook: there is no such receiver 'https://tills"),
        (("receiver", "secret", "tills"), 1, "pricebook: receiver: 'tills' does not begin with http"),
        (("import", "nowhere.csv"), 1, "pricebook: FILE: nowhere.csv cannot be read"),
        (("job", "nothing"), 3, "pricebook: there is no such bulk job"),
        (("token", "revoke", "0123"), 3, "pricebook: there is no such token '0123'"),
        (("token", "add", "till", "--role", "admin"), 1, "pricebook: --role: use one or more of read, edit, approve"),
        (("person", "add", "Ada", "--zone", "Mars/Olympus"), 1, "pricebook: zone: 'Mars/Olympus' is not a time zone: use"),
        (("store", "add", "1", "--zone", "Mars/Olympus"), 1, "pricebook: "),
        (("serve", "--host", "0.0.0.0"), 1, "pricebook: PRICEBOOK_URL: it is missing, and 0.0.0.0 is reachable from"),
        (("load",), 1, "pricebook: FILE: name a file, or give --made"),
        (("load", "x.csv", "--made", "1", "1"), 1, "pricebook: FILE: name a file, or give --made"),
        (("load", "nowhere.csv"), 1, "pricebook: file: nowhere.csv cannot be read: No such file"),
        (("load", "--made", "0", "5"), 1, "pricebook: --made: give 1 to 100,000 stores"),
        (("tick", "--budget-ms", "0"), 2, "Usage: "),
        (("dance",), 2, "Usage: "),
    ],
)  # fmt: skip
def test_an_error_is_one_line_with_the_remedy(run: Run, arguments: tuple[str, ...], code: int, start: str) -> None:
    said = run(*arguments, code=code)
    assert said.startswith(start)
    assert said.count("\n") == 1 or code == 2, "what is wrong with the arguments comes with how to use them"


@pytest.mark.parametrize(
    ("name", "value", "start"),
    [
        ("PRICEBOOK_PORT", "http", "pricebook: PRICEBOOK_PORT: 'http' is not a port"),
        ("PRICEBOOK_STORE", "postgresql://nowhere.invalid/x", "pricebook: TICKLER_KEY: it is missing"),
        ("PRICEBOOK_STORE", "sqlite:////nowhere/at/all.db", "pricebook: TICKLER_KEY: /nowhere/at/all.db.key cannot be written"),
        ("TICKLER_KEY", "short", "pricebook: TICKLER_KEY: "),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str, value: str, start: str
) -> None:
    monkeypatch.setenv(name, value)
    said = run("person", "list", code=1)
    assert said.startswith(start)
    assert said.count("\n") == 1


def test_the_database_and_its_key_are_made_once_and_readable_by_their_owner_only(run: Run, folder: Path) -> None:
    run("person", "add", "Ada")
    key = (folder / "prices.db.key").read_text()
    run("person", "list")
    assert (folder / "prices.db.key").read_text() == key
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
