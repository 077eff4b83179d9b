"""The style and the scripts of the pages: our own, and those that all pages on Tickler share."""

from __future__ import annotations

from tickler.web import Assets

ASSETS = Assets("pricebook.pages", shared=True)
