"""Our reading of texts against the official JavaScript package of X, which says what is right."""

from __future__ import annotations

import json
import random
import subprocess
import unicodedata
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import msgspec
import pytest

from npm_packages import node_modules
from slothpost.text.check import check_text
from slothpost.text.tlds import TLDS
from slothpost.text.x_length import X_LIMIT, read_x_text

PACKAGE = "twitter-text@3.1.0"
PROGRAM = Path(__file__).with_name("twitter_text.mjs")
CASES = Path(__file__).with_name("x_cases.json")

RANDOM_TEXTS = 20_000
DIFFERENCES_SHOWN = 10


class Case(msgspec.Struct, frozen=True):
    """A text, and what the JavaScript package makes of it."""

    text: str
    length: int
    valid: bool
    links: list[str]


def checked_in() -> list[Case]:
    """Return the cases of the file. `node twitter_text.mjs < x_cases.json` writes it anew, where the package is installed."""
    return msgspec.json.decode(CASES.read_bytes(), type=list[Case])


@pytest.mark.parametrize("case", checked_in(), ids=lambda case: ascii(case.text[:30]))
def test_a_text_is_read_as_the_package_of_x_reads_it(case: Case) -> None:
    assert ours(case.text) == case


def test_there_are_many_cases_and_of_all_kinds() -> None:
    cases = checked_in()
    assert len(cases) >= 120
    assert sum(1 for case in cases if case.links) >= 40
    assert sum(1 for case in cases if any("\u2e80" <= character <= "\U0003ffff" for character in case.text)) >= 40
    assert sum(1 for case in cases if not case.valid) >= 8


