"""Settings from the environment."""

from __future__ import annotations

import pytest

from slothpost.errors import InvalidField
from slothpost.settings import Settings


def test_everything_has_a_default_but_credentials() -> None:
    settings = Settings.from_environment({"PATH": "/bin"})
    assert (settings.store, settings.base_url, settings.x, settings.tick_secret) == (
        "sqlite:///slothpost.db",
        "http://127.0.0.1:8322",
        None,
        None,
    )


def test_credentials_and_addresses_of_networks_are_read() -> None:
    settings = Settings.from_environment(
        {
            "SLOTHPOST_URL": "https://posts.example.com",
            "SLOTHPOST_X_CLIENT_ID": "abc",
            "SLOTHPOST_X_API_URL": "http://127.0.0.1:9",
            "SLOTHPOST_PROXIES": "10.0.0.1, 10.0.0.2",
            "SLOTHPOST_ANTHROPIC_KEY": "sk-1",
            "SLOTHPOST_VERCEL_CLIENT_SECRET": "s",
        }
    )
    assert settings.x is not None
    assert (settings.x.client_id, settings.x.client_secret, settings.x.api_url) == ("abc", None, "http://127.0.0.1:9")
    assert (settings.proxies, settings.is_https, settings.host) == (("10.0.0.1", "10.0.0.2"), True, "posts.example.com")
    assert (settings.drafters.anthropic_key, settings.sources.vercel_client_secret) == ("sk-1", "s")
    assert "sk-1" not in repr(settings)


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({"SLOTHPOST_STOER": "x"}, r"SLOTHPOST_STOER: there is no such variable: did you mean SLOTHPOST_STORE\?"),
        ({"SLOTHPOST_QQQQQQ": "x"}, "SLOTHPOST_QQQQQQ: there is no such variable: remove it"),
        ({"SLOTHPOST_PORT": "http"}, "SLOTHPOST_PORT: 'http' is not a port"),
        ({"SLOTHPOST_PORT": "70000"}, "SLOTHPOST_PORT: '70000' is not a port"),
        ({"SLOTHPOST_URL": "posts.example.com"}, "SLOTHPOST_URL: 'posts.example.com' is not an address"),
        ({"SLOTHPOST_URL": "https://example.com/posts"}, "is not an address without a path"),
        ({"SLOTHPOST_TICK_SECRET": "beat"}, "SLOTHPOST_TICK_SECRET: use at least 16 characters"),
        ({"SLOTHPOST_THREADS_CLIENT_ID": "1"}, "SLOTHPOST_THREADS_CLIENT_SECRET: it is missing"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(environ: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidField, match=told):
        Settings.from_environment(environ)
