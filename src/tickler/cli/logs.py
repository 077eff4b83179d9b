"""Logs of `serve`, `work` and `tick`: text, or one JSON object per line with TICKLER_LOG=json."""

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
FIELDS = ("fire_id", "owner", "key", "attempt")  # of a log record about a fire


class JsonFormatter(logging.Formatter):
    """Writes `{"at": …, "level": …, "logger": …, "message": …}`, with `FIELDS` and the `error` where a record has them."""

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
        except UnicodeEncodeError:  # a lone surrogate: only json.dumps escapes it
            return json.dumps(line, default=str)


def configure_logging(environ: Mapping[str, str], level: int = logging.INFO) -> None:
    """Log to stderr, in the format that TICKLER_LOG names."""
    kind = environ.get(VARIABLE) or "text"
    if kind not in ("text", "json"):
        raise InvalidInput(f"{VARIABLE}: unknown log format {kind!r}: use 'text' or 'json'")
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if kind == "json" else logging.Formatter(TEXT))
    logging.basicConfig(level=level, handlers=[handler])
