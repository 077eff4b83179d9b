"""Acronyms: those that everybody knows, those that can be said in words, and those that readers would have to look up."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

_KNOWN_WORDS = (
    "KML KMZ FIT TCX ICAL VCF OPML DOCX PPTX ODT RTF MD SRT WEBM MOV AVI MKV OGG AAC ALAC PSD TIFF BMP ICO DXF OBJ IBAN "
    "SEPA AI AM API ATM BPM CD CPU CSS CSV DIY DJ DVD EU EUR FAQ FM GBP GDPR GIF GPS GPT GPX GPU HD HDMI HEIC HTML HTTP "
    "HTTPS ICS ID JPEG JPG JSON LED MIDI MP3 MP4 NFC OK PC PDF PIN PM PNG QR RAM RAW RSS SD SMS SOS STL SVG TV TXT UI UK "
    "URL US USA USB USD UTC UV UTF VAT VIP VPN WAV WEBP WIFI XL XLS XLSX XML YAML ZIP BBQ DNA EPUB FLAC CEO HIIT IQ PS "
    "PT TLS SSL DNS SHA ISO CI II III IV VI VII"
)
_KNOWN = frozenset(_KNOWN_WORDS.split())

_IN_WORDS: Mapping[str, str] = {
    "SSO": "single sign-on", "2FA": "two-factor sign-in", "MFA": "multi-factor sign-in", "OTP": "one-time code",
    "TOTP": "one-time code", "a11y": "accessibility", "i18n": "translations", "l10n": "localization", "DB": "database",
    "DBs": "databases", "DnD": "drag and drop", "PWA": "web app", "OCR": "text recognition", "TTS": "text to speech",
    "STT": "speech to text", "LLM": "language model", "LLMs": "language models", "CTA": "call to action",
    "E2E encryption": "end-to-end encryption", "E2EE": "end-to-end encryption", "FTS": "full-text search",
    "UX": "user experience", "GUI": "interface", "CLI": "command line", "TOC": "table of contents",
    "RTL": "right-to-left text", "SMTP": "outgoing mail", "WYSIWYG editor": "visual editor", "WYSIWYG": "visual editor",
    "DMs": "messages", "TOS": "terms", "ToS": "terms", "SLA": "uptime promise", "MVP": "first version", "POC": "prototype",
    "KPIs": "key figures", "KPI": "key figure", "SEO": "search engine", "SKU": "item number", "SKUs": "item numbers",
    "CRON": "schedule", "PRs": "pull requests", "TLDR": "summary", "HUD": "overlay", "FTUE": "first steps",
    "NUX": "first steps", "WIP": "unfinished", "SDK": "developer kit", "auth": "sign-in", "perf": "performance",
    "config": "settings", "prefs": "settings", "repo": "repository", "repos": "repositories", "params": "parameters",
    "infra": "infrastructure", "impl": "implementation", "msg": "message", "notif": "notification", "notifs": "notifications",
    "desc": "description", "mobile nav": "mobile menu", "nav": "navigation", "btn": "button", "img": "image",
}  # fmt: skip
_SAYABLE = re.compile(rf"(?<![\w-])(?:{'|'.join(sorted(map(re.escape, _IN_WORDS), key=len, reverse=True))})(?![\w-])")
_ACRONYM = re.compile(r"(?<![\w.])(?=\w*[A-Z]\w*[A-Z])[A-Z0-9]{2,6}s?(?![\w.])")
_WORD = re.compile(r"\w+")


def in_words(text: str) -> str:
    """Return a text with the acronyms and abbreviations of developers written out."""
    return _SAYABLE.sub(lambda found: _IN_WORDS[found[0]], text)


def unexplained(text: str, vocabulary: Collection[str] = ()) -> tuple[str, ...]:
    """Return the acronyms that readers would have to look up. `vocabulary` are words that they know."""
    found = (match[0] for match in _ACRONYM.finditer(text))
    return tuple(each for each in found if each.removesuffix("s") not in _KNOWN and each not in vocabulary)


def vocabulary_of(*texts: str) -> frozenset[str]:
    """Return the words of texts that the readers of a product know: its name, its description, earlier posts."""
    return frozenset(word for text in texts for word in _WORD.findall(text))
