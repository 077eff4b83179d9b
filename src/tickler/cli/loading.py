"""Imports what an operator names on the command line as `module:name`."""

from __future__ import annotations

import os
import sys
import traceback
from importlib import import_module
from types import ModuleType

from tickler.errors import InvalidInput
from tickler.table import Table


def load_object(named: str, option: str, example: str) -> object:
    """Import an object. `example` is the remedy in errors, which begin with the name of the option."""
    module, _, name = named.partition(":")
    found = _import(module, f"{option} {named}", example)
    if not name:
        raise InvalidInput(f"{option} {named}: has no name behind a colon: {example}")
    try:
        return getattr(found, name)
    except AttributeError as error:
        raise InvalidInput(f"{option} {named}: {error}: {example}") from None


def _import(module: str, where: str, example: str) -> ModuleType:
    """Import a module. Name a missing one; show where another fails."""
    if not all(part.isidentifier() for part in module.split(".")):
        raise InvalidInput(f"{where}: {module!r} is not a module name: {example}")
    sys.path.insert(0, os.getcwd())  # as with `python -m`
    try:
        return import_module(module)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{module}.".startswith(f"{error.name}."):
            raise InvalidInput(f"{where}: {error}: {example}") from None
        place = error.__traceback__
        while place is not None and ("importlib" in place.tb_frame.f_code.co_filename or place.tb_frame.f_globals is globals()):
            place = place.tb_next
        text = "".join(traceback.format_exception(error.with_traceback(place))).rstrip()
        raise InvalidInput(f"{where}: importing {module} failed:\n{text}") from None


def load_table(named: str) -> Table:
    """Import a table of an application."""
    found = load_object(named, "table", "name a table as in shop.model:table")
    if not isinstance(found, Table):
        kind = "class" if isinstance(found, type) else type(found).__name__
        raise InvalidInput(f"{named} is not a Table but a {kind}: name a table as in shop.model:table")
    return found
