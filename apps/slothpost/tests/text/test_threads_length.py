"""How long Threads says a text is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slothpost.text.emoji import ANY_EMOJI
from slothpost.text.threads_length import threads_length

SOAK = os.environ.get("TICKLER_SOAK") == "1"
examples = settings(max_examples=5_000 if SOAK else 100, derandomize=not SOAK, deadline=None, database=None)

LIST_EMOJI = r"""
const found = [];
for (let code = 0; code < 0x110000; code++) {
  const character = String.fromCodePoint(code < 0xd800 || code > 0xdfff ? code : 0);
  if (/^\p{Emoji_Presentation}$/u.test(character)) found.push(character);
  else if (/^\p{Emoji}$/u.test(character) && code > 0x2000) found.push(character + "\ufe0f");
}
process.stdout.write(JSON.stringify(found));
"""


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("", 0),
        ("Dark mode", 9),
        ("Café – “naïve”", 14),
        ("新機能", 3),
        ("𠀋", 1),
        ("🦥", 4),
        ("🦥🦥 two", 12),
        ("❤️", 6),
        ("❤", 3),
        ("🙋🏽", 8),
        ("👨‍👩‍👧‍👦", 25),
        ("🇩🇪", 8),
        ("1️⃣", 7),
        ("1", 1),
        ("#", 1),
        ("©", 1),
        ("©️", 5),
        ("🏴󠁧󠁢󠁥󠁮󠁧󠁿", 28),
        ("🏳️‍⚧️", 16),
        ("🧑🏽‍🤝‍🧑🏿", 26),
        ("https://tickler.dev/docs", 24),
    ],
)
def test_an_emoji_counts_its_bytes_and_the_rest_its_characters(text: str, length: int) -> None:
    assert threads_length(text) == length


@examples
@given(st.text())
def test_a_length_is_between_the_characters_and_the_bytes(text: str) -> None:
    assert len(text) <= threads_length(text) <= len(text.encode())


@examples
@given(st.text("aé🦥 中", max_size=40), st.text("aé🦥 中", max_size=40))
def test_texts_count_the_same_together_as_alone(one: str, other: str) -> None:
    assert threads_length(one + other) == threads_length(one) + threads_length(other)


def test_every_emoji_of_unicode_is_known(soak: bool) -> None:
    if not soak:
        pytest.skip("all of Unicode is read by `make soak`")
    if shutil.which("node") is None:
        pytest.skip("NOT TESTED: there is no node, which knows the emoji of Unicode")
    ran = subprocess.run(["node", "-e", LIST_EMOJI], capture_output=True, encoding="utf-8", check=True, timeout=60)
    emoji: list[str] = json.loads(ran.stdout)
    assert len(emoji) > 1_300
    assert [each for each in emoji if not ANY_EMOJI.fullmatch(each)] == []
