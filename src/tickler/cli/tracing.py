"""OpenTelemetry traces, switched on by TICKLER_TRACES=1."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from tickler.client import Tickler
from tickler.distribution import install_command
from tickler.errors import InvalidInput

VARIABLE = "TICKLER_TRACES"


def trace_if_asked(tickler: Tickler, environ: Mapping[str, str]) -> None:
    """Trace every attempt as a span, with the provider that the process was started with (opentelemetry-instrument)."""
    wanted = environ.get(VARIABLE) or "0"
    if wanted not in ("0", "1"):
        raise InvalidInput(f"{VARIABLE}: {wanted!r} is invalid: use 0 or 1")
    if wanted == "0":
        return
    try:
        tracing = import_module("tickler.observe.tracing").tracing
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "opentelemetry":
            raise
        raise InvalidInput(f"{VARIABLE}: opentelemetry is not installed: {install_command('traces')}") from None
    tickler.deliver_through(tracing())
