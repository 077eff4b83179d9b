"""The composition root: settings become everything that pages, the API, the command line and the worker use."""

from pricebook.app.pricebook import Pricebook, open_pricebook
from pricebook.app.settings import DEFAULT_PORT, Settings

__all__ = ["DEFAULT_PORT", "Pricebook", "Settings", "open_pricebook"]
