"""Where everything is on one machine: an SQLite file that only its owner may read, and beside it the key of its secrets."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path

from pricebook.errors import InvalidField
from tickler import new_key

VARIABLE = "TICKLER_KEY"
_FILE = "sqlite:///"


def ensure_key(environ: MutableMapping[str, str], store: str) -> None:
    """Set TICKLER_KEY if it is not set, to that of a file beside an SQLite file, which is made the first time.

    Stores that several machines use need the same key on each: there it must be set.
    """
    if environ.get(VARIABLE):
        return
    if not store.startswith(("sqlite:", "memory:")):
        remedy = 'what `python -c "import tickler; print(tickler.new_key())"` prints, the same for every process'
        raise InvalidField(VARIABLE, f"it is missing, and events are signed with it: set it to {remedy}")
    file = file_of(store)
    environ[VARIABLE] = new_key() if file is None else _kept(Path(f"{file}.key"))


def make_private(store: str) -> None:
    """Make an SQLite file that does not exist yet, readable by its owner only: it has the hashes of tokens and sessions."""
    file = file_of(store)
    if file is not None:
        with suppress(OSError):  # it is there already, or SQLite says why it cannot be made
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def file_of(store: str) -> Path | None:
    """Return the file of an SQLite store; None for other stores, and for one in memory."""
    name = store.removeprefix(_FILE).partition("?")[0] if store.startswith(_FILE) else ""
    return Path(name) if name else None


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
