"""Characters that nobody sees are taken out of what strangers and users write."""

from __future__ import annotations

import pytest

from slothpost.text.invisible import visible, visible_line


@pytest.mark.parametrize(
    "hidden",
    [
        "\x00",
        "\x1b",  # begins what a terminal obeys
        "\x7f",
        "\x9b",
        "\u202e",  # turns the words behind it around
        "\u2066",
        "\u200b",
        "\u00ad",
        "\ufeff",
        "\U000e0041",  # a tag: a letter for machines only
    ],
)
def test_what_nobody_sees_is_taken_out(hidden: str) -> None:
    assert visible(f"a{hidden}b\n\tc") == "ab\n\tc"
    assert visible_line(f" a{hidden}  b\n\tc{hidden} ") == "a b c"


@pytest.mark.parametrize(
    "text", ["Ünïcode – “quotes” …", "👨‍👩‍👧 🏳️‍🌈 🇩🇪 1️⃣", "日本語のテキスト", "क्‍ष नमस्ते", "مرحبا بكم", "می‌خواهم"]
)
def test_what_people_write_stays(text: str) -> None:
    assert visible(text) == text


def test_lines_that_only_machines_count_become_one() -> None:
    assert visible_line("one\u2028two\x85three\x1cfour") == "one two three four"
