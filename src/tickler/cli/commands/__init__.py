"""The commands, one per file: `command` in `migrate.py` is `tickler migrate`."""
