"""An application on one machine: an SQLite file that only its owner may read, and beside it the key of its secrets."""

from __future__ import annotations

import os
import secrets
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path

from tickler.database.sqlite.connection import file_name
from tickler.database.store_url import parse_url
from tickler.errors import InvalidInput
from tickler.webhooks.key_ring import new_key

VARIABLE = "TICKLER_KEY"


def sqlite_file(store: str) -> Path | None:
    """Return the file of a store by its URL; None for other stores than SQLite, and for one in memory."""
    url = parse_url(store)
    name = file_name(url) if url.scheme == "sqlite" else ""
    return Path(name) if name else None


def make_private(store: str) -> None:
    """Make an SQLite file that does not exist yet, readable by its owner only. SQLite would let others read it, too."""
    file = sqlite_file(store)
    if file is not None:
        with suppress(OSError):  # it is there already, or SQLite says why it cannot be made
            os.close(_create(file))


def ensure_key(environ: MutableMapping[str, str], store: str) -> None:
    """Set TICKLER_KEY if it is not set, to that of a file beside an SQLite file, which is made the first time.

    Stores that several machines use need the same key on each: there it must be set, or this raises `InvalidInput`.
    """
    if environ.get(VARIABLE):
        return
    if parse_url(store).scheme not in ("sqlite", "memory"):
        remedy = 'what `python -c "import tickler; print(tickler.new_key())"` prints, the same for every process'
        raise InvalidInput(f"{VARIABLE}: it is missing, and secrets are encrypted with it: set it to {remedy}")
    file = sqlite_file(store)
    environ[VARIABLE] = new_key() if file is None else _kept_key(Path(f"{file}.key"))


def _kept_key(path: Path) -> str:
    """Read the key of a file, which is there only once it is complete: of two processes that make it, one does."""
    if not path.exists():
        partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        try:
            with open(_create(partial), "w", encoding="ascii") as file:
                file.write(new_key())
            with suppress(FileExistsError):
                os.link(partial, path)
        except OSError as error:
            raise InvalidInput(f"{VARIABLE}: {path} cannot be written ({error.strerror}): set {VARIABLE} instead") from None
        finally:
            partial.unlink(missing_ok=True)
    return path.read_text(encoding="ascii").strip()


def _create(file: Path) -> int:
    return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
