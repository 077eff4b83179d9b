"""A real browser: Chromium of the system's packages, driven by Playwright."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.async_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")


def program() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def reason_why_not() -> str | None:
    """Return why no browser can run here, and the remedy; None if one can."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is missing: pip install playwright"
    return None if program() else "Chromium is missing: apt-get install chromium"


@asynccontextmanager
async def started() -> AsyncIterator[Browser]:
    """Start one Chromium, or skip the test loudly."""
    why_not = reason_why_not()
    if why_not is not None:
        pytest.skip(f"NOT TESTED in a browser: {why_not}")
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program(), args=list(FLAGS))
        yield browser
        await browser.close()
