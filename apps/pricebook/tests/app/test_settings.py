"""Settings from the environment."""

from __future__ import annotations

import pytest

from pricebook.app import Settings
from pricebook.errors import InvalidField
from tickler.webhooks import new_secret

ONE, TWO = new_secret(), new_secret()


def test_everything_has_a_default() -> None:
    settings = Settings.from_environment({"PATH": "/bin"})
    assert (settings.store, settings.base_url, settings.receivers, settings.tick_secret, settings.four_eyes) == (
        "sqlite:///pricebook.db",
        "http://127.0.0.1:8323",
        (),
        None,
        True,
    )


def test_what_is_set_is_read() -> None:
    settings = Settings.from_environment(
        {
            "PRICEBOOK_STORE": "postgresql://prices:secret@db/prices",
            "PRICEBOOK_URL": "https://prices.example.com",
            "PRICEBOOK_PROXIES": "10.0.0.1, 10.0.0.2",
            "PRICEBOOK_RECEIVERS": "https://tills.example.com/hook, legacy:https://old.example.com",
            "PRICEBOOK_TICK_SECRET": "what only the cron knows",
            "PRICEBOOK_REGION": "eu-central-1",
            "PRICEBOOK_FOUR_EYES": "no",
            "PRICEBOOK_LARGE_CHANGE": "15",
            "PRICEBOOK_SETTLE_URL": "https://prices.example.com/settle",
            "PRICEBOOK_SETTLE_SECRETS": f"{ONE}, {TWO}",
        }
    )
    assert (settings.proxies, settings.is_https, settings.host) == (("10.0.0.1", "10.0.0.2"), True, "prices.example.com")
    assert settings.receivers == ("https://tills.example.com/hook", "legacy:https://old.example.com")
    assert (settings.region, settings.four_eyes, settings.url("/x")) == ("eu-central-1", False, "https://prices.example.com/x")
    assert (settings.large_change, settings.settle_url) == (0.15, "https://prices.example.com/settle")
    assert settings.settle_secrets == (ONE, TWO)
    assert "secret" not in repr(settings)
    assert Settings.from_environment({"PRICEBOOK_PORT": "9000"}).base_url == "http://127.0.0.1:9000"


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({"PRICEBOOK_STOER": "x"}, r"PRICEBOOK_STOER: there is no such variable: did you mean PRICEBOOK_STORE\?"),
        ({"PRICEBOOK_QQQQQQ": "x"}, "PRICEBOOK_QQQQQQ: there is no such variable: remove it"),
        ({"PRICEBOOK_PORT": "http"}, "PRICEBOOK_PORT: 'http' is not a port"),
        ({"PRICEBOOK_PORT": "70000"}, "PRICEBOOK_PORT: '70000' is not a port"),
        ({"PRICEBOOK_URL": "prices.example.com"}, "PRICEBOOK_URL: 'prices.example.com' is not an address"),
        ({"PRICEBOOK_URL": "https://example.com/prices"}, "is not an address without a path"),
        ({"PRICEBOOK_STORE": "prices.db"}, "PRICEBOOK_STORE: it is not the address of a store: use one such as sqlite:///"),
        ({"PRICEBOOK_SETTLE_URL": "https://example.com/settle"}, "PRICEBOOK_SETTLE_SECRETS: it is missing"),
        ({"PRICEBOOK_SETTLE_SECRETS": "changeme"}, "PRICEBOOK_SETTLE_SECRETS: it is not a secret: set it to what"),
        ({"PRICEBOOK_ALLOW_NETWORKS": "127.0.0.1.1"}, "PRICEBOOK_ALLOW_NETWORKS: '127.0.0.1.1' does not appear to be"),
        ({"PRICEBOOK_TICK_SECRET": "beat"}, "PRICEBOOK_TICK_SECRET: use at least 16 characters"),
        ({"PRICEBOOK_FOUR_EYES": "perhaps"}, "PRICEBOOK_FOUR_EYES: 'perhaps' is neither yes nor no"),
        ({"PRICEBOOK_LARGE_CHANGE": "0"}, "PRICEBOOK_LARGE_CHANGE: '0' is not a percentage"),
        ({"PRICEBOOK_LARGE_CHANGE": "2.5"}, "PRICEBOOK_LARGE_CHANGE: '2.5' is not a percentage"),
        ({"PRICEBOOK_RECEIVERS": "tills.example.com"}, "PRICEBOOK_RECEIVERS: 'tills.example.com' does not begin with http"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(environ: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidField, match=told):
        Settings.from_environment(environ)
