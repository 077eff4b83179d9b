"""Titles and notes for people: without what only developers read."""

from __future__ import annotations

import re

MAX_TITLE = 160
MAX_BODY = 2_000
_MAX_READ = 1_000  # of a line: what strangers wrote may be made to be slow

_GONE = "\x00"  # marks a removed path or hash, so that "in" before it goes, too

_SHORTCODE = re.compile(r":[a-z][a-z0-9_+-]*:")
_CI_MARK = re.compile(r"\[(?:skip ci|ci skip|no ci|skip actions|skip deploy|vercel skip|deploy)\]", re.IGNORECASE)
_EMOJI = (
    "[\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\ufe0f\u200d\u20e3"
    "\U0001f000-\U0001faff\U000e0020-\U000e007f]+"
)
_EDGE_EMOJI = re.compile(rf"^(?:\s*{_EMOJI})+\s*|\s*(?:{_EMOJI}\s*)+$")
_LINK = re.compile(r"<?\b(?:https?://|www\.)[^\s>)\]]+>?", re.IGNORECASE)
_CREDIT = re.compile(r"\s*(?:\bby|\bthanks? (?:to )?|[-–(]\s*)\s*@[\w-]+(?:\[bot\])?(?:\s*(?:,|and)\s*@[\w-]+)*\)?(?:\s+in\s*$)?")
_MENTION = re.compile(r"(?<![\w.])@[\w/-]+(?:\[bot\])?")
_CLOSES = re.compile(
    r"\(?(?:\b(?:close[sd]?|fixe[sd]|fix|resolve[sd]?|refs?|see|part of|related to|issue|ticket|for)\s*:?\s*)?"
    r"(?:[\w.-]+/[\w.-]+)?#\d+\)?",
    re.IGNORECASE,
)
_TICKET = re.compile(r"[\[(]?\b([A-Z][A-Z0-9]{1,9})-\d+\b[\])]?:?")
_NO_TICKETS = frozenset(
    ["UTF", "SHA", "ISO", "COVID", "GPT", "RFC", "AES", "USB", "WCAG", "CVE", "ES", "MP", "IPV", "RSA", "AVC", "HDR"]
)
_HASH = re.compile(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b|\b[0-9a-f]{40}\b")
_EXTENSIONS = (
    "py|js|ts|tsx|jsx|mjs|cjs|json|ya?ml|toml|md|mdx|txt|css|scss|html?|vue|svelte|swift|kt|java|rb|rs|go|c|h|cpp|cs|php|sh|sql|"
    "lock|xml|plist|gradle|env|cfg|ini|ipynb|dart|ex|exs|tf|proto|graphql|prisma|xcodeproj|pbxproj|storyboard|strings|snap|svg|png"
)
_CHOICE = r"(?:(?:[A-Z0-9]\w*|[a-z]+OS)/)+(?:[A-Z0-9]\w*|[a-z]+OS)(?![\w/.])"  # such as "Windows/Mac/Linux"
_PATH = re.compile(
    rf"(?<![\w@/])(?:\.{{0,2}}/[\w@.-]+(?:/[\w@.*-]+)*|(?!{_CHOICE})[\w@.*-]+(?:/[\w@.*-]+){{2,}}/?"
    r"|(?:src|lib|tests?|docs?)/[\w@.*-]+"
    rf"|[\w@/.*-]*\w\.(?:{_EXTENSIONS}))(?![\w])"
)
_TECHNOLOGY = re.compile(r"\b(?:node|next|vue|nuxt|three|react|express|d3|alpine|ember|backbone)\.js\b", re.IGNORECASE)
_CODE_PLACE = re.compile(  # code that only says where
    r"(?<=\bin )(?:the )?(?:[A-Za-z_][\w.:]*\(\)|[a-z]+(?:[A-Z][a-z0-9]*)+|[a-z0-9]+(?:_[a-z0-9]+)+)(?! [a-z])"
)
_CALL = re.compile(r"\b([A-Za-z_][\w.:]*)\(\)")
_FLAG = re.compile(r"(?<![\w-])--?(?=[a-z])")
_DOTTED = re.compile(r"\b[A-Za-z_]\w*(?:(?:\.|::)[A-Za-z_]\w*)*(?:\.|::)[A-Za-z_]\w*[A-Z_]\w*\b")
_SNAKE = re.compile(r"\b_*[A-Za-z0-9]+(?:_+[A-Za-z0-9]+)+_*\b|\b_+[A-Za-z]\w*")
_LOWER_CAMEL = re.compile(r"\b[a-z]+(?:[A-Z][a-z0-9]*)+\b")
_UPPER_CAMEL = re.compile(
    r"\b(?:[A-Z][a-z0-9]+)+(?:View|Controller|Service|Manager|Provider|Handler|Component|Screen|Model|Repository|Helper|Utils?|"
    r"Context|Factory|Exception|Error|Hook|Store|Reducer|Form|List|Item|Button|Modal|Page|Table|Adapter|Delegate|Parser|Dialog)\b"
)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LOWER_CASE_NAMES = (
    "ios ipados macos tvos watchos visionos iphone iphones ipad ipads imac icloud imessage itunes ical ebay jquery "
    "ibooks iphoto imovie iwork"
)
_BRANDS = frozenset(_LOWER_CASE_NAMES.split())

_SPELLINGS = (
    "iOS iPadOS macOS tvOS watchOS visionOS iPhone iPad GitHub GitLab YouTube JavaScript TypeScript API APIs URL URLs "
    "PDF PDFs CSV RSS UI HTML JSON QR AI SSO 2FA MFA OAuth FAQ GPS USB SMS SVG PNG JPG GIF WiFi OpenAI PayPal"
)
_SPELT = {name.lower(): name for name in _SPELLINGS.split()}
_MISSPELT = re.compile(rf"(?<![\w.-])(?:{'|'.join(_SPELT)})(?![\w.-])", re.IGNORECASE)

_LOST_WORD = r"(?:in|into|of|for|from|to|at|on|by|via|with|inside|per|see|under|within|and|or|the|a|an|file|files|commit)"
_LOST_BEFORE_GONE = re.compile(rf"(?:\s*\b{_LOST_WORD})*\s*{_GONE}(?:\s*(?:,|and)\s*{_GONE})*", re.IGNORECASE)
_LOST_AT_END = re.compile(r"\s*[-–—:;,.|/(\[&+]+$")
_LOST_WORDS_AT_END = re.compile(
    r"(?:\s+(?:in|into|of|for|from|at|by|via|with|inside|per|see|and|or|the|an?)|\s*[-–—:;,.|/(\[&+])+$"
)
_EMPTY_BRACKETS = re.compile(r"\(\s*[,;]?\s*\)|\[\s*\]|\"\"|''|``")
_SPACES = re.compile(r"\s+")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200b\u2028\u2029\ufeff\ufffe\uffff]")

