"""What a network makes of a text, before it is sent there."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

import msgspec

from slothpost.model import ChannelName
from slothpost.text.threads_length import THREADS_CAUTIOUS_LIMIT, THREADS_LIMIT, THREADS_MAX_LINKS, threads_length
from slothpost.text.x_length import X_LIMIT, XText, read_x_text
from slothpost.text.x_links import XLink

X_POST_MICRODOLLARS = 15_000
X_POST_WITH_LINK_MICRODOLLARS = 200_000

REFUSED_CHARACTERS = re.compile("[\x00\ud800-\udfff\ufeff\ufffe\uffff]")
"""Those that no text may have: X refuses the last three, and nothing can send the others."""

_CASHTAG = re.compile(r"(?<!\S)\$[A-Za-z]{1,6}(?:[._][A-Za-z]{1,2})?(?![\w$])")
_MAX_NAMED = 3


class TextCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The length by the network's own rule, the price, what it refuses and what the author should know."""

    length: int
    limit: int
    cost_microdollars: int  # X bills posts, and links far more
    links: tuple[str, ...]  # what the network will show as links, in its order
    problems: tuple[str, ...]  # the network would refuse it: it cannot be approved
    warnings: tuple[str, ...]  # it would go out, but not as the author thinks

    @property
    def is_sendable(self) -> bool:
        return not self.problems


def check_text(channel: ChannelName, text: str, *, recent: Sequence[str] = ()) -> TextCheck:
    """Check a text for a channel. `recent` are texts that were posted there lately."""
    read = read_x_text(text)  # nobody says which links Threads makes, so they are found by the rule of X
    is_again = _normal(text) in {_normal(other) for other in recent}
    if channel == "x":
        return TextCheck(
            length=read.length,
            limit=X_LIMIT,
            cost_microdollars=X_POST_WITH_LINK_MICRODOLLARS if read.links else X_POST_MICRODOLLARS,
            links=tuple(link.text for link in read.links),
            problems=tuple(_problems(text, "X", read.length, X_LIMIT)),
            warnings=tuple(_x_warnings(text, read, is_again=is_again)),
        )
    length = threads_length(text)
    return TextCheck(
        length=length,
        limit=THREADS_LIMIT,
        cost_microdollars=0,
        links=tuple(link.text for link in read.links),
        problems=(*_problems(text, "Threads", length, THREADS_LIMIT), *_too_many_links(read.links)),
        warnings=tuple(_threads_warnings(read, length, is_again=is_again)),
    )


def _problems(text: str, network: str, length: int, limit: int) -> Iterator[str]:
    if not text.strip():
        yield "Write a text: there is none."
    if length > limit:
        yield f"Shorten it by {length - limit:,}: it counts {length:,}, and {network} takes {limit}."
    if found := sorted({f"U+{ord(character):04X}" for character in REFUSED_CHARACTERS.findall(text)}):
        yield f"Remove the invisible {_plural(len(found), 'character')} {_listed(found)}: {network} refuses the post."


def _x_warnings(text: str, read: XText, *, is_again: bool) -> Iterator[str]:
    if names := _unique(link.text for link in read.links if link.is_bare):
        is_billed_anyway = any(not link.is_bare for link in read.links)
        may_cost = "" if is_billed_anyway else f" and may charge {_dollars(X_POST_WITH_LINK_MICRODOLLARS)} for it"
        yield (
            f"X makes {_plural(len(names), 'a link', 'links')} of {_listed(names)}{may_cost}. "
            f"Leave the {_plural(len(names), 'dot')} out if you do not mean a website."
        )
    if len(cashtags := _unique(_CASHTAG.findall(text))) > 1:
        yield f"X takes one cashtag in a post. Write all but one of {_listed(cashtags)} without the dollar sign."
    if is_again:
        yield "Another post here has the same text, and X refuses a text that it knows. Change it."


def _threads_warnings(read: XText, length: int, *, is_again: bool) -> Iterator[str]:
    if THREADS_CAUTIOUS_LIMIT < length <= THREADS_LIMIT:
        over = length - THREADS_CAUTIOUS_LIMIT
        yield f"Shorten it by {over} to be safe: it counts {length}, and Threads may count some characters as more than one."
    if len(_sure_links(read.links)) <= THREADS_MAX_LINKS < len(names := _unique(link.text for link in read.links)):
        yield f"Threads takes {THREADS_MAX_LINKS} links, and may count {_listed(names)} as {len(names)}. Remove some."
    if is_again:
        yield "Another post here has the same text, and Threads may refuse it. Change it."


def _too_many_links(links: Sequence[XLink]) -> Iterator[str]:
    if (over := len(_sure_links(links)) - THREADS_MAX_LINKS) > 0:
        yield f"Remove {over} {_plural(over, 'link')}: Threads takes {THREADS_MAX_LINKS} in a post."


def _sure_links(links: Sequence[XLink]) -> list[str]:
    """Return the different links that cannot be meant as something else, such as the name of a file."""
    return _unique(link.text for link in links if not link.is_bare)


def _normal(text: str) -> str:
    """Return what two texts have in common that a network takes for the same."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def _unique(names: Iterator[str] | Sequence[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _listed(names: Sequence[str]) -> str:
    if len(names) > _MAX_NAMED:
        return f"{', '.join(names[: _MAX_NAMED - 1])} and {len(names) - _MAX_NAMED + 1} others"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _plural(count: int, one: str, many: str = "") -> str:
    return one if count == 1 else many or f"{one}s"


def _dollars(microdollars: int) -> str:
    return f"${microdollars / 1_000_000:.2f}"