@pytest.fixture(scope="module")
def package(soak: bool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package, and a program that asks it."""
    if not soak:
        pytest.skip("the package of npm is fetched by `make soak`")
    folder = tmp_path_factory.mktemp("twitter-text")
    (folder / "node_modules").symlink_to(node_modules(PACKAGE))
    (folder / PROGRAM.name).write_bytes(PROGRAM.read_bytes())
    return folder


def test_the_cases_are_what_the_package_says(package: Path) -> None:
    cases = checked_in()
    assert theirs(package, [case.text for case in cases]) == cases


def test_random_texts_are_read_as_the_package_reads_them(package: Path, seed: int) -> None:
    chance = random.Random(seed)
    compare(package, [random_text(chance) for _ in range(RANDOM_TEXTS)])


def test_every_top_level_domain_and_no_other_is_known(package: Path) -> None:
    known = [*TLDS, *(tld.upper() for tld in TLDS), *(tld.title() for tld in TLDS)]
    unknown = [tld + letter for tld in TLDS for letter in "x9-_\u00e9\u3042@"]
    compare(package, [f"see a.{tld} now" for tld in (*known, *unknown)])
    compare(package, [f"see http://\u3042.{tld}/x" for tld in known])


def test_every_character_is_read_alike_in_each_part_of_a_link(package: Path) -> None:
    """Those that Python knows: node may know a later Unicode."""
    places = (
        "{}a.com",
        "{}http://a.com",
        "a{}b.com",
        "http://{}.com",
        "http://a.com{}",
        "http://a.com/{}",
        "a.com?x{}",
        "a.co{}/b",
    )
    codes = (*range(1, 0xD800), *range(0xE000, 0x10000), *range(0x1F000, 0x1FB00), 0xE0067, 0x2F800)
    characters = [chr(code) for code in codes if unicodedata.category(chr(code)) != "Cn"]
    for place in places:
        compare(package, [place.format(character) for character in characters])


def test_every_pair_of_parts_of_emoji_is_read_alike(package: Path) -> None:
    flags = [chr(0x1F1E6 + first) + chr(0x1F1E6 + second) for first, second in product(range(26), repeat=2)]
    single = [chr(code) for code in (*range(0x2000, 0x3300), *range(0x1F000, 0x1FB00))]
    after = ("\ufe0f", "\ufe0e", "\U0001f3fd", "\u200d\u2640\ufe0f", "\U0001f3ff\u200d\u2642\ufe0f", "\ufe0f\U0001f3fb", "\u20e3")
    compare(package, flags)
    compare(package, [first + second for first, second in product((*"09#*ac\xa9\xae", *single), after)])
    people = (
        "\U0001f468",
        "\U0001f469",
        "\U0001f466",
        "\U0001f467",
        "\U0001f9d1",
        "\U0001f468\U0001f3fd",
        "\u2764\ufe0f",
        "\U0001f48b",
    )
    compare(package, ["\u200d".join(family) for size in (2, 3, 4) for family in product(people, repeat=size)])
    compare(package, ["\u200d".join(pair) for pair in product((*people, "\U0001f3f3\ufe0f", "\U0001f3f4", "\U0001f441"), single)])


def compare(package: Path, texts: list[str]) -> None:
    pairs = zip((ours(text) for text in texts), theirs(package, texts), strict=True)
    different = [f"{us}\n{them}" for us, them in pairs if us != them]
    assert not different, f"{len(different)} of {len(texts)} are different:\n" + "\n".join(different[:DIFFERENCES_SHOWN])


def ours(text: str) -> Case:
    """Say of spaces alone what the package says: that they are a text. We ask to write one."""
    read = read_x_text(text)
    is_sendable = check_text("x", text).is_sendable or (text.isspace() and read.length <= X_LIMIT)
    return Case(text, read.length, is_sendable, [link.text for link in read.links])


def theirs(package: Path, texts: list[str]) -> list[Case]:
    given = json.dumps([{"text": text} for text in texts])
    ran = subprocess.run(
        ["node", PROGRAM.name],
        cwd=package,
        input=given,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
        timeout=300,
    )
    return msgspec.json.decode(ran.stdout, type=list[Case])


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


SCHEMES = words("http:// https:// HTTPS:// ftp:// www. @ # $ // - _ . / \uff20 xn-- http:/")
HOSTS = (
    *words("tickler app README next x t.co foo-bar foo_bar -a a- _b café 日本 рф xn--e1afmkfd 😀 аб a。b localhost 127.0.0.1"),
    *("a" * 63, "a" * 64, "あ" * 30),
)
ENDINGS = (
    *words(".com .md .py .js .io .dev .co.uk .zz .COM .c . .com. .com- .com_ .comx .com@ .com+"),
    *words(".xn--p1ai .みんな .рф .嘉里大酒店 .嘉里x .भारतम् .vermögensberater"),
    "",
)
TAILS = (
    *words("/ /a /a/b.html /(a) /(a(b)) /a_(b /?q=1 ?q=1&r=2 ?q= ? :80 :80/x : /@user/1 /a. /a,b! /ж /üx /あ /a\u2013b"),
    *words("/$ /%20 #x /a|b /abcdefghij?x=1"),
    "/" + "a" * 41,
)
MARKS = " \n\t.,!()-/@#'\"“”—…、。\x01\xa0\u3000\u200b\u200d\u2066\ufeff\uffff\u0301\u1100\u1161\u20e3\u212b\u2126"
EMOJI = (
    "😀👨👩👦👧🧑💋💻🏃👯🕵🖐🏳🏴🌈👁🗨🫠1#\xa9\u2122\u265f\u2764\u2640\u2642\u2620\u26f9\u2708\u261d\u26a7\u20e3\u200d\ufe0e\ufe0f"
    "\U0001f3fd\U0001f1e9\U0001f1ea\U0001f1fa\U000e0067\U000e007f"
)
WORDS = words("Shipped dark mode café 新機能 안녕 Привет नमस्ते v1.2 e.g.")


def random_text(chance: random.Random) -> str:
    return "".join(_fragments(chance))


def _fragments(chance: random.Random) -> Iterator[str]:
    for _ in range(chance.randint(1, 12)):
        kind = chance.random()
        if kind < 0.35:
            yield from _address(chance)
        elif kind < 0.55:
            yield "".join(chance.choices(EMOJI, k=chance.randint(1, 6)))
        elif kind < 0.75:
            yield chance.choice(WORDS)
        elif kind < 0.8:
            yield _character(chance)
        yield chance.choice(MARKS) if chance.random() < 0.4 else " " if chance.random() < 0.5 else ""


def _address(chance: random.Random) -> Iterator[str]:
    if chance.random() < 0.6:
        yield chance.choice(SCHEMES)
    for _ in range(chance.randint(1, 3)):
        yield chance.choice(HOSTS)
        yield chance.choice(ENDINGS)
    for _ in range(chance.randint(0, 2)):
        yield chance.choice(TAILS)


def _character(chance: random.Random) -> str:
    code = chance.choice((chance.randrange(0x20, 0x3000), chance.randrange(0x3000, 0xD800), chance.randrange(0x10000, 0x20000)))
    return chr(code) if unicodedata.category(chr(code)) != "Cn" else "?"
