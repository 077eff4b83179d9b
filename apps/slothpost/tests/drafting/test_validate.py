"""Our own check of drafts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from slothpost.drafting.validate import problems_of
from slothpost.model import ChannelName
from tickler.table import evolve

from .made_requests import a_product, a_request

GOOD = "Plantlog now has dark mode. The colors follow the system setting."


def problems(
    text: str,
    *,
    channel: ChannelName = "threads",
    banned: Sequence[str] = (),
    rules: Sequence[str] = (),
    private_names: Sequence[str] = (),
) -> str:
    product = a_product(banned=banned, rules=rules)
    return "; ".join(problems_of(text, a_request("Add dark mode", channel=channel, product=product, private_names=private_names)))


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"{GOOD}\n\nhttps://plantlog.example.com",
        f"{GOOD} https://www.plantlog.example.com/new?a=1#top",
        "Version 2.0.1 is out: 3x faster, 40% smaller, 24/7.",
        "C# and F# are notes, and so is A#. E-mail me.",
        "Works with iOS 18, GPT-4, COVID-19 data and UTF-8.",
        "1. Plants\n2. Pots & soil – “water” them…",
        "植物にダークモードが追加されました 🌱",
    ],
)
def test_an_honest_text_has_no_problem(text: str) -> None:
    assert problems(text) == ""


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the text is empty"),
        (" \n\t", "the text is empty"),
        ("a" * 501, "Shorten it by 1"),
        (
            "See https://evil.example.org",
            "it links to https://evil.example.org; links may only lead to the product's own domains",
        ),
        ("See evil.com for more", "it links to evil.com"),
        ("See https://plantlog.example.com@evil.com/", "evil.com"),
        ("See https://plantlog.example.com.evil.com/", "evil.com"),
        ("See https://notplantlog.example.com", "it links to"),
        ("See https://pl\u0430ntlog.example.com", "it links to"),
        ("See http://127.0.0.1/ now", "it links to http://127.0.0.1/"),
        ("See ftp://plantlog.example.com/x", "it links to ftp://plantlog.example.com/x"),
        ("See https://plantlog.example.com\\@evil.com", "it links to"),
        ("Thanks @octocat", "it mentions @octocat"),
        ("Dark mode #buildinpublic", "it has the hashtag #buildinpublic"),
        ("Fixed #123", "it has the ticket number #123"),
        ("Fixed PLNT-1231", "it has the ticket number PLNT-1231"),
        ("Since a1b2c3d4e5f it works", "it has the hash a1b2c3d4e5f"),
        ("I changed src/app/main.py", "it has the path src/app/main.py"),
        ("I changed main.swift", "it has the path main.swift"),
        ("Here is your post:\nDark mode", "it has “Here is your post:”"),
        ("Sure, here's a draft: dark mode", "which is not part of a post"),
        ("Post: dark mode", "it has “Post:”"),
        ("```\nDark mode\n```", "it has “```”"),
        ('{"text": "Dark mode"}', "which is not part of a post"),
        ("Dark mode is in [product name]", "it has “[product name]”"),
        ("Dark mode is in {product}", "it has “{product}”"),
        ("As an AI I like dark mode", "it has “As an AI”"),
        ("<post>Dark mode</post>", "it has “<post>”"),
        ("Excited to announce dark mode", "“Excited to announce” sounds like advertising"),
        ("A real game-changer for plants", "“game-changer” sounds like advertising"),
        ("Dark\u202emode", "it has invisible characters"),
        ("Dark\u200bmode", "it has invisible characters"),
        ("Dark\x00mode", "U+0000"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(text: str, complaint: str) -> None:
    assert complaint in problems(text)


def test_a_file_name_that_x_would_make_a_link_is_a_link() -> None:
    assert "it links to main.py" in problems("I changed main.py", channel="x")


def test_each_channel_has_its_own_limit() -> None:
    assert problems("a" * 281) == ""
    assert "Shorten it by 1" in problems("a" * 281, channel="x")


@pytest.mark.parametrize(
    ("text", "is_banned"), [("Simply water it", True), ("SIMPLY", True), ("Oversimply", False), ("It’s live", True)]
)
def test_banned_words_are_found_as_words(text: str, is_banned: bool) -> None:
    assert ("banned" in problems(text, banned=["simply", "it's live", " "])) == is_banned


def test_hashtags_that_a_rule_asks_for_are_fine() -> None:
    assert problems(f"{GOOD} #Plants", rules=["End with #plants"]) == ""


@pytest.mark.parametrize("text", ["Read from plant-core", "Read from PlantCore", "Read from acme/plant-core"])
def test_names_of_private_repositories_are_found(text: str) -> None:
    assert "it names a private repository" in problems(text, private_names=("acme/plant-core",))


def test_names_of_private_repositories_are_fine_if_the_product_tells_them() -> None:
    request = a_request("Add maps", product=evolve(a_product(), tells_private=True), private_names=("acme/plant-core",))
    assert problems_of("Read from plant-core", request) == ()


def test_links_to_any_domain_of_the_product_are_fine() -> None:
    product = evolve(a_product(), domains=["Status.Example.org"])
    assert problems_of("See https://eu.status.example.org/now", a_request("Add maps", product=product, channel="threads")) == ()


def test_a_text_must_not_repeat_the_latest_posts() -> None:
    request = a_request("Add dark mode", recent=(("Something else entirely.", "question"), (GOOD, "announce")))
    assert problems_of(GOOD.upper(), request) == ("it is the same text as a recent post",)
    request = replace(request, recent=(("Plantlog now has widgets.", "announce"),))
    assert problems_of(GOOD, request) == ("it reads like the last post: begin differently",)