_HEADING = re.compile(r"^\s{0,3}(?:#{1,6}\s*(.+?)\s*#*|\*\*([^*]+?):?\*\*:?|__([^_]+?):?__:?|([A-Z][\w' ]{2,30}):)\s*$")
_SKIPPED_HEADING = re.compile(
    r"contributor|internal|dependenc|chore|maintenance|docs|documentation|full changelog|checklist|screenshot|how to test|"
    r"test plan|testing|tests|assets|checksum|install|upgrad|migration|sha256|thanks|credits|sponsor|refactor|under the hood|"
    r"\bbuild\b|notes for review",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^\s*(?:[-*+•·–—✓✔▪◦‣→]|\d{1,2}[.)])\s+")
_CHECKBOX = re.compile(r"^\s*[-*+]\s+\[[ xX]\]")
_TRAILER = re.compile(
    r"^\s*(?:[A-Z][\w]*(?:-[\w]+)+:\s"
    r"|(?:close[sd]?|fixe[sd]|fix|resolve[sd]?|refs?|related|part of)\b:?\s+(?:[\w./-]*#\d+|[A-Z]+-\d+)"
    r"|\*?\*?full changelog|\|.*\||>|-{3,}\s*$|={3,}\s*$|made with|this (?:pr|pull request) was)",
    re.IGNORECASE,
)
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)|<[^>]+>")
_MARKDOWN_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
_PLAIN_HEADING = re.compile(
    r"what'?s (?:changed|new)|changes|changelog|release notes|summary|description|what|why|overview|motivation|context",
    re.IGNORECASE,
)


def clean_title(text: str, hidden: re.Pattern[str] | None = None) -> str:
    """Return a title for people: no shortcodes, tickets, hashes, paths, mentions or code. Empty if nothing else was in it.

    `hidden` finds what must not be in it either.
    """
    lines = [line[:_MAX_READ] for line in _CONTROLS.sub(" ", text).strip().splitlines()[:1]]
    if hidden is not None and lines:
        lines = [hidden.sub(_GONE, lines[0])]
    title = _SHORTCODE.sub(" ", _CI_MARK.sub("", lines[0])) if lines else ""
    title = _without_code(_without_references(title))
    is_cut = title.rstrip().endswith(_GONE)
    title = _LOST_BEFORE_GONE.sub(" ", title) if _GONE in title else title
    title = _EMPTY_BRACKETS.sub(" ", title)
    title = _MISSPELT.sub(lambda found: _SPELT[found[0].lower()], title)
    title = _EDGE_EMOJI.sub("", _SPACES.sub(" ", title).strip(" \t-–—*•:;,|."))
    title = (_LOST_WORDS_AT_END if is_cut else _LOST_AT_END).sub("", title).strip()
    if title.isupper() and " " in title:
        title = title.lower()
    return capitalized(_cut(title, MAX_TITLE))


