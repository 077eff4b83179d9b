"""Which links X makes of a text: of addresses with a scheme, and of whatever looks like a domain."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from slothpost.text.tlds import TLD
from slothpost.text.utf16 import from_utf16

MAX_SEARCHED = 3_000
"""How many characters of a text are searched. A post is shorter by far, and texts that are made to be slow take its square."""

_MAX_URL = 4096
_MAX_LABEL = 63
_MAX_SHORT_LINK = 40

# The rules of twitter-text 3.1, by its names: regexp/*.js. It works on UTF-16, and so do these patterns.
_PUNCT = r"!'#%&()*+,\\./:;<=>?@\[\]\^{|}~$"  # and `_` and `-`
_SPACES = r"\x09-\x0d\x20\x85\xa0\u1680\u180e\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_INVALID = r"\ufffe\ufeff\uffff"
_DIRECTIONAL = r"\u202a-\u202e\u061c\u200e\u200f\u2066-\u2069"
_LATIN_ACCENT = (
    r"\xc0-\xd6\xd8-\xf6\xf8-\xff\u0100-\u024f\u0253\u0254\u0256\u0257\u0259\u025b\u0263\u0268\u026f\u0272\u0289\u028b\u02bb"
    r"\u0300-\u036f\u1e00-\u1eff"
)

_NO_DOMAIN = f"{_PUNCT}{_SPACES}{_INVALID}{_DIRECTIONAL}"
_LETTER = rf"[^_\-{_NO_DOMAIN}]"
_SUBDOMAIN = rf"{_LETTER}[^{_NO_DOMAIN}]*+(?<={_LETTER})\."
_DOMAIN_NAME = rf"{_LETTER}[^_{_NO_DOMAIN}]*+(?<={_LETTER})\."
_TLD = rf"(?:{TLD}|(?ai:xn--[\-0-9a-z]+))"
_DOMAIN = rf"(?:{_SUBDOMAIN})*{_DOMAIN_NAME}{_TLD}"

_PATH_CHAR = rf"(?i:[a-z\u0400-\u04ff0-9!*';:=+,.$/%#\[\]\-\u2013_~@|&{_LATIN_ACCENT}])"
_PATH_END = rf"(?i:[+\-a-z\u0400-\u04ff0-9=_#/{_LATIN_ACCENT}])"
_IN_PARENTHESES = rf"\((?:{_PATH_CHAR}+|{_PATH_CHAR}*\({_PATH_CHAR}+\){_PATH_CHAR}*)\)"
_PATH = rf"(?:{_PATH_CHAR}*(?:{_IN_PARENTHESES}{_PATH_CHAR}*)*{_PATH_END}|{_IN_PARENTHESES}|@{_PATH_CHAR}+/)"
_QUERY = r"\?(?ai:[a-z0-9!?*'@();:&=+$/%#\[\]\-_.,~|]*[a-z0-9\-_&=#/])"

_LINK = re.compile(
    rf"(?P<before>[^A-Za-z0-9@\uff20$#\uff03{_INVALID}]|\A)"
    rf"(?P<url>(?P<scheme>(?ai:https?)://)?(?P<domain>{_DOMAIN})(?::[0-9]+)?(?P<path>/{_PATH}*)?(?:{_QUERY})?)"
)
_SUFFIX = re.compile(rf"\.{_TLD}")
_ASCII_DOMAIN = re.compile(rf"(?:(?i:[\-a-z0-9{_LATIN_ACCENT}])+\.)+{_TLD}")
_SHORT_LINK = re.compile(rf"(?ai:https?://t\.co/([a-z0-9]+))(?:{_QUERY})?")
_NOT_WITHOUT_SCHEME_AFTER = "-_./"


class XLink(msgspec.Struct, frozen=True):
    """A link that X makes: its text, and where it is in the text as UTF-16."""

    text: str
    start: int
    length: int
    has_scheme: bool

    @property
    def is_bare(self) -> bool:
        """Whether it is a domain and no more, which may be meant as the name of something else."""
        return not (self.has_scheme or "/" in self.text or "?" in self.text or self.text.lower().startswith("www."))


def find_links(units: str) -> list[XLink]:
    """Find the links in a text, given in NFC and as UTF-16, in its order."""
    links: list[XLink] = []
    searched = units[:MAX_SEARCHED]
    if not _SUFFIX.search(searched):
        return links
    for found in _LINK.finditer(searched):
        if _is_valid(found["url"], found["scheme"] or "https://", found["domain"]):
            links.extend(_with_scheme(found) if found["scheme"] else _without_scheme(found))
    return links


def _is_valid(url: str, scheme: str, domain: str) -> bool:
    if domain.startswith("xn--") and not _ASCII_DOMAIN.search(domain):
        return False
    return all(_is_label(label) for label in domain.split(".")) and len(scheme) + len(url) <= _MAX_URL


def _is_label(label: str) -> bool:
    characters = from_utf16(label)
    if len(characters) > _MAX_LABEL:
        return False  # and longer in punycode, which takes long to compute
    parts = re.split("[\u3002\uff0e\uff61]", characters)
    return 1 <= len(".".join(_punycode(part) for part in parts)) <= _MAX_LABEL


def _punycode(label: str) -> str:
    return label if re.fullmatch("[ -~]*", label) else "xn--" + label.encode("punycode").decode()


def _with_scheme(found: re.Match[str]) -> Iterator[XLink]:
    url = found["url"]
    if short := _SHORT_LINK.match(url):  # of X itself: what follows the code is not part of it
        if len(short[1]) > _MAX_SHORT_LINK:
            return
        url = short[0]
    yield _link(url, found.start("url"), has_scheme=True)


def _without_scheme(found: re.Match[str]) -> Iterator[XLink]:
    """Without a scheme, only the ASCII parts of a domain are links, and the last one takes the path."""
    if found["before"] and found["before"] in _NOT_WITHOUT_SCHEME_AFTER:
        return
    url, domain = found["url"], found["domain"]
    end = 0
    names: list[tuple[str, int]] = []
    for name in _ASCII_DOMAIN.findall(domain):
        start = domain.index(name, end)
        end = start + len(name)
        names.append((name, found.start("url") + start))
    for number, (name, start) in enumerate(names, 1):
        takes_path = number == len(names) and found["path"]
        yield _link(url.replace(domain, name, 1) if takes_path else name, start, has_scheme=False)


def _link(url: str, start: int, *, has_scheme: bool) -> XLink:
    return XLink(from_utf16(url), start, len(url), has_scheme)
