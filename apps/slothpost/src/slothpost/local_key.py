"""Where everything is on one machine: an SQLite file that only its owner may read, and beside it the key of its secrets."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path

from slothpost.errors import InvalidField
from tickler import new_key

VARIABLE = "TICKLER_KEY"
_FILE = "sqlite:///"


def ensure_key(environ: MutableMapping[str, str], store: str) -> Path | None:
    """Set TICKLER_KEY if it is not set. Returns the file that has the key of an SQLite file, and makes it the first time.

    Stores that several machines use need the same key on each: there it must be set.
    """
    if environ.get(VARIABLE):
        return None
    if not store.startswith(("sqlite:", "memory:")):
        remedy = 'what `python -c "import tickler; print(tickler.new_key())"` prints, the same for every process'
        raise InvalidField(VARIABLE, f"it is missing, and the tokens of accounts are encrypted with it: set it to {remedy}")
    place = _file(store)
    if not place:
        environ[VARIABLE] = new_key()  # what it encrypts is gone when the process ends
        return None
    path = Path(f"{place}.key")
    environ[VARIABLE] = _kept(path)
    return path


def make_private(store: str) -> None:
    """Make the SQLite file that does not exist yet, readable by its owner only: whoever reads it could sign in as anybody."""
    place = _file(store)
    if place:
        with suppress(OSError):  # it is there already, or SQLite says why it cannot be made
            os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def _file(store: str) -> str:
    return store.removeprefix(_FILE).partition("?")[0] if store.startswith(_FILE) else ""


def _kept(path: Path) -> str:
    """Read the key of a file that only its owner may read; of two processes that make it, one does."""
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(new_key())
    except FileExistsError:
        pass
    except OSError as error:
        raise InvalidField(VARIABLE, f"{path} cannot be written ({error.strerror}): set {VARIABLE} instead") from None
    return path.read_text(encoding="ascii").strip()