def has_code(text: str) -> bool:
    """Return whether a title names files or identifiers: only developers read it."""
    text = _TECHNOLOGY.sub("", text)
    identifiers = (found[0] for pattern in (_DOTTED, _SNAKE, _LOWER_CAMEL, _CALL) for found in pattern.finditer(text))
    return "`" in text or _PATH.search(text) is not None or any(each.lower() not in _BRANDS for each in identifiers)


def capitalized(text: str) -> str:
    """Start a text with a capital letter, unless it starts with a name such as iPad."""
    first = text.split(" ", 1)[0]
    return text if first.lower() in _BRANDS or any(c.isupper() for c in first) else text[:1].upper() + text[1:]


def clean_body(text: str) -> str:
    """Return what a body tells people: paragraphs, `- ` bullets and `Heading:` lines, without code, links and templates."""
    text = re.sub(r"<!--.*?-->|```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|<details>.*?</details>", "\n", text, flags=re.DOTALL)
    kept: list[str] = []
    skipping = False
    for line in (line[:_MAX_READ] for line in text.splitlines()):
        heading = _heading(line)
        if heading is not None:
            skipping = bool(_SKIPPED_HEADING.search(heading))
            if not skipping and heading:
                kept.append(f"{heading}:")
        elif not skipping:
            kept.append(_clean_line(line))
    body = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return _cut(body, MAX_BODY)


def _heading(line: str) -> str | None:
    found = _HEADING.match(line)
    if found is None:
        return None
    name = clean_title(next(group for group in found.groups() if group is not None))
    return "" if _PLAIN_HEADING.fullmatch(name) else name


def _clean_line(line: str) -> str:
    if _CHECKBOX.match(line) or _TRAILER.match(line):
        return ""
    bullet = _BULLET.match(line)
    text = _MARKDOWN_LINK.sub(r"\1", _IMAGE.sub(" ", line[bullet.end() :] if bullet else line))
    text = re.sub(r"(\*\*|__|~~)(.+?)\1", r"\2", text)
    text = re.sub(r"(?<![\w*])\*(?!\s)([^*]+?)(?<!\s)\*(?![\w*])", r"\1", text)
    if bullet:
        item = _without_references(_SHORTCODE.sub(" ", _CONTROLS.sub(" ", text)))
        item = (
            _LOST_WORDS_AT_END.sub("", _SPACES.sub(" ", _LOST_BEFORE_GONE.sub(" ", item)).strip())
            if _GONE in item
            else item.strip()
        )
        return f"- {_SPACES.sub(' ', item)}" if item else ""
    return _SPACES.sub(" ", _without_references(_CONTROLS.sub(" ", text)).replace(_GONE, "")).strip()


def _without_references(text: str) -> str:
    """Remove links, people, tickets and hashes."""
    text = _LINK.sub(_GONE, text)
    text = _CREDIT.sub(" ", text.replace(f" in {_GONE}", ""))
    text = _MENTION.sub(_GONE, text)
    text = _CLOSES.sub(" ", text)
    text = _TICKET.sub(lambda found: found[0] if found[1] in _NO_TICKETS else " ", text)
    return _HASH.sub(_GONE, text)


def _without_code(text: str) -> str:
    """Remove paths, and write identifiers as words: `user_name` and `userName` become "user name"."""
    text = _TECHNOLOGY.sub(lambda found: found[0].split(".")[0].capitalize(), text.replace("`", ""))
    text = _PATH.sub(_GONE, text)
    text = _CODE_PLACE.sub(lambda found: found[0] if found[0].lower() in _BRANDS else _GONE, text)
    text = _CALL.sub(lambda found: _words(found[1]), text)
    text = _FLAG.sub("", text)
    for identifier in (_DOTTED, _SNAKE, _LOWER_CAMEL, _UPPER_CAMEL):
        text = identifier.sub(lambda found: _words(found[0]), text)
    return text


def _words(identifier: str) -> str:
    if identifier.lower() in _BRANDS:
        return identifier
    parts = re.split(r"\.|::", identifier)
    spaced = _HUMP.sub(" ", parts[-1].replace("_", " ")).split()
    return " ".join(word if word.isupper() and len(word) > 1 and "_" not in identifier else word.lower() for word in spaced)


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    cut = text[: most + 1]
    return (cut[: cut.rindex(" ")] if " " in cut[most // 2 :] else cut[:most]).rstrip(" ,;:-–")
