"""The commands, one a file. A function `command` in `migrate.py` is `tickler migrate`."""
