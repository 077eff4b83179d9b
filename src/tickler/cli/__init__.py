"""The command line. One command a file: `migrate.py` has a function `command`, and that is `tickler migrate`.

`token.py` has an `app` with several; `import_.py`, whose name is Python's own without the underscore, is `tickler import`.
"""

from __future__ import annotations

import sys

from tickler.distribution import install_command


def main() -> None:
    """The console script. Needs the extra `cli`, and says so where it is missing."""
    try:
        from tickler.cli.app import run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        sys.exit(f"tickler: the command line needs typer and rich: install them with `{install_command('cli')}`")
    run()
