"""`pricebook` on the command line."""

from pricebook.cli.commands import app, main

__all__ = ["app", "main"]
