"""The name that Tickler is installed by. Import name, command and project are `tickler`."""

DISTRIBUTION = "ticklerfile"  # `tickler` is another project's distribution


def install_command(extra: str) -> str:
    return f"pip install '{DISTRIBUTION}[{extra}]'"
