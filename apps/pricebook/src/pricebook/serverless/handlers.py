"""The functions as the settings of Lambda name them: `pricebook.serverless.handlers.web`, `stream` and `tick`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from pricebook.app import Settings
from pricebook.serverless.functions import Functions, LambdaContext
from tickler.web import ensure_key


def web(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return _functions().web(event, context)


def stream(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
    return _functions().stream(event, context)


def tick(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
    return _functions().tick(event, context)


@cache
def _functions() -> Functions:
    """Lambda calls one function at a time in a process, and keeps the process for the next call."""
    settings = Settings.from_environment(os.environ)
    ensure_key(os.environ, settings.store)
    return Functions(settings)
