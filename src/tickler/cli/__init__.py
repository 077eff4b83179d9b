"""The command line. Each file in `commands/` is one command: `command` in `migrate.py` is `tickler migrate`.

`token.py` has an `app` with subcommands. `import_.py` is `tickler import`: `import` is a Python keyword.
"""

from __future__ import annotations

import sys

from tickler.distribution import install_command


def main() -> None:
    """Run the console script. Without the extra `cli`, exit and name it."""
    try:
        from tickler.cli.app import run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        sys.exit(f"tickler: the command line needs typer and rich: install them with `{install_command('cli')}`")
    run()
