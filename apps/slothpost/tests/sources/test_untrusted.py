"""What others wrote, made safe to store and to show."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from slothpost.sources import untrusted


def test_texts_are_cut_and_lose_control_characters() -> None:
    assert untrusted.text("  a\x00b\x1b[0m\r\nc\td\x85 ") == "ab[0m\nc\td"
    assert untrusted.text(None) == ""
    assert len(untrusted.text("x" * 10_000)) == untrusted.MAX_TEXT
    assert untrusted.line("a\n\n b\tc") == "a b c"
    assert untrusted.line("abcdef", 3) == "abc"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://example.com/a?b=c", True),
        ("http://example.com", True),
        ("javascript:alert(1)", False),
        ("data:text/html,x", False),
        ("//example.com", False),
        ("https://a b", False),
        ("https://a\nb", False),
        ("https://" + "x" * 500, False),
        ("", False),
        (None, False),
    ],
)
def test_only_addresses_of_the_web_are_kept(given: str | None, kept: bool) -> None:
    assert untrusted.web_address(given) == (given if kept else None)


def test_instants_are_in_utc_and_absurd_ones_are_dropped() -> None:
    noon = datetime(2027, 3, 1, 12, tzinfo=UTC)
    assert untrusted.instant(noon.astimezone(timezone(timedelta(hours=5)))) == noon
    assert untrusted.instant(noon.replace(tzinfo=None)) == noon
    assert untrusted.instant(int(noon.timestamp())) == noon
    assert untrusted.instant_of_ms(noon.timestamp() * 1000) == noon
    for absurd in (None, -1, 10**12, datetime.min, datetime.max.replace(tzinfo=UTC)):
        assert untrusted.instant(absurd) is None
    for ms in (None, 0, -5, 1e300, 1e15):
        assert untrusted.instant_of_ms(ms) is None


def test_ids_become_parts_of_keys() -> None:
    assert untrusted.short_name("prj_ABC-1.2") == "prj_ABC-1.2"
    for unusual in ("a b", "a#b", "é", "x" * 65, "\ud800"):
        assert len(untrusted.short_name(unusual)) == 40
    assert untrusted.short_name("") == ""
    assert untrusted.commit_id("a" * 64) == f"commit:{'a' * 64}"
    assert untrusted.commit_id("a" * 41) is None
