"""How long X says a text is."""

from __future__ import annotations

import os
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slothpost.text.utf16 import from_utf16, to_utf16, utf16_length
from slothpost.text.x_length import x_length
from slothpost.text.x_links import MAX_SEARCHED

SOAK = os.environ.get("TICKLER_SOAK") == "1"
examples = settings(max_examples=5_000 if SOAK else 100, derandomize=not SOAK, deadline=None, database=None)

FAMILY = "👨‍👩‍👧‍👦"
TEXTS = st.text(st.characters(exclude_categories=()), max_size=60) | st.text("aé中🎉👩\u200d\ufe0f\u20e31. /:@", max_size=60)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("Hi http://test.co", 26),
        ("中" * 160, 320),
        (f"H🐱☺{FAMILY}", 7),
        ("🙋🏽👨‍🎤", 4),
        ("1⃣", 2),
        (FAMILY * 140, 280),
        ("a" * 64 + ".com", 68),
    ],
)
def test_the_published_examples_of_x_count_as_published(text: str, length: int) -> None:
    assert x_length(text) == length


@pytest.mark.parametrize("text", ["…", "•", "→", "€", "✅"])
def test_characters_that_drafts_like_weigh_two(text: str) -> None:
    assert x_length(text) == 2


@pytest.mark.parametrize("text", ["—", "“", "”", "’", "é", "ж"])
def test_dashes_quotes_and_european_letters_weigh_one(text: str) -> None:
    assert x_length(text) == 1


@pytest.mark.parametrize("text", ["README.md", "app.py", "foo.io/bar", "https://tickler.dev/a/very/long/path?of=a&page=1#here"])
def test_a_link_weighs_23_however_long_it_is(text: str) -> None:
    assert x_length(text) == 23


@examples
@given(TEXTS)
def test_a_length_is_between_nothing_and_two_a_character(text: str) -> None:
    links = text.count(".")
    assert 0 <= x_length(text) <= 2 * len(unicodedata.normalize("NFC", text)) + 23 * links
    assert (x_length(text) == 0) == (text == "")


@examples
@given(TEXTS, TEXTS)
def test_words_weigh_the_same_together_as_alone(one: str, other: str) -> None:
    assert x_length(f"{one} \n {other}") == x_length(one + " ") + x_length("\n") + x_length(" " + other)


@examples
@given(TEXTS)
def test_it_does_not_matter_how_accents_are_written(text: str) -> None:
    assert x_length(unicodedata.normalize("NFD", text)) == x_length(text)


@examples
@given(st.text())
def test_a_text_becomes_utf_16_and_back(text: str) -> None:
    units = to_utf16(text)
    assert units.encode("utf-16-le", "surrogatepass") == text.encode("utf-16-le")
    assert from_utf16(units) == text
    assert len(units) == utf16_length(text)


@settings(examples, max_examples=200 if SOAK else 20)
@given(
    st.lists(st.sampled_from(["日.", "a.", "_.com", ".com", "(a", "http://", "a.co/", ".", "é", "xn--"]), min_size=1, max_size=4)
)
def test_a_text_that_is_made_to_be_slow_is_counted_in_time(parts: list[str]) -> None:
    text = "".join(parts) * (10_000 // len("".join(parts)))
    start = time.process_time()
    x_length(text + parts[0] + "_.com")
    assert time.process_time() - start < 3


def test_the_part_of_a_text_that_is_too_long_by_far_is_counted_without_links() -> None:
    text = "a " * (MAX_SEARCHED // 2)
    assert x_length(f"{text}tickler.dev/docs") == len(text) + len("tickler.dev/docs")
