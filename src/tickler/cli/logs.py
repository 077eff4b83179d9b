"""How processes that run for long speak: lines for people, or with TICKLER_LOG=json a JSON object a line, for programs."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from tickler.errors import InvalidInput

VARIABLE = "TICKLER_LOG"
TEXT = "%(asctime)s %(levelname)s %(message)s"
FIELDS = ("fire_id", "owner", "key", "attempt")  # of what a line is about, where it is about a fire


class JsonFormatter(logging.Formatter):
    """`{"at": …, "level": …, "logger": …, "message": …}`, and what the line is about, in fields of their own."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name in FIELDS:
            value = getattr(record, name, None)
            if value is not None:
                line[name] = value
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = "".join(traceback.format_exception(record.exc_info[1])).rstrip()
        try:
            return msgspec.json.encode(line, enc_hook=str).decode()
        except UnicodeEncodeError:  # half a character, which only escapes can say
            return json.dumps(line, default=str)


def set_up_logs(environ: Mapping[str, str], level: int = logging.INFO) -> None:
    """On stderr, as the environment says."""
    kind = environ.get(VARIABLE) or "text"
    if kind not in ("text", "json"):
        raise InvalidInput(f"{VARIABLE}: {kind!r} is no way to write a log: use 'text' or 'json'")
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if kind == "json" else logging.Formatter(TEXT))
    logging.basicConfig(level=level, handlers=[handler])
