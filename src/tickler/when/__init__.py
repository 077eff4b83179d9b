"""Time expressions: values that determine at which instants something happens."""

from tickler.when.at import At, iso_utc, read_instant
from tickler.when.cron import Cron
from tickler.when.describe import in_words
from tickler.when.dst_marks import MarkedInstant, marked
from tickler.when.every import Every
from tickler.when.parsing import parse_when, read_when, when_from_json
from tickler.when.unreadable import Unreadable
from tickler.when.weekly import Weekly
from tickler.when.when import When
from tickler.when.zones import load_zone, tzdata_version

KINDS = (Cron, Weekly, At, Every)  # all kinds that can be stored and read back

__all__ = [
    "KINDS",
    "At",
    "Cron",
    "Every",
    "MarkedInstant",
    "Unreadable",
    "Weekly",
    "When",
    "in_words",
    "iso_utc",
    "load_zone",
    "marked",
    "parse_when",
    "read_instant",
    "read_when",
    "tzdata_version",
    "when_from_json",
]
