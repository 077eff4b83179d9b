"""What people are told of a text before it goes out."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slothpost.model import ChannelName
from slothpost.text.check import check_text

SOAK = os.environ.get("TICKLER_SOAK") == "1"
examples = settings(max_examples=5_000 if SOAK else 100, derandomize=not SOAK, deadline=None, database=None)

BOTH = pytest.mark.parametrize("channel", ["x", "threads"])
CHANNELS = st.sampled_from(["x", "threads"])


@BOTH
def test_an_ordinary_text_has_neither_problems_nor_warnings(channel: ChannelName) -> None:
    check = check_text(channel, "Dark mode is here… → try it ✅ 新機能")
    assert check.is_sendable
    assert check.warnings == check.links == ()


def test_a_post_on_x_costs_far_more_with_a_link_and_nothing_on_threads() -> None:
    assert check_text("x", "Dark mode is here.").cost_microdollars == 15_000
    assert check_text("x", "See https://tickler.dev").cost_microdollars == 200_000
    assert check_text("threads", "See https://tickler.dev").cost_microdollars == 0


@BOTH
def test_links_are_listed_in_their_order(channel: ChannelName) -> None:
    check = check_text(channel, "First https://b.com/x?y=1, then a.com/z and http://b.com/x.")
    assert check.links == ("https://b.com/x?y=1", "a.com/z", "http://b.com/x")


@pytest.mark.parametrize(
    ("channel", "text", "problem"),
    [
        ("x", "a" * 281, "Shorten it by 1: it counts 281, and X takes 280."),
        ("x", "中" * 700, "Shorten it by 1,120: it counts 1,400, and X takes 280."),
        ("threads", "🦥" * 126, "Shorten it by 4: it counts 504, and Threads takes 500."),
    ],
)
def test_a_text_that_is_too_long_says_by_how_much(channel: ChannelName, text: str, problem: str) -> None:
    assert check_text(channel, text).problems == (problem,)


def test_a_text_as_long_as_the_limit_is_sendable() -> None:
    assert check_text("x", "a" * 280).is_sendable
    assert check_text("threads", "a" * 500).is_sendable


@BOTH
@pytest.mark.parametrize("text", ["", " ", "\n\t "])
def test_an_empty_text_is_a_problem(channel: ChannelName, text: str) -> None:
    assert check_text(channel, text).problems == ("Write a text: there is none.",)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a\ufeffb", "Remove the invisible character U+FEFF: X refuses the post."),
        ("a\x00b\uffffc\x00", "Remove the invisible characters U+0000 and U+FFFF: X refuses the post."),
        ("a\ud83d", "Remove the invisible character U+D83D: X refuses the post."),
    ],
)
def test_characters_that_are_refused_are_named(text: str, problem: str) -> None:
    assert check_text("x", text).problems == (problem,)


def test_threads_takes_five_different_links() -> None:
    links = [f"https://tickler.dev/{n}" for n in range(7)]
    assert check_text("threads", " ".join(links[:5] * 2)).is_sendable
    assert check_text("threads", " ".join(links)).problems == ("Remove 2 links: Threads takes 5 in a post.",)
    assert check_text("threads", " ".join(links[:6])).problems == ("Remove 1 link: Threads takes 5 in a post.",)
    assert check_text("x", " ".join(links)).is_sendable


def test_names_that_may_be_links_on_threads_are_no_problem_but_a_warning() -> None:
    check = check_text("threads", "New: a.py, b.py, c.py, d.py, e.py and f.py")
    assert check.is_sendable
    assert check.warnings == ("Threads takes 5 links, and may count a.py, b.py and 4 others as 6. Remove some.",)


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (
            "Rewrote README.md",
            "X makes a link of README.md and may charge $0.20 for it. Leave the dot out if you do not mean a website.",
        ),
        (
            "app.py, README.md, app.py",
            "X makes links of app.py and README.md and may charge $0.20 for it. Leave the dots out if you do not mean a website.",
        ),
        (
            "README.md: https://tickler.dev",
            "X makes a link of README.md. Leave the dot out if you do not mean a website.",
        ),
        (
            "a.py b.py c.py d.py",
            "X makes links of a.py, b.py and 2 others and may charge $0.20 for it. "
            "Leave the dots out if you do not mean a website.",
        ),
    ],
)
def test_names_of_files_that_x_makes_links_of_are_named(text: str, warning: str) -> None:
    check = check_text("x", text)
    assert check.is_sendable
    assert check.warnings == (warning,)


@pytest.mark.parametrize(
    "text", ["We use next.js", "See www.tickler.dev", "See tickler.dev/docs", "See https://tickler.dev", "v1.2, e.g."]
)
def test_what_is_no_link_or_meant_as_one_is_not_warned_of(text: str) -> None:
    assert check_text("x", text).warnings == ()


def test_names_of_files_do_not_matter_on_threads() -> None:
    assert check_text("threads", "Rewrote README.md").warnings == ()


def test_a_second_cashtag_is_warned_of_on_x() -> None:
    warning = "X takes one cashtag in a post. Write all but one of $AAPL and $TSLA without the dollar sign."
    assert check_text("x", "$AAPL and $TSLA, and $AAPL for $5").warnings == (warning,)
    assert check_text("x", "$AAPL and $5 and US$ and $AAPL").warnings == ()
    assert check_text("threads", "$AAPL and $TSLA").warnings == ()


@pytest.mark.parametrize(
    ("channel", "warning"),
    [
        ("x", "Another post here has the same text, and X refuses a text that it knows. Change it."),
        ("threads", "Another post here has the same text, and Threads may refuse it. Change it."),
    ],
)
def test_the_text_of_another_post_is_warned_of_however_it_is_written(channel: ChannelName, warning: str) -> None:
    recent = ["Something else", "Dark  mode is HERE:\n cafe\u0301"]
    assert check_text(channel, "dark mode is here: café", recent=recent).warnings == (warning,)
    assert check_text(channel, "dark mode was here: café", recent=recent).warnings == ()


def test_a_text_near_the_limit_of_threads_is_warned_of() -> None:
    assert check_text("threads", "a" * 480).warnings == ()
    warning = "Shorten it by 1 to be safe: it counts 481, and Threads may count some characters as more than one."
    assert check_text("threads", "a" * 481).warnings == (warning,)
    assert check_text("threads", "a" * 501).warnings == ()


@examples
@given(CHANNELS, st.text() | st.text("a .:/@🎉中\u200d\ufeff", max_size=600))
def test_any_text_can_be_checked(channel: ChannelName, text: str) -> None:
    check = check_text(channel, text, recent=[text])
    assert check.length >= 0
    assert check.is_sendable <= (0 < check.length <= check.limit)
    assert any(warning.startswith("Another post here has the same text") for warning in check.warnings)
    for sentence in (*check.problems, *check.warnings):
        assert sentence[0].isupper()
        assert sentence.endswith(".")
