"""Which words keep their capital letter in the middle of a sentence."""

from __future__ import annotations

_NAMES = (
    "Apple Google Microsoft Stripe Garmin Strava Notion Slack Discord Telegram Zapier Spotify Siri Alexa Android Windows "
    "Linux Mac Safari Chrome Firefox Edge Outlook Gmail Dropbox Trello Figma Shopify Twitter Mastodon Bluesky Instagram "
    "Facebook Reddit Fitbit Signal Todoist Obsidian Readwise Goodreads Kindle Audible Netflix Amazon Etsy Vercel Netlify "
    "Supabase Firebase Heroku Docker Raspberry Arduino Homebrew Python Ruby Rust Swift Kotlin Java Kubernetes Prometheus "
    "Grafana Datadog Sentry Jira Linear Asana Spanish German French Italian Portuguese Dutch Japanese Chinese Korean "
    "Arabic Hebrew Hindi Turkish Russian Ukrainian Swedish Norwegian Danish Finnish Czech Greek Romanian Hungarian "
    "Vietnamese Thai Indonesian European American British English Brazilian Monday Tuesday Wednesday Thursday Friday "
    "Saturday Sunday January February April June July August September October November December Christmas Easter "
    "Halloween I Bitcoin Ethereum Markdown Unicode Bluetooth Airtable Mailchimp Substack Ghost Wordpress Hetzner "
    "Cloudflare Celsius Fahrenheit Europe America Asia Africa Australia Germany France Spain Italy"
)
NAMES = frozenset(_NAMES.split())


def lower_start(text: str) -> str:
    """Return a text as it stands in the middle of a sentence: with a small letter, unless its first word is a name."""
    first, _, rest = text.partition(" ")
    word = first.strip("“”\"'(,.:;!?’").removesuffix("'s").removesuffix("’s")
    if is_name(word) or text.startswith(("Face ID", "Touch ID")):
        return text
    second = rest.partition(" ")[0]
    if (
        second[:1].isupper()
        and not second.isupper()
        and len(second) > 1
        and second not in NAMES
        and not any(c.isupper() for c in second[1:])
    ):
        return _lowered_title(text)
    return first[:1].lower() + first[1:] + (f" {rest}" if rest else "")


def is_name(word: str) -> bool:
    """Return whether a word keeps its capitals: names, acronyms, and what has a capital inside."""
    return word in NAMES or any(c.isupper() for c in word[1:]) or (len(word) == 1 and word.isupper() and word != "A")


def _lowered_title(text: str) -> str:
    """Return a title without its capitals if it has one in most words; otherwise they are names, such as Face ID."""
    words = text.split()
    long = [word for word in words if len(word) > 3]
    if len(long) < 3 or sum(word[:1].isupper() for word in long) < len(long):
        return text
    return " ".join(word if is_name(word) else word[:1].lower() + word[1:] for word in words)
