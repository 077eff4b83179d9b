"""Texts that are cut so that a network takes them."""

from __future__ import annotations

import os
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slothpost.model import ChannelName
from slothpost.text.check import check_text
from slothpost.text.shorten import fit

SOAK = os.environ.get("TICKLER_SOAK") == "1"
examples = settings(max_examples=3_000 if SOAK else 60, derandomize=not SOAK, deadline=None, database=None)

BOTH = pytest.mark.parametrize("channel", ["x", "threads"])
CHANNELS = st.sampled_from(["x", "threads"])
SENTENCES = (
    "Dark mode is here. ",
    "It took three evenings! ",
    "新機能を公開しました。",
    "ダークモード",
    "word ",
    "\n\n",
    ", ",
    " — ",
)
LINKS = ("https://tickler.dev/a ", "https://example.com/" + "a" * 300 + " ", "README.md ", "a.b.", "x" * 200)
EMOJI = ("\U0001f469\U0001f3fd\u200d\U0001f4bb", "🎉", "e\u0301", "\ufeff", "🇩🇪")
PIECES = st.sampled_from((*SENTENCES, *LINKS, *EMOJI))


@BOTH
@pytest.mark.parametrize("text", ["", "  ", "Dark mode is here.", "新機能 🎉"])
def test_what_fits_stays_as_it_is(channel: ChannelName, text: str) -> None:
    assert fit(channel, text) == text.strip()


def test_a_text_is_cut_after_a_sentence() -> None:
    sentence = "Dark mode is here, and it took three evenings. "
    assert fit("x", sentence * 10) == (sentence * 5).strip()


def test_a_text_of_one_long_sentence_is_cut_after_a_word() -> None:
    cut = fit("x", "dark mode, " * 60)
    assert cut.endswith(("dark mode…", "dark…"))
    assert 270 < check_text("x", cut).length <= 280


def test_a_short_sentence_is_not_all_that_stays() -> None:
    assert len(fit("x", "Hi. " + "dark mode and " * 60)) > 200


def test_a_text_without_spaces_is_cut_after_a_sentence_or_a_character() -> None:
    assert fit("x", "新機能を公開しました。" * 20) == "新機能を公開しました。" * 12
    assert fit("x", "中" * 200) == "中" * 139 + "…"


def test_emoji_and_accents_stay_whole() -> None:
    assert fit("x", "👩🏽‍💻" * 200) == "👩🏽‍💻" * 139 + "…"
    assert fit("threads", "👩🏽‍💻" * 200) == "👩🏽‍💻" * 33 + "…"
    assert fit("threads", "q\u0307" * 400) == "q\u0307" * 249 + "…"


def test_a_link_is_never_cut() -> None:
    link = "https://example.com/" + "a" * 700
    assert fit("threads", f"Read this: {link}") == "Read this…"
    assert fit("threads", link) == ""
    assert fit("x", f"Read this: {link}") == f"Read this: {link}"


def test_links_that_are_too_many_for_threads_are_cut_off() -> None:
    links = [f"https://tickler.dev/{n}" for n in range(7)]
    assert fit("threads", " ".join(links)) == " ".join(links[:5]) + "…"


def test_characters_that_are_refused_are_removed() -> None:
    assert fit("x", "\ufeffDark\x00 mode\ud83d") == "Dark mode"


@examples
@given(CHANNELS, st.lists(PIECES, max_size=60).map("".join) | st.text(max_size=700))
def test_a_text_that_was_cut_is_sendable_and_a_part_of_what_it_was(channel: ChannelName, text: str) -> None:
    cut = fit(channel, text)
    assert cut == "" or check_text(channel, cut).is_sendable
    assert fit(channel, cut) == cut
    cleaned = text.replace("\ufeff", "").replace("\x00", "").replace("\ufffe", "").replace("\uffff", "").strip()
    assert cleaned.startswith(cut.removesuffix("…"))
    assert len(cut) > 0 or cleaned == "" or "https://" in cleaned


@BOTH
def test_a_text_that_is_long_by_far_is_cut_in_time(channel: ChannelName) -> None:
    start = time.process_time()
    assert fit(channel, "日.本_.com " * 20_000) != ""
    assert time.process_time() - start < 3
